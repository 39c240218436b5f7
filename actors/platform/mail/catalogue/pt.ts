/** Portuguese (of Brazil). */
import type { MailCatalogue } from './en.js'

export const pt: MailCatalogue = {
  'mail.greeting': 'Olá,',
  'mail.ignore': 'Se não foi você, ignore esta mensagem: nada será alterado.',
  'mail.link.once': 'O link funciona uma única vez, até {time}.',
  'mail.link.copy': 'Se o botão não funcionar, copie este endereço no seu navegador:',
  'mail.sender': 'Esta mensagem foi enviada em nome de {tenant}.',

  'sign_in.subject': 'Entrar em {tenant}',
  'sign_in.lead': 'Alguém, provavelmente você, quer entrar em {tenant} com este endereço.',
  'sign_in.code': 'Digite este código na página em que você o solicitou:',
  'sign_in.code.until':
    'O código funciona uma única vez, até {time}. Não o compartilhe com ninguém.',
  'sign_in.link': 'Abra este link no navegador em que você o solicitou e confirme lá:',
  'sign_in.button': 'Entrar',

  'password_reset.subject': 'Defina uma nova senha para {tenant}',
  'password_reset.lead':
    'Alguém, provavelmente você, esqueceu a senha de {tenant}. Escolha uma nova aqui:',
  'password_reset.button': 'Escolher uma nova senha',

  'password_changed.subject': 'Sua senha foi alterada',
  'password_changed.lead':
    'A senha da sua conta em {tenant} foi alterada em {time}. Sua sessão foi encerrada em todos os outros dispositivos.',
  'password_changed.alarm':
    'Se não foi você, redefina sua senha imediatamente e avise o administrador de {tenant}.',

  'account_recovery.subject': 'Recuperação de uma conta em {tenant}',
  'account_recovery.lead':
    'Um operador do serviço emitiu em {time} um link que define uma nova senha para a conta {account} em {tenant} e remove os segundos fatores.',
  'account_recovery.alarm':
    'Se você não sabe o motivo, fale imediatamente com o operador do serviço.',

  'admin_password_reset.subject': 'Sua senha de {tenant} foi redefinida',
  'admin_password_reset.lead':
    'Um administrador de {tenant} redefiniu sua senha. A anterior não funciona mais e sua sessão foi encerrada. Escolha uma nova aqui:',
  'admin_factors_reset.subject': 'Seus segundos fatores de {tenant} foram removidos',
  'admin_factors_reset.lead':
    'Um administrador de {tenant} removeu em {time} suas chaves de acesso, seu aplicativo autenticador e seus códigos de recuperação. Sua sessão foi encerrada. Você pode configurar novos no próximo acesso.',
  'admin_factors_reset.password':
    'Não resta nenhuma outra forma de entrar. Escolha uma senha aqui:',
  'admin_reset_refused.subject': 'Sua conta em {tenant} não foi alterada',
  'admin_reset_refused.lead':
    'Um administrador de {tenant} tentou em {time} redefinir a senha ou os segundos fatores da sua conta. Nada foi alterado, porque você também usa a conta em outros lugares. Você pode alterar ambos na página da sua conta.',
  'admin_reset.alarm': 'Se você não sabe o motivo, fale com o administrador de {tenant}.',

  'invitation.subject': 'Você recebeu um convite para {tenant}',
  'invitation.lead': 'Você recebeu um convite para {tenant}. Aceite-o aqui:',
  'invitation.button': 'Aceitar o convite',

  'email_verification.subject': 'Confirme seu endereço de e-mail para {tenant}',
  'email_verification.lead': 'Confirme que este é seu endereço de e-mail:',
  'email_verification.button': 'Confirmar o endereço',

  'sign_up.subject': 'Confirme seu endereço para {tenant}',
  'sign_up.lead': 'Confirme seu endereço para concluir sua conta em {tenant}:',
  'sign_up.button': 'Concluir a conta',

  'sign_up_known.subject': 'Você já tem uma conta em {tenant}',
  'sign_up_known.lead':
    'Você tentou se cadastrar em {tenant} com este endereço, mas já tem uma conta. Entre aqui:',
  'sign_up_known.button': 'Entrar',

  'confirmation_code.subject': 'Seu código para {tenant}',
  'confirmation_code.lead': 'Digite este código na página em que você o solicitou:',

  'text.code': '{code} é seu código para {tenant}. Não o compartilhe com ninguém.',
}
