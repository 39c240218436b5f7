/** A call with its credential, as it goes on the wire. A signed call may be sent a second time, signed again. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import { invariant } from '../../../runtime/kernel/assert.js'
import { ByteStream } from '../../../runtime/kernel/stream.js'
import { granteeOf } from '../../domain/grantee.js'
import { readPrincipal } from '../../domain/packed-principal.js'
import { readAuthScheme } from '../../domain/vault/egress.js'
import type { HeldBytes } from './admission/shares.js'
import { withPlainQuotes } from './admission/rules.js'
import { withQuery } from './inject/injection.js'
import type { Signing, UnsealedCredential } from './inject/unsealed-credential.js'
import type { HeaderPair, ProxyOutcome, ProxyRequest, RelayLimits } from './protocol.js'
import { SecretEncodings } from './redact/redaction.js'
import { withCredential } from './relay/headers.js'
import type { RefusingAnswer, Signer, Signers, UnsignedCall } from './sign/signer.js'

/** The upstream request before its credential is added. */
export type Outgoing = {
  readonly request: ProxyRequest
  readonly url: URL
  readonly headers: readonly HeaderPair[]
  readonly tenantId: string
}

export type Sending = {
  readonly path: string
  readonly headers: readonly HeaderPair[]
  readonly body: ByteStream | Uint8Array | null
  readonly bodyBytes: number | null
  /** What redaction removes from the response. */
  readonly encodings: SecretEncodings
  /** Makes the second try after an answer, or null. Null: the call is sent once. */
  readonly again: ((answer: RefusingAnswer) => Promise<Sending | null>) | null
  /** Hears the status of the answer of the upstream. @returns what the caller gets in place of it. */
  readonly onAnswer?: (status: number) => ProxyOutcome | null
  /** Wipes what only this call uses. */
  readonly release: () => void
}

/** The call is not sent. The caller gets the outcome. */
export class NotSent extends Error {
  override readonly name = 'NotSent'
  readonly outcome: ProxyOutcome

  constructor(outcome: ProxyOutcome) {
    super(`not sent: ${outcome.tag}`)
    this.outcome = outcome
  }
}

/** With the secret in a header or parameter. */
export function injected(outgoing: Outgoing, credential: UnsealedCredential): Sending {
  const { request, headers } = outgoing
  const { header, query } = credential.injection
  const path = pathOf(outgoing)
  return {
    path: query === null ? path : withQuery(path, query),
    headers: header === null ? headers : credentialed(request, headers, header),
    body: request.body,
    bodyBytes: request.bodyBytes,
    encodings: credential.encodings,
    again: null,
    release: () => {},
  }
}

const pathOf = ({ request, url }: Outgoing) =>
  url.pathname + withPlainQuotes(url.search, request.url)

function credentialed(
  { headers: sent }: ProxyRequest,
  headers: readonly HeaderPair[],
  header: HeaderPair,
): readonly HeaderPair[] {
  const all = withCredential(sent, headers, header)
  invariant(all.tag === 'headers', 'the headers were validated before')
  return all.headers
}

export type SigningNeeds = {
  readonly signers: Signers
  readonly clock: Clock
  readonly limits: RelayLimits
  readonly bodyBytesMax: number
}

/** What a signed call uses of the call's share. */
type Uses = {
  readonly credentialId: string
  readonly held: HeldBytes
  /** Bytes count as they are sent. */
  readonly isMetered: boolean
  /** Absent where the service sends the call. */
  readonly handedOut?: UnsignedCall['handedOut']
}

/** Reads the body and signs the call. @throws {NotSent} */
export async function signed(
  needs: SigningNeeds,
  outgoing: Outgoing,
  { scheme, secret }: Signing,
  uses: Uses,
): Promise<Sending> {
  const { request, url, headers, tenantId } = outgoing
  const signer = needs.signers[scheme] as Signer
  const isRead = signer.readsBody?.({ headers, origin: url.origin }, secret as never) ?? true
  const body = isRead ? await wholeBody(needs, request, uses.held) : null
  const unsigned: UnsignedCall = {
    method: request.method,
    origin: url.origin,
    host: url.host,
    path: pathOf(outgoing),
    headers,
    body,
    now: needs.clock.now(),
    tenantId,
    credentialId: uses.credentialId,
    agentId: granteeOf(readPrincipal(request.principal)).agentId,
    handedOut: uses.handedOut,
  }
  const sent = uses.isMetered && body !== null ? () => ByteStream.from(body) : () => body
  const authScheme = readAuthScheme(scheme)!

  async function sending(call: UnsignedCall, isFirst: boolean): Promise<Sending> {
    const made = await signer.sign(call, secret as never)
    if (made.tag === 'refused') throw new NotSent(made.outcome)
    const encodings = new SecretEncodings(made.secrets.map(bytesOf), authScheme, (count) =>
      uses.held.take(count),
    )
    const { again } = signer
    const canRepeat = isFirst && again !== undefined && (isRead || request.body === null)
    return {
      path: made.path,
      headers: made.headers,
      body: isRead ? sent() : request.body,
      bodyBytes: isRead ? (body?.byteLength ?? request.bodyBytes) : request.bodyBytes,
      encodings,
      again: canRepeat
        ? async (answer) => {
            const change = again(answer, call)
            return change && sending({ ...call, ...change }, false)
          }
        : null,
      release: () => encodings.wipe(),
    }
  }
  return sending(unsigned, true)
}

const bytesOf = (secret: string | Uint8Array) =>
  typeof secret === 'string' ? Buffer.from(secret, 'utf8') : secret

/** The whole body of the request, in the memory of the call. */
export async function wholeBody(
  { bodyBytesMax, limits, clock }: Omit<SigningNeeds, 'signers'>,
  { body, isBodyHeld }: ProxyRequest,
  held: HeldBytes,
): Promise<Uint8Array | null> {
  if (!(body instanceof ByteStream)) return body
  const endMs = clock.monotonicMs() + limits.hopTimeoutMs
  const stop = (outcome: ProxyOutcome) => {
    body.cancel('not_signed')
    return new NotSent(outcome)
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const leftMs = Math.min(limits.idleGapMs, endMs - clock.monotonicMs())
    const chunk = await within(leftMs, body.read()).catch(() => {
      throw stop({ tag: 'client_closed' })
    })
    if (chunk === 'late') throw stop({ tag: 'upstream_timeout', error: 'http_response_timeout' })
    if (chunk === undefined) return Buffer.concat(chunks, bytes)
    bytes += chunk.byteLength
    if (bytes > bodyBytesMax) throw stop({ tag: 'body_too_large' })
    if (isBodyHeld !== true && !held.take(chunk.byteLength)) throw stop({ tag: 'busy' })
    chunks.push(chunk)
  }
}

function within<T>(limitMs: number, reading: Promise<T>): Promise<T | 'late'> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve('late'), Math.max(0, limitMs))
    reading.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
