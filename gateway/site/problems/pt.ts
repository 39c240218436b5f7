/** Problem types in Portuguese. */
import type { ProblemTexts } from '../problem-advice.js'

export const pt: ProblemTexts = {
  words: {
    status: 'Status {status}, código de erro',
    cause: 'Causa',
    remedy: 'O que fazer',
    retry: 'Nova tentativa',
    all: 'Todos os tipos de erro',
    intro:
      'Os erros deste serviço são documentos de problema (RFC 9457). O membro `type` é o endereço de uma destas páginas.',
  },
  retry: {
    changed: 'Não repita a mesma solicitação: ela falhará de novo. Envie uma corrigida.',
    token: 'Repita a solicitação uma vez com outro token.',
    never: 'Não repita a solicitação.',
    same: 'Repita a mesma solicitação. Repita uma escrita somente com seu `idempotency-key`.',
    wait: 'Aguarde os segundos indicados em `Retry-After` e repita a mesma solicitação.',
    backoff:
      'Aguarde o que indica `Retry-After`; se faltar, um segundo, que dobra a cada tentativa. Repita uma escrita somente com seu `idempotency-key`.',
  },
  types: {
    'bad-request': [
      'Solicitação inválida',
      'A solicitação está malformada, falta um membro obrigatório ou um valor não é válido. O membro `errors` localiza cada falha por um ponteiro JSON, se o servidor a conhece.',
      'Leia `errors` e `detail` e compare a solicitação com sua operação em `/openapi.json`.',
    ],
    unauthorized: [
      'Não autenticado',
      'As credenciais faltam ou não são válidas. `WWW-Authenticate` indica o esquema e os metadados do servidor de autorização.',
      'Envie um token de acesso deste serviço no cabeçalho `Authorization`. `/auth.md` explica como obter um.',
    ],
    'token-expired': [
      'Token expirado',
      'O token de acesso expirou.',
      'Use o token de atualização ou entre novamente.',
    ],
    'token-revoked': [
      'Token revogado',
      'O token de acesso foi revogado antes de expirar.',
      'Entre novamente ou peça ao usuário uma nova delegação. Descarte o token antigo.',
    ],
    'delegation-expired': [
      'Delegação expirada',
      'A delegação do usuário ao agente expirou. Uma atualização não devolve um novo token.',
      'Inicie uma nova delegação e pergunte ao usuário.',
    ],
    'payment-required': [
      'Pagamento necessário',
      'O recurso é pago. A resposta contém o preço e as formas de pagamento.',
      'Pague por uma das formas da resposta e repita a solicitação com o comprovante.',
    ],
    forbidden: [
      'Proibido',
      'Quem chama está autenticado, mas não tem permissão: o locatário, a função ou o tipo de token não permitem.',
      'Use um token do locatário certo ou peça a função a um administrador. `detail` indica o motivo.',
    ],
    'insufficient-scope': [
      'Escopo insuficiente',
      'Falta ao token um escopo desta operação. `WWW-Authenticate` o indica.',
      'Obtenha um token com o escopo indicado em `WWW-Authenticate`.',
    ],
    'policy-denied': [
      'Negado por uma política',
      'Uma política do locatário ou da organização proíbe a operação.',
      'Peça a um administrador do locatário que altere a política.',
    ],
    'not-found': [
      'Não encontrado',
      'O recurso não existe ou pertence a um locatário que quem chama não pode ver.',
      'Verifique o caminho e o identificador, e se o token pertence ao locatário do objeto.',
    ],
    'method-not-allowed': [
      'Método não permitido',
      'O recurso existe, mas não aceita este método. O cabeçalho `Allow` lista seus métodos.',
      'Use um dos métodos do cabeçalho `Allow`.',
    ],
    'not-acceptable': [
      'Formato não aceitável',
      'O cabeçalho `Accept` exclui todos os tipos de conteúdo desta operação.',
      'Envie `Accept: application/json` ou nenhum cabeçalho `Accept`.',
    ],
    'request-timeout': [
      'Tempo da solicitação esgotado',
      'A solicitação não chegou completa a tempo.',
      'Verifique a conexão e envie o corpo sem pausas.',
    ],
    conflict: [
      'Conflito',
      'A solicitação contradiz o estado atual, por exemplo uma chave já registrada ou um `idempotency-key` cuja primeira solicitação ainda está em andamento.',
      'Leia o objeto de novo e decida conforme seu estado atual. `detail` indica o conflito.',
    ],
    gone: [
      'Não está mais disponível',
      'O recurso existiu e não está mais disponível.',
      'Comece de novo: peça um novo link, código ou objeto.',
    ],
    'payload-too-large': [
      'Solicitação grande demais',
      'O corpo da solicitação ultrapassa o limite desta operação.',
      'Envie um corpo menor. `/openapi.json` contém os limites da operação.',
    ],
    'uri-too-long': [
      'Endereço longo demais',
      'O destino da solicitação ultrapassa 16 KiB.',
      'Envie valores longos no corpo em vez do endereço.',
    ],
    'unsupported-media-type': [
      'Tipo de conteúdo não aceito',
      'Esta operação não aceita o `Content-Type` ou o `Content-Encoding`.',
      'Envie o `Content-Type` que a operação indica em `/openapi.json`, sem `Content-Encoding`.',
    ],
    'misdirected-request': [
      'Host errado',
      'Este serviço não atende o host da solicitação.',
      'Use o host do emissor ou de um locatário. Operadores: adicionem o host a `server.allowed_hosts`.',
    ],
    'unprocessable-content': [
      'Conteúdo não processável',
      'A solicitação está bem formada, mas não pode ser processada, por exemplo um `idempotency-key` já usado com outro corpo.',
      'Use um novo `idempotency-key` para uma nova solicitação ou corrija o que `detail` indica.',
    ],
    'too-early': [
      'Cedo demais',
      'Uma prova válida chegou antes de sua duração mínima.',
      'Guarde a prova e envie-a depois da duração mínima.',
    ],
    'rate-limited': [
      'Solicitações demais',
      'Um limite foi ultrapassado. `Retry-After` e `RateLimit` indicam o tempo de espera, `violated-policies` os nomes dos limites.',
      'Envie menos solicitações. O cabeçalho `RateLimit` indica quantas restam.',
    ],
    'headers-too-large': [
      'Cabeçalhos grandes demais',
      'Os cabeçalhos ultrapassam o limite de 64 campos ou 16 KiB.',
      'Envie menos cabeçalhos ou cabeçalhos mais curtos.',
    ],
    'server-error': [
      'Erro do servidor',
      'Ocorreu um erro interno.',
      'Informe o identificador da solicitação (`x-request-id`) ao operador deste serviço.',
    ],
    'not-implemented': [
      'Não disponível',
      'Esta implantação não tem a função necessária configurada.',
      'Peça ao operador que a configure. `/api/v1/capabilities` lista o que está disponível.',
    ],
    'bad-gateway': [
      'Resposta inválida de outro servidor',
      'Um servidor externo deu uma resposta inválida.',
      'Verifique esse servidor ou tente mais tarde.',
    ],
    'service-unavailable': [
      'Serviço indisponível',
      'O serviço está iniciando, está sobrecarregado ou uma dependência está indisponível.',
      'Aguarde. `/health/ready` indica quando o serviço está pronto.',
    ],
    'gateway-timeout': [
      'Tempo esgotado',
      'A solicitação não terminou dentro do limite de tempo e foi cancelada.',
      'Tente de novo. Se acontecer outra vez, peça menos de uma só vez.',
    ],
    'version-not-supported': [
      'Versão de HTTP não suportada',
      'A linha da solicitação não indica uma versão de HTTP que esta conexão aceite.',
      'Envie HTTP/1.1, ou combine HTTP/2 ao abrir a conexão TLS (ALPN).',
    ],
  },
}
