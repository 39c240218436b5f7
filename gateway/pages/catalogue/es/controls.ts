/** Spanish texts of controls, consent and delegation pages, and the sections of the account page. */
import type { controls as english } from '../en/controls.js'

export const controls: Readonly<Record<keyof typeof english, string>> = {
  'time.now': 'ahora mismo',
  'control.reveal': 'Mostrar contraseña',
  'control.copy': 'Copiar',
  'control.copied': 'Copiado',
  'control.download': 'Descargar',
  'control.print': 'Imprimir',
  'codes.file': 'Códigos de recuperación de {tenant}. Cada código funciona una sola vez.',
  'mfa.recovery.use': 'Usar un código de recuperación',
  'mfa.recovery.code': 'Código de recuperación',
  'account.nav': 'Secciones de esta página',
  'account.security': 'Seguridad',
  'account.email': 'Correo electrónico',
  'account.confirmed': 'Confirmado',
  'account.unconfirmed': 'Sin confirmar',
  'account.codes': 'Códigos de recuperación',
  'account.codes.lead': 'Le permiten iniciar sesión si pierde sus otros factores.',
  'account.password.set': 'Tiene una contraseña.',
  'delegation.verified': 'Verificado: {domain}',
  'delegation.unverified': 'Sin verificar',
  'delegation.verified.hint': 'Pertenece a la organización propietaria de {domain}.',
  'delegation.unverified.hint': 'No pertenece a ninguna organización con un dominio verificado.',
  'delegation.time': 'Durante cuánto tiempo',
  'delegation.time.value': '{time}, o hasta que usted lo revoque',
  'delegation.origin': 'Solicitado desde',
}
