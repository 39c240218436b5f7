/** Texts of the start page, of sign-up, and of the mails of a development service. */
import type { firstSteps as english } from '../en/first-steps.js'

export const firstSteps: Readonly<Record<keyof typeof english, string>> = {
  'home.for': 'Entre para ver sua conta ou leia como conectar um aplicativo ou um agente.',
  'home.workspace': 'Identificador do espaço de trabalho',
  'home.console': 'Abrir o console',
  'home.mail': 'E-mails deste serviço de desenvolvimento',
  'home.agents': 'Comece aqui se você é um agente',
  'home.overview': 'Visão geral para modelos de linguagem',
  'home.mcp': 'Servidor MCP, sem credenciais',

  'error.home': 'Ir para a página inicial',

  'register.title': 'Crie sua conta',
  'register.lead':
    'Crie uma conta em {tenant}. Enviamos por e-mail um link para confirmar seu endereço.',
  'register.submit': 'Enviar o link',
  'register.login': 'Já tem uma conta? Entre',
  'register.offer': 'Ainda não tem conta? Crie uma',
  'register.sent': 'Enviamos um e-mail para {email}. Abra o link dele para continuar.',
  'register.sent.hint':
    'Nenhum e-mail depois de um minuto? Verifique a pasta de spam e o endereço.',
  'register.again': 'Usar outro endereço',
  'register.confirm.title': 'Conclua sua conta',
  'register.confirm.lead': 'Seu endereço é {email}. Escolha uma senha para {tenant}.',
  'register.confirm.known':
    'Você já tem uma conta com {email}. Junte-se a {tenant} e depois entre como de costume.',
  'register.confirm.submit': 'Criar conta',
  'register.confirm.join': 'Juntar-se a {tenant}',
  'register.off.title': 'O cadastro está fechado',
  'register.off': '{tenant} não oferece cadastro aqui. Peça um convite a um administrador.',
  'register.gone.title': 'O link não é mais válido',
  'register.gone': 'Este link já foi usado ou expirou. Cadastre-se novamente para receber um novo.',
  'register.start': 'Cadastrar-se novamente',

  'dev_mail.title': 'E-mails de desenvolvimento',
  'dev_mail.lead':
    'Os e-mails mais recentes enviados por este serviço, mantidos na memória. Esta página não existe em produção.',
  'dev_mail.none': 'Ainda não há e-mails. Cadastre-se ou solicite um código e recarregue.',
  'dev_mail.hint':
    'Um ambiente de testes só escreve para endereços como voce@example.com, domínios verificados e seus proprietários.',
  'dev_mail.reload': 'Recarregar',
  'dev_mail.message.title': 'E-mail',
  'dev_mail.subject': 'Assunto',
  'dev_mail.to': 'Para',
  'dev_mail.sent': 'Enviado',
  'dev_mail.open': 'Abrir o link',
  'dev_mail.text': 'Como texto',
  'dev_mail.html': 'Como HTML',
  'dev_mail.back': 'Todos os e-mails',
}
