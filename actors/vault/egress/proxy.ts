/**
 * One call from its request to its outcome: judged, admitted by the ledger, the secret opened and put
 * in, relayed, and booked when it has ended.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { invariant } from '../../../runtime/kernel/assert.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { ByteStream } from '../../../runtime/kernel/stream.js'
import { isUuid } from '../../domain/ids.js'
import { type RefusedHeader, sanitizedHeaders, withCredential } from './relay/headers.js'
import { heldAnswer } from './relay/held-response.js'
import { withQuery } from './inject/injection.js'
import type { Admitted, Ledger } from './admission/admission.js'
import type { EgressMetrics } from './metrics.js'
import type { ManagedTokens } from '../vault/managed-tokens.js'
import { NoToken, type Opened, type Openings } from './inject/unsealed-credential.js'
import type {
  HeaderFault,
  HeaderPair,
  ProxyOutcome,
  ProxyRequest,
  RelayLimits,
  RelayReport,
  UrlFault,
} from './protocol.js'
import { Purse } from './admission/byte-budget.js'
import { SHARE_IN_USE } from '../../platform/outbound-http/failures.js'
import { type EgressShares, HeldBytes, keysOf } from './admission/shares.js'
import { isRefused } from '../../../runtime/kernel/fairness/fair-share.js'
import { WHOLE_BYTES_MAX } from './relay/response-buffer.js'
import { createRedactor } from './redact/redaction.js'
import { relay, type RelayJob, type RelayStart } from './relay/relay.js'
import { denied, invalid, SPENT, withPlainUnreserved } from './admission/rules.js'
import { judgeTarget, type TargetRules } from '../../platform/outbound-http/targets.js'
import type { Upstreams } from '../../platform/outbound-http/upstreams.js'
import type { Watch } from './admission/revocation-watch.js'

export type ProxyNeeds = {
  readonly ledger: Ledger
  readonly watch: Watch
  readonly upstreams: Upstreams
  readonly openings: Openings
  readonly managed: ManagedTokens
  readonly clock: Clock
  readonly metrics: EgressMetrics
  readonly rules: TargetRules
  readonly limits: RelayLimits
  /** Of calls whose answer is waited for as a whole. */
  readonly bufferedLimits: RelayLimits
  readonly shares: EgressShares
  readonly bodyBytesMax: number
  readonly bufferedBytesMax: number
}

export function createProxy(needs: ProxyNeeds) {
  return async function proxy(
    request: ProxyRequest,
    context: MessageContext,
  ): Promise<ProxyOutcome> {
    const outcome = await shared(needs, request, context)
    if (outcome.tag !== 'relayed' && request.body instanceof ByteStream) {
      request.body.cancel('refused')
    }
    return outcome
  }
}

/** Takes the call's share. It is given back once, when the call has its outcome and its relay has ended. */
async function shared(
  needs: ProxyNeeds,
  request: ProxyRequest,
  context: MessageContext,
): Promise<ProxyOutcome> {
  const { principal } = request.caller
  const call = needs.shares.calls.tryAcquire(keysOf(principal))
  if (isRefused(call)) return call.refused === 'total' ? BUSY : TOO_MANY
  const held = new HeldBytes(needs.shares.bytes, principal.tenantId)
  const share = new Share(held, () => {
    call()
    held.release()
  })
  share.enter()
  try {
    if (request.isBodyHeld === true && !held.take(request.bodyBytes ?? 0)) return BUSY
    return await judged(needs, request, context, share)
  } finally {
    share.leave()
  }
}

/** What a call holds of the shares, for as long as a part of the call goes on. */
class Share {
  readonly held: HeldBytes
  readonly #release: () => void
  #parts = 0

  constructor(held: HeldBytes, release: () => void) {
    this.held = held
    this.#release = release
  }

  enter(): void {
    this.#parts += 1
  }

