/** A call to AWS with the fields of its signature. Pure. */
import type { AwsSigV4Secret } from '../../../../domain/vault/secret-documents/aws-sigv4.js'
import type { HeaderPair } from '../../protocol.js'
import {
  type RefusingAnswer,
  type SignedCall,
  type UnsignedCall,
  withoutSignature,
} from '../signer.js'
import {
  ALGORITHM,
  amzDate,
  canonicalRequest,
  isS3,
  type Keys,
  type Scope,
  sha256,
  signatureOf,
} from './canonical.js'

const UNSIGNED = 'UNSIGNED-PAYLOAD'
const NO_BYTES = new Uint8Array(0)
/** What a caller's signature consists of. Other `x-amz-` fields are a part of the request. */
const CALLERS =
  /^(?:authorization|signature.*|content-digest|x-amz-(?:date|security-token|content-sha256))$/
/** What is signed besides `host` and `x-amz-*`. Proxies on the way may change other fields. */
const SIGNED_FIELDS: ReadonlySet<string> = new Set(['content-md5', 'content-type', 'range'])
/** Services other than S3 whose bodies may be unsigned. */
const UNSIGNED_SERVICES: ReadonlySet<string> = new Set(['vpc-lattice-svcs'])
/** How AWS says that a signature is too old or too new. */
const SKEWED =
  /RequestTimeTooSkewed|RequestExpired|RequestInTheFuture|Signature expired|Signature not yet current/
const SKEW_MS_MIN = 240_000

export const keysIn = (secret: AwsSigV4Secret): Keys => ({
  accessKeyId: secret.access_key_id,
  secretAccessKey: secret.secret_access_key,
  sessionToken: secret.session_token ?? null,
})

/** The call with the fields of its signature. */
export function signedCall(call: UnsignedCall, keys: Keys, scope: Scope): SignedCall {
  // In a query, AWS reads a plus sign as a space. Its canonical form is the escape.
  const path = call.path.replace(/\?.*$/s, (query) => query.replaceAll('+', '%20'))
  const sent = sentHash(call.headers)
  const payloadHash = isUnsigned(call, scope) ? UNSIGNED : sha256(call.body ?? NO_BYTES)
  const date = amzDate(call.now)
  const headers: HeaderPair[] = [
    ...withoutSignature(call.headers, [], CALLERS),
    ['x-amz-date', date],
    ...(keys.sessionToken === null ? [] : [['x-amz-security-token', keys.sessionToken] as const]),
    // S3 needs it, and so do other services whose SDK sends it.
    ...(isS3(scope) || sent !== undefined ? [['x-amz-content-sha256', payloadHash] as const] : []),
  ]
  const covered = headers.filter(([name]) => SIGNED_FIELDS.has(name) || name.startsWith('x-amz-'))
  const { text, signedHeaders } = canonicalRequest(
    { method: call.method, path, headers: [['host', call.host], ...covered], payloadHash },
    scope,
  )
  const { key, signature, credential } = signatureOf(text, keys, scope, date)
  const hex = signature.toString('hex')
  const authorization = `${ALGORITHM} Credential=${credential}, SignedHeaders=${signedHeaders}, Signature=${hex}`
  const secrets = [
    keys.secretAccessKey,
    ...(keys.sessionToken === null ? [] : [keys.sessionToken]),
    key,
    signature,
    hex,
  ]
  return { tag: 'signed', path, headers: [...headers, ['authorization', authorization]], secrets }
}

/** The caller asks for it, and the service accepts it. */
export const isUnsigned = ({ headers }: Pick<UnsignedCall, 'headers'>, scope: Scope | null) =>
  sentHash(headers) === UNSIGNED &&
  scope !== null &&
  (isS3(scope) || UNSIGNED_SERVICES.has(scope.service))

const sentHash = (headers: readonly HeaderPair[]) =>
  headers
    .find(([name]) => name === 'x-amz-content-sha256')?.[1]
    .trim()
    .toUpperCase()

/** The time of the upstream. */
function dateOf(headers: RefusingAnswer['headers']): Date | null {
  const ms = Date.parse([headers['date'] ?? ''].flat()[0] ?? '')
  return Number.isNaN(ms) ? null : new Date(ms)
}

/** With the time of the upstream, whose clock differs. */
export function signedAgain(
  { status, headers, text }: RefusingAnswer,
  { now, method }: UnsignedCall,
): Partial<UnsignedCall> | null {
  const date = dateOf(headers)
  if (date === null) return null
  const isFar = Math.abs(date.getTime() - now.getTime()) > SKEW_MS_MIN
  // The answer to HEAD has no text.
  const isSkewed = method === 'HEAD' ? status === 403 && isFar : SKEWED.test(text)
  return isSkewed ? { now: date } : null
}
