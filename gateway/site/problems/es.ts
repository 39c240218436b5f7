/** Problem types in Spanish. */
import type { ProblemTexts } from '../problem-advice.js'

export const es: ProblemTexts = {
  words: {
    status: 'Estado {status}, código de error',
    cause: 'Causa',
    remedy: 'Qué hacer',
    retry: 'Reintento',
    all: 'Todos los tipos de error',
    intro:
      'Los errores de este servicio son documentos de problema (RFC 9457). El miembro `type` es la dirección de una de estas páginas.',
  },
  retry: {
    changed: 'No repitas la misma solicitud: volverá a fallar. Envía una corregida.',
    token: 'Repite la solicitud una vez con otro token.',
    never: 'No repitas la solicitud.',
    same: 'Repite la misma solicitud. Repite una escritura solo con su `idempotency-key`.',
    wait: 'Espera los segundos que indica `Retry-After` y repite la misma solicitud.',
    backoff:
      'Espera lo que indique `Retry-After`; si falta, un segundo, que se duplica en cada intento. Repite una escritura solo con su `idempotency-key`.',
  },
  types: {
    'bad-request': [
      'Solicitud incorrecta',
      'La solicitud está mal formada, falta un miembro obligatorio o un valor no es válido. El miembro `errors` sitúa cada fallo con un puntero JSON, si el servidor lo conoce.',
      'Lee `errors` y `detail`, y compara la solicitud con su operación en `/openapi.json`.',
    ],
    unauthorized: [
      'No autenticado',
      'Faltan las credenciales o no son válidas. `WWW-Authenticate` indica el esquema y los metadatos del servidor de autorización.',
      'Envía un token de acceso de este servicio en la cabecera `Authorization`. `/auth.md` explica cómo obtener uno.',
    ],
    'token-expired': [
      'Token caducado',
      'El token de acceso ha caducado.',
      'Usa el token de actualización o inicia sesión de nuevo.',
    ],
    'token-revoked': [
      'Token revocado',
      'El token de acceso se revocó antes de caducar.',
      'Inicia sesión de nuevo o pide al usuario una nueva delegación. Descarta el token antiguo.',
    ],
    'delegation-expired': [
      'Delegación caducada',
      'La delegación del usuario al agente ha caducado. Una actualización no devuelve un token nuevo.',
      'Inicia una nueva delegación y pide permiso al usuario.',
    ],
    'payment-required': [
      'Pago requerido',
      'El recurso es de pago. La respuesta contiene el precio y las formas de pago.',
      'Paga de una de las formas de la respuesta y repite la solicitud con el comprobante.',
    ],
    forbidden: [
      'Prohibido',
      'Quien llama está autenticado pero no tiene permiso: el inquilino, el rol o el tipo de token no lo permiten.',
      'Usa un token del inquilino correcto o pide el rol a un administrador. `detail` indica el motivo.',
    ],
    'insufficient-scope': [
      'Alcance insuficiente',
      'Al token le falta un alcance de esta operación. `WWW-Authenticate` lo indica.',
      'Obtén un token con el alcance que indica `WWW-Authenticate`.',
    ],
    'policy-denied': [
      'Denegado por una política',
      'Una política del inquilino o de la organización prohíbe la operación.',
      'Pide a un administrador del inquilino que cambie la política.',
    ],
    'not-found': [
      'No encontrado',
      'El recurso no existe o pertenece a un inquilino que quien llama no puede ver.',
      'Comprueba la ruta y el identificador, y que el token pertenezca al inquilino del objeto.',
    ],
    'method-not-allowed': [
      'Método no permitido',
      'El recurso existe pero no admite este método. La cabecera `Allow` enumera sus métodos.',
      'Usa uno de los métodos de la cabecera `Allow`.',
    ],
    'not-acceptable': [
      'Formato no aceptable',
      'La cabecera `Accept` excluye todos los tipos de contenido de esta operación.',
      'Envía `Accept: application/json` o ninguna cabecera `Accept`.',
    ],
    'request-timeout': [
      'Tiempo de la solicitud agotado',
      'La solicitud no llegó completa a tiempo.',
      'Comprueba la conexión y envía el cuerpo sin pausas.',
    ],
    conflict: [
      'Conflicto',
      'La solicitud contradice el estado actual; por ejemplo, una clave ya registrada o un `idempotency-key` cuya primera solicitud sigue en curso.',
      'Vuelve a leer el objeto y decide según su estado actual. `detail` indica el conflicto.',
    ],
    gone: [
      'Ya no está disponible',
      'El recurso existió y ya no está disponible.',
      'Empieza de nuevo: pide un nuevo enlace, código u objeto.',
    ],
    'payload-too-large': [
      'Solicitud demasiado grande',
      'El cuerpo de la solicitud supera el límite de esta operación.',
      'Envía un cuerpo más pequeño. `/openapi.json` contiene los límites de la operación.',
    ],
    'uri-too-long': [
      'Dirección demasiado larga',
      'El destino de la solicitud supera los 16 KiB.',
      'Envía los valores largos en el cuerpo en lugar de la dirección.',
    ],
    'unsupported-media-type': [
      'Tipo de contenido no admitido',
      'Esta operación no admite el `Content-Type` o el `Content-Encoding`.',
      'Envía el `Content-Type` que la operación indica en `/openapi.json`, sin `Content-Encoding`.',
    ],
    'misdirected-request': [
      'Host incorrecto',
      'Este servicio no atiende el host de la solicitud.',
      'Usa el host del emisor o de un inquilino. Operadores: añadid el host a `server.allowed_hosts`.',
    ],
    'unprocessable-content': [
      'Contenido no procesable',
      'La solicitud está bien formada pero no se puede procesar; por ejemplo, un `idempotency-key` ya usado con otro cuerpo.',
      'Usa un nuevo `idempotency-key` para una solicitud nueva o corrige lo que indica `detail`.',
    ],
    'too-early': [
      'Demasiado pronto',
      'Una prueba válida llegó antes de su duración mínima.',
      'Conserva la prueba y envíala después de la duración mínima.',
    ],
    'rate-limited': [
      'Demasiadas solicitudes',
      'Se superó un límite. `Retry-After` y `RateLimit` indican el tiempo de espera; `violated-policies`, los nombres de los límites.',
      'Envía menos solicitudes. La cabecera `RateLimit` indica cuántas quedan.',
    ],
    'headers-too-large': [
      'Cabeceras demasiado grandes',
      'Las cabeceras superan el límite de 64 campos o 16 KiB.',
      'Envía menos cabeceras o más cortas.',
    ],
    'server-error': [
      'Error del servidor',
      'Se produjo un error interno.',
      'Comunica el identificador de la solicitud (`x-request-id`) al operador de este servicio.',
    ],
    'not-implemented': [
      'No disponible',
      'Este despliegue no tiene configurada la función necesaria.',
      'Pide al operador que la configure. `/api/v1/capabilities` enumera lo que está disponible.',
    ],
    'bad-gateway': [
      'Respuesta incorrecta de otro servidor',
      'Un servidor externo dio una respuesta no válida.',
      'Comprueba ese servidor o inténtalo más tarde.',
    ],
    'service-unavailable': [
      'Servicio no disponible',
      'El servicio se está iniciando, está sobrecargado o una dependencia no está disponible.',
      'Espera. `/health/ready` indica cuándo está listo el servicio.',
    ],
    'gateway-timeout': [
      'Tiempo agotado',
      'La solicitud no terminó dentro de su límite de tiempo y se canceló.',
      'Inténtalo de nuevo. Si se repite, pide menos de una vez.',
    ],
    'version-not-supported': [
      'Versión de HTTP no admitida',
      'La línea de solicitud no indica una versión de HTTP que esta conexión admita.',
      'Envía HTTP/1.1, o acuerda HTTP/2 al abrir la conexión TLS (ALPN).',
    ],
  },
}
