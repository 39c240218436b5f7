/** Portuguese (of Brazil) texts of controls, consent and delegation pages, and the sections of the account page. */
import type { controls as english } from '../en/controls.js'

export const controls: Readonly<Record<keyof typeof english, string>> = {
  'time.now': 'agora mesmo',
  'control.reveal': 'Mostrar senha',
  'control.copy': 'Copiar',
  'control.copied': 'Copiado',
  'control.download': 'Baixar',
  'control.print': 'Imprimir',
  'codes.file': 'Códigos de recuperação de {tenant}. Cada código funciona uma única vez.',
  'mfa.recovery.use': 'Usar um código de recuperação',
  'mfa.recovery.code': 'Código de recuperação',
  'account.nav': 'Seções desta página',
  'account.security': 'Segurança',
  'account.email': 'Endereço de e-mail',
  'account.confirmed': 'Confirmado',
  'account.unconfirmed': 'Não confirmado',
  'account.codes': 'Códigos de recuperação',
  'account.codes.lead': 'Eles permitem que você entre quando perder seus outros fatores.',
  'account.password.set': 'Você tem uma senha.',
  'delegation.verified': 'Verificado: {domain}',
  'delegation.unverified': 'Não verificado',
  'delegation.verified.hint': 'Ele pertence à organização proprietária de {domain}.',
  'delegation.unverified.hint': 'Ele não pertence a nenhuma organização com um domínio verificado.',
  'delegation.time': 'Por quanto tempo',
  'delegation.time.value': '{time}, ou até que você revogue',
  'delegation.origin': 'Solicitado de',
}
