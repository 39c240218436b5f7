/** Texts of the start page, of sign-up, and of the mails of a development service. */
import type { firstSteps as english } from '../en/first-steps.js'

export const firstSteps: Readonly<Record<keyof typeof english, string>> = {
  'home.for': 'Inicie sesión para ver su cuenta o lea cómo conectar una aplicación o un agente.',
  'home.workspace': 'Identificador del espacio de trabajo',
  'home.console': 'Abrir la consola',
  'home.mail': 'Correo de este servicio de desarrollo',
  'home.agents': 'Empiece aquí si es un agente',
  'home.overview': 'Resumen para modelos de lenguaje',
  'home.mcp': 'Servidor MCP, sin credenciales',

  'error.home': 'Ir a la página de inicio',

  'register.title': 'Cree su cuenta',
  'register.lead':
    'Cree una cuenta en {tenant}. Le enviaremos por correo un enlace para confirmar su dirección.',
  'register.submit': 'Enviar el enlace',
  'register.login': '¿Ya tiene una cuenta? Inicie sesión',
  'register.offer': '¿Todavía no tiene cuenta? Cree una',
  'register.sent': 'Hemos enviado un correo a {email}. Abra su enlace para continuar.',
  'register.sent.hint':
    '¿No ha llegado el correo después de un minuto? Revise la carpeta de spam y la dirección.',
  'register.again': 'Usar otra dirección',
  'register.confirm.title': 'Termine de crear su cuenta',
  'register.confirm.lead': 'Su dirección es {email}. Elija una contraseña para {tenant}.',
  'register.confirm.known':
    'Ya tiene una cuenta con {email}. Únase a {tenant} y después inicie sesión como de costumbre.',
  'register.confirm.submit': 'Crear cuenta',
  'register.confirm.join': 'Unirse a {tenant}',
  'register.off.title': 'El registro está cerrado',
  'register.off': '{tenant} no ofrece registro aquí. Pida una invitación a un administrador.',
  'register.gone.title': 'El enlace ya no es válido',
  'register.gone':
    'Este enlace ya se ha utilizado o ha caducado. Regístrese de nuevo para recibir otro.',
  'register.start': 'Registrarse de nuevo',

  'dev_mail.title': 'Correo de desarrollo',
  'dev_mail.lead':
    'El correo más reciente que ha enviado este servicio, guardado en memoria. Esta página no existe en producción.',
  'dev_mail.none': 'Todavía no hay correo. Regístrese o solicite un código y actualice.',
  'dev_mail.hint':
    'Un entorno de pruebas solo escribe a direcciones como usted@example.com, a dominios verificados y a sus propietarios.',
  'dev_mail.reload': 'Actualizar',
  'dev_mail.message.title': 'Correo',
  'dev_mail.subject': 'Asunto',
  'dev_mail.to': 'Para',
  'dev_mail.sent': 'Enviado',
  'dev_mail.open': 'Abrir el enlace',
  'dev_mail.text': 'Como texto',
  'dev_mail.html': 'Como HTML',
  'dev_mail.back': 'Todo el correo',
}
