/** Portuguese (of Brazil) texts of sign-in by phone, wallet and as a guest, and of confirmations. */
import type { signInWays as english } from '../en/sign-in-ways.js'

export const signInWays: Readonly<Record<keyof typeof english, string>> = {
  'footer.links': 'Links de {tenant}',

  'ways.other': 'Entrar de outra forma',
  'ways.account': 'Voltar para sua conta',
  'ways.phone': 'Continuar com o telefone',

  'ways.ethereum': 'Continuar com Ethereum',

  'ways.guest': 'Continuar como convidado',

  'confirm.lead':
    'Você ainda não entrou a partir daqui, ou alguém tentou sua senha. Enviamos um código para seu endereço de e-mail.',
  'confirm.hint': 'Do e-mail. Pode levar um minuto.',
  'confirm.again': 'Receber um novo código por e-mail',

  'guest.name': 'Convidado',
  'guest.title': 'Mantenha sua conta',
  'guest.lead':
    'Adicione seu endereço de e-mail para manter esta conta. Enviamos um código a você.',
  'guest.send': 'Receber um código por e-mail',
  'guest.sent': 'Enviamos um código para {email}. Pode levar um minuto.',
  'guest.prove': 'Manter minha conta',
  'guest.again': 'Usar outro endereço ou solicitar um novo código',
  'guest.taken': 'Você já tem uma conta com este endereço de e-mail. Entre nela.',
  'guest.section': 'Você está como convidado',
  'guest.section.lead':
    'Não é possível entrar novamente em outro dispositivo, e esta conta termina se você não a usar por algum tempo.',
  'guest.add': 'Adicionar seu endereço de e-mail',

  'wallet.title': 'Entrar com Ethereum',
  'wallet.lead':
    'Sua carteira pede que você assine uma mensagem. Isso não custa nada e não envia nenhuma transação.',
  'wallet.submit': 'Conectar carteira',
  'wallet.new.title': 'Vincular uma conta Ethereum',
  'wallet.new.lead':
    'Depois você poderá entrar com esta conta. Sua carteira pede que você assine uma mensagem. Isso não custa nada e não envia nenhuma transação.',
  'wallet.new.submit': 'Conectar carteira',
  'wallet.missing':
    'Este navegador não tem uma carteira Ethereum. Instale uma ou entre de outra forma.',
  'wallet.cancelled': 'Você recusou na sua carteira. Tente novamente quando quiser.',
  'wallet.chain':
    'Sua carteira está em uma rede que não é aceita aqui. Troque a rede e tente novamente.',
  'wallet.failed': 'Sua carteira não assinou a mensagem. Tente novamente.',
  'wallet.script':
    'Entrar com Ethereum precisa de JavaScript, porque sua carteira assina neste navegador. Ative-o ou entre de outra forma.',
  'wallet.wrong': 'A assinatura não é válida ou a mensagem expirou. Tente novamente.',
  'wallet.unlinked':
    'Nenhuma conta usa esta conta Ethereum. Entre de outra forma e depois vincule-a na página da sua conta.',
  'wallet.taken':
    'Esta conta Ethereum já está vinculada a uma conta, ou você já vinculou o máximo permitido.',
  'wallet.section': 'Contas Ethereum',
  'wallet.none': 'Ainda não há nenhuma conta Ethereum.',
  'wallet.add': 'Vincular uma conta Ethereum',

  'phone.title': 'Entre com seu telefone',
  'phone.lead': 'Enviamos um código por SMS.',
  'phone.number': 'Número de telefone',
  'phone.number.hint': 'Com o código do país, por exemplo +55 11 91234-5678.',
  'phone.number.invalid':
    'Digite um número de telefone com o código do país, por exemplo +55 11 91234-5678.',
  'phone.number.country': 'Não podemos enviar mensagens SMS para este país.',
  'phone.send': 'Receber um código por SMS',
  'phone.code.title': 'Digite o código',
  'phone.code.lead': 'Se uma conta usar este número, um SMS está a caminho. Pode levar um minuto.',
  'phone.code.sent': 'Enviamos um código para {number}. Pode levar um minuto.',
  'phone.code': 'Código de 6 dígitos',
  'phone.code.hint': 'Da mensagem SMS.',
  'phone.code.wrong':
    'Este código está incorreto ou não é mais válido. Confira-o ou solicite um novo.',
  'phone.prove': 'Confirmar número',
  'phone.again': 'Usar outro número ou solicitar um novo código',
  'phone.own.title': 'Adicione seu número de telefone',
  'phone.own.lead':
    'Você poderá entrar com um código que enviamos por SMS para este número. Se outra conta o usar, ele passará para a sua.',
  'phone.section': 'Número de telefone para entrar',
  'phone.none': 'Ainda não há número de telefone.',
  'phone.add': 'Adicionar um número de telefone',
  'phone.change': 'Alterar o número de telefone',
}