  leave(): void {
    this.#parts -= 1
    if (this.#parts === 0) this.#release()
  }
}

const TOO_MANY: ProxyOutcome = { tag: 'too_many_calls' }
const BUSY: ProxyOutcome = { tag: 'busy' }

async function judged(
  needs: ProxyNeeds,
  request: ProxyRequest,
  context: MessageContext,
  share: Share,
): Promise<ProxyOutcome> {
  const { bodyBytes } = request
  const { credentialId } = request
  if (!isUuid(credentialId)) return invalid('/credential_id', 'The credential is named by a UUID.')
  const target = judgeTarget(request.url, needs.rules)
  if (target.tag === 'refused') return urlRefused(target.fault)
  target.url.pathname = withPlainUnreserved(target.url.pathname)
  const sanitized = sanitizedHeaders(request.headers)
  if (sanitized.tag === 'refused') return headerRefused(sanitized)
  if (bodyBytes !== null && bodyBytes > needs.bodyBytesMax) return { tag: 'body_too_large' }
  const admitted = await needs.ledger.admit({
    caller: request.caller,
    credentialId,
    call: {
      method: request.method,
      url: target.url,
      headers: request.headers,
      authScheme: request.authScheme,
      bodyBytes: bodyBytes ?? 0,
    },
    requestId: context.requestId,
  })
  if (admitted.tag !== 'admitted') return admitted
  const judged = {
    url: target.url,
    headers: admitted.allowRange ? sanitized.headers : withoutRange(sanitized.headers),
  }
  let begun: Begun
  try {
    begun = await begin(needs, request, judged, admitted, context, share)
  } catch (error) {
    if (error instanceof NoToken) return withoutToken(error.why)
    throw error
  }
  return answerOf(request, begun, context, share, {
    handoverMs: needs.bufferedLimits.hopTimeoutMs,
    bytesMax: needs.bufferedBytesMax,
  })
}

/** What goes out, before the secret is put in. */
type Judged = { readonly url: URL; readonly headers: readonly HeaderPair[] }
/** `report` is there once the relay has ended. */
type Begun = { readonly start: RelayStart; readonly report: RelayReport | null }

/** Opens the secret, puts it in, and lets the request go. It is given back when the call ends. */
async function begin(
  needs: ProxyNeeds,
  request: ProxyRequest,
  { url, headers }: Judged,
  { facts, row, budget }: Admitted,
  context: MessageContext,
  share: Share,
): Promise<Begun> {
  const { ledger, watch, upstreams, openings, managed, clock, metrics } = needs
  const limits = request.stream ? needs.limits : needs.bufferedLimits
  const { principal } = facts.caller
  const purse =
    budget === null
      ? null
      : new Purse(budget.takenBytes, (least, most) => ledger.more(facts, least, most))
  let opened: Opened | undefined
  try {
    opened = await openings.open(principal.tenantId, row)
    const { header, query } = opened.injection
    const path = url.pathname + url.search
    const job: RelayJob = {
      method: request.method,
      path: query === null ? path : withQuery(path, query),
      headers: header === null ? headers : credentialed(request, headers, header),
      body: request.body,
      bodyBytes: request.bodyBytes,
      limits,
      answerBytesMax: request.stream ? null : needs.bufferedBytesMax,
      purse,
      redactor: createRedactor(opened.needles),
      context,
    }
    const upstream = upstreams.of(url.origin, row.id, principal.tenantId)
    const given = opened
    metrics.began()
    return await new Promise<Begun>((resolve) => {
      const begun: { report: RelayReport | null; start: RelayStart } = {
        report: null,
        start: undefined as never,
      }
      let unwatch: (() => void) | undefined
      share.enter()
      const running = relay(upstream, job, clock, {
        onStart(start) {
          begun.start = start
          // An access token that its own upstream refuses is not used again, whenever it was to expire.
          const isRefused = start.tag === 'relaying' && start.status === 401
          if (isRefused && row.tokenOf !== null) managed.spoiled(principal.tenantId, row.tokenOf)
          resolve(begun)
        },
        onEnd(report) {
          begun.report = report
          unwatch?.()
          given.release()
          share.leave()
          metrics.ended(report)
          ledger.close({ facts, report, leftBytes: purse?.empty() ?? 0 })
        },
      })
      if (begun.report === null) {
        unwatch = watch.add({ relay: running, principal, authority: facts.authority })
      }
    })
  } catch (error) {
    // Admitted and not sent: what was taken goes back, and the end is told.
    opened?.release()
    ledger.close({ facts, report: UNSENT, leftBytes: purse?.empty() ?? 0 })
    throw error
  }
}

/** Slices of an answer that shows the secret hold no whole one, so redaction does not see it. */
function withoutRange(headers: readonly HeaderPair[]): readonly HeaderPair[] {
  return headers.filter(([name]) => name !== 'range' && name !== 'if-range')
}

function credentialed(
  { headers: sent }: ProxyRequest,
  headers: readonly HeaderPair[],
  header: HeaderPair,
): readonly HeaderPair[] {
  const all = withCredential(sent, headers, header)
  invariant(all.tag === 'headers', 'the fields were judged before')
  return all.headers
}

const UNSENT: RelayReport = {
  outcome: 'upstream_error',
  bytes: 0,
  requestBytes: 0,
  responseBytes: 0,
  chunks: 0,
  durationMs: 0,
  redactions: 0,
  tokens: { input: null, output: null },
  proxyError: 'proxy_internal_error',
}

async function answerOf(
  { stream, body: sent }: ProxyRequest,
  begun: Begun,
  context: MessageContext,
  share: Share,
  { handoverMs, bytesMax }: { readonly handoverMs: number; readonly bytesMax: number },
): Promise<ProxyOutcome> {
  const { start } = begun
  if (start.tag === 'failed') return failed(start.report)
  const { status, headers, body, announcedBytes } = start
  if (stream || body instanceof Uint8Array) return { tag: 'relayed', status, headers, body }
  // The body has no other reader: a client that leaves ends the call here.
  const unfollow = context.onAbandoned(() => body.cancel('client_closed'))
  const expected = Math.min(announcedBytes, bytesMax)
  const collected = await collect(body, share.held, expected).finally(unfollow)
  if (collected === 'no_room') return BUSY
  if (collected === null) return failed(begun.report ?? UNSENT)
  if (sent instanceof ByteStream) sent.cancel('answered')
  const { chunks, bytes } = collected
  if (bytes <= WHOLE_BYTES_MAX) {
    return { tag: 'relayed', status, headers, body: Buffer.concat(chunks, bytes) }
  }
  share.enter()
  const handed = heldAnswer(chunks, handoverMs, () => share.leave())
  return { tag: 'relayed', status, headers, body: handed, bodyBytes: bytes }
}

type Collected = { readonly chunks: readonly Uint8Array[]; readonly bytes: number }

/**
 * The whole body; null where it breaks off. What the upstream announced is held before the body is read, so
 * an answer that finds no room costs its head alone.
 * @param expectedBytes 0 where nothing was announced.
 */
async function collect(
  body: ByteStream,
  held: HeldBytes,
  expectedBytes: number,
): Promise<Collected | null | 'no_room'> {
  let bytes = 0
  let heldBytes = 0
  const hold = (needed: number): boolean => {
    if (needed <= heldBytes) return true
    if (!held.take(needed - heldBytes)) return false
    heldBytes = needed
    return true
  }
  const chunks: Uint8Array[] = []
  try {
    let hasRoom = hold(expectedBytes)
    while (hasRoom) {
      const chunk = await body.read()
      if (chunk === undefined) return { chunks, bytes }
      chunks.push(chunk)
      bytes += chunk.byteLength
      hasRoom = hold(bytes)
    }
    body.cancel('no_room')
    return 'no_room'
  } catch {
    return null
  }
}

/** Why no answer came, in the words of the caller. */
function failed({ outcome, proxyError }: RelayReport): ProxyOutcome {
  switch (outcome) {
    case 'idle_timeout':
    case 'hop_timeout':
      return { tag: 'upstream_timeout', error: 'http_response_timeout' }
    case 'budget_exhausted':
      return SPENT
    case 'client_closed':
      return { tag: 'client_closed' }
    case 'revoked':
      return denied('The right to use the credential was withdrawn.')
    default:
      if (proxyError === 'destination_ip_prohibited') return PROHIBITED
      if (proxyError === SHARE_IN_USE) return BUSY
      return { tag: 'upstream_failed', error: proxyError ?? 'proxy_internal_error' }
  }
}

/** Why the credential that gives the token gave none. */
function withoutToken(why: NoToken['why']): ProxyOutcome {
  const failed = (error: string, detail: string): ProxyOutcome => ({
    tag: 'upstream_failed',
    error,
    detail,
  })
  switch (why.tag) {
    case 'gone':
      return denied('The credential is revoked.')
    case 'prohibited':
      return denied('The token endpoint of the credential is not on the public internet.')
    case 'refused':
      return failed(
        'proxy_configuration_error',
        `The token endpoint of the credential refuses what is stored: ${why.error}.`,
      )
    case 'malformed':
      return failed('proxy_configuration_error', 'The token endpoint gave no answer of OAuth.')
    case 'unavailable':
      return failed('destination_unavailable', 'The token endpoint of the credential is away.')
  }
}

const PROHIBITED = denied('The host is not on the public internet.')

function urlRefused(fault: UrlFault): ProxyOutcome {
  if (fault === 'url_host') return PROHIBITED
  return invalid('/url', URL_WORDS[fault])
}

const URL_WORDS: Readonly<Record<Exclude<UrlFault, 'url_host'>, string>> = {
  url_syntax: 'The URL is not a well-formed absolute one; spaces and the like are percent-encoded.',
  url_scheme: 'The URL is not of https, and only https is used.',
  url_userinfo: 'The URL has a user or password, which it must not.',
  url_fragment: 'The URL has a fragment, which is never sent.',
  url_port: 'The URL has a port other than 443.',
}

function headerRefused({ fault, name }: RefusedHeader): ProxyOutcome {
  return invalid('/headers', HEADER_WORDS[fault](JSON.stringify(name)))
}

const HEADER_WORDS: Readonly<Record<HeaderFault, (name: string) => string>> = {
  header_name: (name) => `${name} is no name of a header field.`,
  header_value: (name) => `The value of ${name} holds what no header field may.`,
  header_repeated: (name) => `${name} is sent more than once.`,
  header_duplicates_injected: (name) => `${name} carries the credential and is not for the caller.`,
}
