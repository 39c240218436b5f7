/** Spanish. */
import type { MailCatalogue } from './en.js'

export const es: MailCatalogue = {
  'mail.greeting': 'Hola:',
  'mail.ignore': 'Si no ha sido usted, puede ignorar este mensaje: no cambiará nada.',
  'mail.link.once': 'El enlace funciona una sola vez, hasta el {time}.',
  'mail.link.copy': 'Si el botón no funciona, copie esta dirección en su navegador:',
  'mail.sender': 'Este mensaje se ha enviado en nombre de {tenant}.',

  'sign_in.subject': 'Inicie sesión en {tenant}',
  'sign_in.lead':
    'Alguien, probablemente usted, quiere iniciar sesión en {tenant} con esta dirección.',
  'sign_in.code': 'Introduzca este código en la página donde lo solicitó:',
  'sign_in.code.until':
    'El código funciona una sola vez, hasta el {time}. No lo comparta con nadie.',
  'sign_in.link': 'Abra este enlace en el navegador desde el que lo solicitó y confirme allí:',
  'sign_in.button': 'Iniciar sesión',

  'password_reset.subject': 'Establezca una contraseña nueva para {tenant}',
  'password_reset.lead':
    'Alguien, probablemente usted, ha olvidado la contraseña de {tenant}. Elija aquí una nueva:',
  'password_reset.button': 'Elegir una contraseña nueva',

  'password_changed.subject': 'Se ha cambiado su contraseña',
  'password_changed.lead':
    'La contraseña de su cuenta en {tenant} se cambió el {time}. Se ha cerrado la sesión en todos los demás dispositivos.',
  'password_changed.alarm':
    'Si no ha sido usted, restablezca su contraseña de inmediato y avise al administrador de {tenant}.',

  'account_recovery.subject': 'Recuperación de una cuenta en {tenant}',
  'account_recovery.lead':
    'Un operador del servicio emitió el {time} un enlace que establece una contraseña nueva para la cuenta {account} en {tenant} y elimina sus segundos factores.',
  'account_recovery.alarm': 'Si no sabe por qué, consulte de inmediato al operador del servicio.',

  'admin_password_reset.subject': 'Se ha restablecido su contraseña de {tenant}',
  'admin_password_reset.lead':
    'Un administrador de {tenant} ha restablecido su contraseña. La anterior ya no funciona y se ha cerrado su sesión. Elija aquí una nueva:',
  'admin_factors_reset.subject': 'Se han eliminado sus segundos factores de {tenant}',
  'admin_factors_reset.lead':
    'Un administrador de {tenant} eliminó el {time} sus llaves de acceso, su aplicación de autenticación y sus códigos de recuperación. Se ha cerrado su sesión. Podrá configurar otros nuevos la próxima vez que inicie sesión.',
  'admin_factors_reset.password':
    'No queda ninguna otra forma de iniciar sesión. Elija aquí una contraseña:',
  'admin_reset_refused.subject': 'Su cuenta en {tenant} no se ha modificado',
  'admin_reset_refused.lead':
    'Un administrador de {tenant} intentó el {time} restablecer la contraseña o los segundos factores de su cuenta. No se ha modificado nada, porque usted también usa la cuenta en otros lugares. Puede cambiar ambas cosas en la página de su cuenta.',
  'admin_reset.alarm': 'Si no sabe por qué, consulte al administrador de {tenant}.',

  'invitation.subject': 'Le han invitado a {tenant}',
  'invitation.lead': 'Le han invitado a {tenant}. Acepte aquí la invitación:',
  'invitation.button': 'Aceptar la invitación',

  'email_verification.subject': 'Confirme su correo electrónico para {tenant}',
  'email_verification.lead': 'Confirme que este es su correo electrónico:',
  'email_verification.button': 'Confirmar la dirección',

  'sign_up.subject': 'Confirme su dirección para {tenant}',
  'sign_up.lead': 'Confirme su dirección para terminar de crear su cuenta en {tenant}:',
  'sign_up.button': 'Terminar de crear la cuenta',

  'sign_up_known.subject': 'Ya tiene una cuenta en {tenant}',
  'sign_up_known.lead':
    'Ha intentado registrarse en {tenant} con esta dirección, pero ya tiene una cuenta. Inicie sesión aquí:',
  'sign_up_known.button': 'Iniciar sesión',

  'confirmation_code.subject': 'Su código para {tenant}',
  'confirmation_code.lead': 'Introduzca este código en la página donde lo solicitó:',

  'text.code': '{code} es su código para {tenant}. No lo comparta con nadie.',
}
