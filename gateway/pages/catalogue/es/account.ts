/** Spanish texts of the account page and of enrolment. */
import type { Text } from '../../../../actors/domain/i18n/languages.js'
import type { account as english } from '../en/account.js'

export const account: Readonly<Record<keyof typeof english, Text>> = {
  'profile.title': 'Perfil',
  'profile.none': 'Todavía no ha añadido datos sobre usted.',
  'profile.change': 'Editar perfil',
  'profile.lead':
    'Las aplicaciones solo ven estos datos si usted lo permite. Deje un campo vacío para quitarlo.',
  'profile.tenant': 'Lo establece {tenant}.',
  'profile.save': 'Guardar',
  'profile.name': 'Nombre completo',
  'profile.name.invalid':
    'Este nombre no es válido: use como máximo 120 caracteres y ningún carácter de control.',
  'profile.given_name': 'Nombre',
  'profile.given_name.invalid':
    'Este nombre no es válido: use como máximo 120 caracteres y ningún carácter de control.',
  'profile.family_name': 'Apellidos',
  'profile.family_name.invalid':
    'Estos apellidos no son válidos: use como máximo 120 caracteres y ningún carácter de control.',
  'profile.picture': 'Imagen',
  'profile.picture.hint':
    'La dirección de una imagen suya, por ejemplo https://example.com/yo.png.',
  'profile.picture.invalid':
    'La dirección de la imagen debe empezar por https:// y tener como máximo 2048 caracteres.',
  'profile.locale': 'Idioma',
  'profile.locale.hint': 'Un código de idioma, por ejemplo es o en-GB.',
  'profile.locale.invalid': 'Esto no es un código de idioma. Ejemplos: es, en-GB.',
  'profile.zoneinfo': 'Zona horaria',
  'profile.zoneinfo.hint': 'Por ejemplo, Europe/Madrid.',
  'profile.zoneinfo.invalid': 'Esta zona horaria no se conoce. Ejemplo: Europe/Madrid.',
  'profile.phone_number': 'Número de teléfono',
  'profile.phone_number.hint': 'Con el prefijo del país, por ejemplo +34 912 34 56 78.',
  'profile.phone_number.invalid':
    'Este número de teléfono no es válido. Empieza por + y el prefijo del país, por ejemplo +34 912 34 56 78.',
  'account.password': 'Contraseña',
  'account.password.none': 'No tiene contraseña. Inicia sesión de otra forma.',
  'account.confined':
    'Ha iniciado sesión mediante un proveedor de {tenant}, por lo que no se muestran su contraseña, sus claves de acceso ni sus segundos factores. Inicie sesión con uno de ellos para verlos.',
  'account.confined.leave': 'Iniciar sesión con sus propias claves',
  'account.password.choose':
    'No tiene contraseña. Para establecer una, cierre la sesión y elija «¿Ha olvidado su contraseña?» en la página de inicio de sesión.',
  'account.password.change': 'Cambiar contraseña',
  'account.email.confirm': 'Enviar correo de confirmación',
  'enroll.title': 'Configurar la verificación en dos pasos',
  'enroll.lead': 'Un segundo paso protege su cuenta si alguien descubre el primero.',
  'enroll.scan': 'Escanee este código QR con su aplicación de autenticación.',
  'enroll.picture': 'Código QR con el secreto para su aplicación de autenticación',
  'enroll.manual': 'O introduzca esta clave en la aplicación:',
  'enroll.open': 'Abrir en una aplicación de autenticación de este dispositivo',
  'enroll.submit': 'Activar',
  'enroll.wrong':
    'Código incorrecto. Compruebe la hora de su dispositivo y pruebe con el código siguiente.',
  'codes.title': 'Guarde sus códigos de recuperación',
  'codes.lead':
    'Si pierde su dispositivo, cada código le permite iniciar sesión una vez. Solo los mostramos ahora. Guárdelos en un gestor de contraseñas o imprímalos.',
  'codes.continue': 'He guardado mis códigos',
  'account.title': 'Su cuenta',
  'account.gone': 'Esto ha terminado, ha caducado o ya se ha gestionado.',
  'account.sessions': 'Sesiones',
  'account.session.this': 'Este navegador',
  'account.session.other': 'Otro navegador',
  'account.session.since': 'Sesión iniciada {time}',
  'account.session.seen': 'Última actividad {time}',
  'account.session.end': 'Cerrar sesión',
  'account.session.others': 'Cerrar todas las demás sesiones',
  'account.session.address': 'Dirección {address}',
  'account.factors': 'Verificación en dos pasos',
  'account.factor.totp': 'Aplicación de autenticación',
  'account.factor.enrolled': 'Añadida {time}',
  'account.factor.used': 'Último uso {time}',
  'account.factor.remove': 'Quitar',
  'account.factor.none':
    'Añada un segundo paso que proteja su cuenta si alguien averigua su contraseña.',
  'account.factor.add': 'Configurar la verificación en dos pasos',
  'account.factor.passkey':
    'Sus claves de acceso son su segundo paso. Una aplicación ayuda cuando no tiene una clave de acceso a mano.',
  'account.factor.app': 'Añadir una aplicación de autenticación',
  'account.factor.renew': 'Nuevos códigos de recuperación',
  'account.factor.codes': {
    one: 'Queda {count} código de recuperación',
    other: 'Quedan {count} códigos de recuperación',
  },
  'account.identities': 'Cuentas vinculadas',
  'account.identity.none': 'No hay ninguna cuenta de otro proveedor vinculada.',
  'account.identity.linked': 'Vinculada {time}',
  'account.identity.used': 'Último uso {time}',
  'account.identity.unlink': 'Desvincular',
  'account.identity.link': 'Vincular {name}',
  'account.consents': 'Aplicaciones conectadas',
  'account.consent.none': 'Ninguna aplicación tiene acceso a su cuenta.',
  'account.consent.since': 'Acceso concedido {time}',
  'account.consent.withdraw': 'Revocar acceso',
  'account.delegations': 'Agentes',
  'account.delegation.none': 'Ningún agente actúa por usted.',
  'account.delegation.since': 'Acceso concedido {time}',
  'account.delegation.used': 'Último uso {time}',
  'account.delegation.unused': 'Aún sin usar',
  'account.delegation.until': 'Caduca {time}',
  'account.delegation.revoke': 'Revocar acceso',
  'account.next': 'Siguientes pasos',
  'account.next.lead':
    'Usted administra {tenant}. La página de inicio enlaza con la documentación de la API y con todo lo que necesitan los programas.',
  'account.next.link': 'Abrir la página de inicio',
  'account.signout': 'Cerrar sesión',
  'enroll.app': 'Aplicación de autenticación',
  'passkey.sign-in': 'Iniciar sesión con una clave de acceso',
  'passkey.wrong':
    'Esta clave de acceso no tiene ninguna cuenta aquí. Pruebe con otra o inicie sesión con su contraseña.',
  'passkey.use': 'Usar una clave de acceso',
  'passkey.create': 'Crear clave de acceso',
  'passkey.enroll': 'Clave de acceso',
  'passkey.enroll.lead':
    'Use su huella digital, su rostro, el bloqueo de su dispositivo o una llave de seguridad. Es rápido y le protege de los sitios falsos.',
  'passkey.enroll.device':
    'Esta acción requiere una clave de acceso que permanezca en un solo dispositivo, como una llave de seguridad.',
  'passkey.copyable':
    'Esa clave de acceso se puede copiar a otros dispositivos. Use una llave de seguridad o una clave de acceso que permanezca en este dispositivo.',
  'passkey.refused': 'No hemos podido añadir la clave de acceso. Inténtelo de nuevo.',
  'passkey.device':
    'Esta acción requiere una clave de acceso que permanezca en un solo dispositivo, como una llave de seguridad.',
  'passkey.name': 'Nombre de la clave de acceso',
  'passkey.name.hint': 'Le ayuda a distinguir sus claves de acceso.',
  'passkey.cancelled': 'Cancelado. Inténtelo de nuevo cuando quiera.',
  'passkey.known': 'Este dispositivo ya tiene una clave de acceso para su cuenta.',
  'passkey.failed': 'Se ha producido un error. Actualice la página e inténtelo de nuevo.',
  'passkey.missing': 'Las claves de acceso requieren un navegador actual con JavaScript.',
  'passkey.new.title': 'Añadir una clave de acceso',
  'passkey.new.lead':
    'Inicie sesión con su huella digital, su rostro, el bloqueo de su dispositivo o una llave de seguridad en lugar de su contraseña.',
  'passkey.new.back': 'Volver a su cuenta',
  'totp.new.title': 'Añadir una aplicación de autenticación',
  'totp.new.lead': 'Sus códigos son un segundo paso cuando no tiene una clave de acceso a mano.',
  'account.passkeys': 'Claves de acceso',
  'account.passkey.none':
    'Inicie sesión sin contraseña: con su huella digital, su rostro o una llave de seguridad.',
  'account.passkey.add': 'Añadir clave de acceso',
  'account.passkey.device': 'Permanece en un solo dispositivo',
  'account.passkey.synced': 'Copia de seguridad en un gestor de contraseñas',
  'account.passkey.copyable': 'Admite copia de seguridad',
  'account.passkey.rename': 'Cambiar nombre',
  'account.passkey.name': 'Nombre',
  'account.passkey.save': 'Guardar',
  'account.requests':
    'Las aplicaciones pueden pedirle que apruebe un inicio de sesión en otro lugar, por ejemplo en un centro de atención telefónica.',
  'account.requests.open': 'Ver solicitudes',
}
