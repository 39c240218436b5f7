/** Spanish texts of sign-in by phone, wallet and as a guest, and of confirmations. */
import type { signInWays as english } from '../en/sign-in-ways.js'

export const signInWays: Readonly<Record<keyof typeof english, string>> = {
  'footer.links': 'Enlaces de {tenant}',

  'ways.other': 'Iniciar sesión de otra forma',
  'ways.account': 'Volver a su cuenta',
  'ways.phone': 'Continuar con el teléfono',

  'ways.ethereum': 'Continuar con Ethereum',

  'ways.guest': 'Continuar como invitado',

  'confirm.lead':
    'No ha iniciado sesión desde aquí antes, o alguien ha probado su contraseña. Hemos enviado un código a su correo electrónico.',
  'confirm.hint': 'Del correo. Puede tardar un minuto.',
  'confirm.again': 'Recibir un código nuevo por correo',

  'guest.name': 'Invitado',
  'guest.title': 'Conserve su cuenta',
  'guest.lead': 'Añada su correo electrónico para conservar esta cuenta. Le enviaremos un código.',
  'guest.send': 'Recibir un código por correo',
  'guest.sent': 'Hemos enviado un código a {email}. Puede tardar un minuto.',
  'guest.prove': 'Conservar mi cuenta',
  'guest.again': 'Usar otra dirección o solicitar un código nuevo',
  'guest.taken': 'Ya tiene una cuenta con este correo electrónico. Inicie sesión en ella.',
  'guest.section': 'Ha entrado como invitado',
  'guest.section.lead':
    'No puede volver a iniciar sesión en otro dispositivo, y esta cuenta termina si no la usa durante un tiempo.',
  'guest.add': 'Añadir su correo electrónico',

  'wallet.title': 'Iniciar sesión con Ethereum',
  'wallet.lead':
    'Su cartera le pedirá que firme un mensaje. No cuesta nada y no envía ninguna transacción.',
  'wallet.submit': 'Conectar cartera',
  'wallet.new.title': 'Vincular una cuenta de Ethereum',
  'wallet.new.lead':
    'Después podrá iniciar sesión con esta cuenta. Su cartera le pedirá que firme un mensaje. No cuesta nada y no envía ninguna transacción.',
  'wallet.new.submit': 'Conectar cartera',
  'wallet.missing':
    'Este navegador no tiene ninguna cartera de Ethereum. Instale una o inicie sesión de otra forma.',
  'wallet.cancelled': 'Lo ha rechazado en su cartera. Inténtelo de nuevo cuando quiera.',
  'wallet.chain':
    'Su cartera está en una red que no se acepta aquí. Cambie de red e inténtelo de nuevo.',
  'wallet.failed': 'Su cartera no ha firmado el mensaje. Inténtelo de nuevo.',
  'wallet.script':
    'El inicio de sesión con Ethereum necesita JavaScript, porque su cartera firma en este navegador. Actívelo o inicie sesión de otra forma.',
  'wallet.wrong': 'La firma no es válida o el mensaje ha caducado. Inténtelo de nuevo.',
  'wallet.unlinked':
    'Ninguna cuenta usa esta cuenta de Ethereum. Inicie sesión de otra forma y después vincúlela en la página de su cuenta.',
  'wallet.taken':
    'Esta cuenta de Ethereum ya está vinculada a una cuenta, o usted ya ha vinculado el máximo permitido.',
  'wallet.section': 'Cuentas de Ethereum',
  'wallet.none': 'Todavía no hay ninguna cuenta de Ethereum.',
  'wallet.add': 'Vincular una cuenta de Ethereum',

  'phone.title': 'Inicie sesión con su teléfono',
  'phone.lead': 'Le enviaremos un código por SMS.',
  'phone.number': 'Número de teléfono',
  'phone.number.hint': 'Con el prefijo del país, por ejemplo +34 912 34 56 78.',
  'phone.number.invalid':
    'Introduzca un número de teléfono con el prefijo del país, por ejemplo +34 912 34 56 78.',
  'phone.number.country': 'No podemos enviar mensajes SMS a este país.',
  'phone.send': 'Recibir un código por SMS',
  'phone.code.title': 'Introduzca el código',
  'phone.code.lead':
    'Si una cuenta usa este número, le hemos enviado un SMS. Puede tardar un minuto.',
  'phone.code.sent': 'Hemos enviado un código al {number}. Puede tardar un minuto.',
  'phone.code': 'Código de 6 dígitos',
  'phone.code.hint': 'Del mensaje SMS.',
  'phone.code.wrong':
    'Este código es incorrecto o ya no es válido. Compruébelo o solicite uno nuevo.',
  'phone.prove': 'Confirmar número',
  'phone.again': 'Usar otro número o solicitar un código nuevo',
  'phone.own.title': 'Añada su número de teléfono',
  'phone.own.lead':
    'Podrá iniciar sesión con un código que enviaremos por SMS a este número. Si otra cuenta lo usa, pasará a la suya.',
  'phone.section': 'Número de teléfono para iniciar sesión',
  'phone.none': 'Todavía no hay número de teléfono.',
  'phone.add': 'Añadir un número de teléfono',
  'phone.change': 'Cambiar el número de teléfono',
}
