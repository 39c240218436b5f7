/** One call: admit, unseal and inject the secret, relay, and record the end. */
import { denied } from '../../domain/vault/denied.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { ByteStream } from '../../../runtime/kernel/stream.js'
import { readPrincipal } from '../../domain/packed-principal.js'
import type { Principal } from '../../domain/principal.js'
import { heldResponse } from './relay/held-response.js'
import type { Admitted } from './admission/admission.js'
import { admitCall, type AdmitNeeds, PROHIBITED } from './admitted-call.js'
import { BUSY, GivenUp, type Share, type ShareNeeds, withinShare } from './call-share.js'
import type { EgressMetrics } from './metrics.js'
import type { ManagedTokens, RejectedToken } from '../vault/protocol.js'
import {
  TokenUnavailable,
  type UnsealedCredential,
  type CredentialCache,
} from './inject/unsealed-credential.js'
import { tokenFailure } from './inject/token-failure.js'
import type { ProxyOutcome, ProxyRequest, RelayLimits, RelayReport } from './protocol.js'
import { ByteBudget } from './admission/byte-budget.js'
import { SHARE_IN_USE } from '../../platform/outbound-http/failures.js'
import type { HeldBytes } from './admission/shares.js'
import { WHOLE_BYTES_MAX } from './relay/response-buffer.js'
import { injected, type Outgoing, type Sending, signed } from './sending.js'
import { withToken } from './renewal.js'
import { sendWithRetry } from './relay/second-try.js'
import type { Signers } from './sign/signer.js'
import { createRedactor } from './redact/redaction.js'
import { relay, type RelayJob, type RelayStart } from './relay/relay.js'
import { SPENT } from './admission/rules.js'
import type { Upstreams } from '../../platform/outbound-http/upstreams.js'
import type { RevocationWatch } from './admission/revocation-watch.js'

export type ProxyNeeds = AdmitNeeds &
  ShareNeeds & {
    readonly revocationWatch: RevocationWatch
    readonly upstreams: Upstreams
    readonly credentialCache: CredentialCache
    readonly signers: Signers
    readonly managed: ManagedTokens
    readonly metrics: EgressMetrics
    /** Limits of calls with a buffered response. */
    readonly bufferedLimits: RelayLimits
    readonly bufferedBytesMax: number
  }

export function createProxy(needs: ProxyNeeds) {
  return async function proxyRequest(
    request: ProxyRequest,
    context: MessageContext,
  ): Promise<ProxyOutcome> {
    const principal = readPrincipal(request.principal)
    const outcome = await withinShare(needs, principal, request, (share) =>
      admitAndRelay(needs, principal, request, share, context),
    )
    if (outcome.tag !== 'relayed' && request.body instanceof ByteStream) {
      request.body.cancel('refused')
    }
    return outcome
  }
}

async function admitAndRelay(
  needs: ProxyNeeds,
  principal: Principal,
  request: ProxyRequest,
  share: Share,
  context: MessageContext,
): Promise<ProxyOutcome> {
  const admitting = admitCall(needs, principal, request, share, context)
  const call = admitting instanceof Promise ? await admitting : admitting
  if (call.tag !== 'admitted_call') return call
  const { admitted, outgoing } = call
  const byteBudget = byteBudgetOf(needs, admitted)
  let credential: UnsealedCredential | undefined
  let begun: Begun
  try {
    const unsealing = needs.credentialCache.unseal(outgoing.tenantId, admitted.row)
    // A token endpoint of the tenant's choice may be silent.
    credential =
      unsealing instanceof Promise
        ? await share.whileHeld(unsealing, (late) => late.release())
        : unsealing
    if (share.isGivenUp) throw new GivenUp()
    const making = sendingOf(needs, outgoing, credential, { byteBudget, share, admitted })
    const sending = making instanceof Promise ? await making : making
    const holds = { byteBudget, credential, share, sending }
    begun = await begin(needs, outgoing, admitted, holds, context)
  } catch (error) {
    // Admitted but not sent: return the bytes and record the end.
    credential?.release()
    const unusedBytes = byteBudget?.empty() ?? 0
    const { facts } = admitted
    needs.admission.close({ facts, report: UNSENT, unusedBytes, isBudgetSpent: false })
    if (error instanceof TokenUnavailable) return tokenFailure(error.why)
    throw error
  }
  const outcome = outcomeOf(needs, outgoing.request, begun, share, context)
  return outcome instanceof Promise ? await outcome : outcome
}

function byteBudgetOf({ admission }: ProxyNeeds, { facts, budget }: Admitted): ByteBudget | null {
  if (budget === null) return null
  return new ByteBudget(budget.takenBytes, (bytesMin, bytesMax) =>
    admission.more(facts, bytesMin, bytesMax),
  )
}

/** `report` is null while the relay runs. */
type Begun = {
  readonly start: RelayStart
  readonly report: RelayReport | null
  /** What the caller gets in place of the answer. */
  readonly refusal: ProxyOutcome | null
}
type Writable<T> = { -readonly [Member in keyof T]: T[Member] }

/** What a call holds until its relay ends. */
type Holds = {
  readonly byteBudget: ByteBudget | null
  readonly credential: UnsealedCredential
  readonly share: Share
  readonly sending: Sending
}

/** Adds the secret to the call, or signs it. Without a signature the call goes on in this turn. */
function sendingOf(
  needs: ProxyNeeds,
  outgoing: Outgoing,
  credential: UnsealedCredential,
  {
    byteBudget,
    share,
    admitted: { row },
  }: {
    readonly byteBudget: ByteBudget | null
    readonly share: Share
    readonly admitted: Admitted
  },
): Sending | Promise<Sending> {
  const { signing, token } = credential
  const uses = { credentialId: row.id, held: share.held, isMetered: byteBudget !== null }
  if (token !== null) {
    const renew = (rejected: RejectedToken) =>
      share.whileHeld(
        Promise.resolve(needs.credentialCache.unseal(outgoing.tenantId, row, rejected)),
        (late) => late.release(),
      )
    return withToken(needs, outgoing, credential, token, { ...uses, renew })
  }
  if (signing === null) return injected(outgoing, credential)
  return share.whileHeld(signed(needs, outgoing, signing, uses), (late) => late.release())
}

/** Starts the relay. Releases what the call holds when the relay ends. */
function begin(
  needs: ProxyNeeds,
  { request, url }: Outgoing,
  { facts, row }: Admitted,
  { byteBudget, credential, share, sending: first }: Holds,
  context: MessageContext,
): Promise<Begun> {
  const { admission, revocationWatch, upstreams, managed, clock, metrics } = needs
  const { principal } = facts.caller
  const upstream = upstreams.of(url.origin, row.id, principal.tenantId)
  metrics.began()
  return new Promise<Begun>((resolve) => {
    const begun: Writable<Begun> = { report: null, refusal: null, start: undefined as never }
    let unwatch: (() => void) | undefined
    share.enter()
    const end = (report: RelayReport) => {
      begun.report = report
      unwatch?.()
      credential.release()
      share.leave()
      metrics.ended(report)
      const unusedBytes = byteBudget?.empty() ?? 0
      const isBudgetSpent = byteBudget?.isSpent === true
      admission.close({ facts, report, unusedBytes, isBudgetSpent })
    }
    const jobOf = ({ path, headers, body, bodyBytes, encodings }: Sending): RelayJob => ({
      method: request.method,
      path,
      headers,
      body,
      bodyBytes,
      limits: request.stream ? needs.limits : needs.bufferedLimits,
      answerBytesMax: request.stream ? null : needs.bufferedBytesMax,
      byteBudget,
      redactor: createRedactor(encodings),
      context,
    })
    sendWithRetry(first, {
      relay: (sending, events) => {
        let hasEnded = false
        const running = relay(upstream, jobOf(sending), clock, {
          ...events,
          onEnd(report) {
            hasEnded = true
            sending.release()
            events.onEnd(report)
          },
        })
        if (hasEnded) return running
        share.relay = running
        unwatch?.()
        unwatch = revocationWatch.add({ relay: running, principal, authority: facts.authority })
        return running
      },
      isOver: () => share.isGivenUp || context.abandoned,
      onAbandoned: (listener) => context.onAbandoned(listener),
      onStart(start) {
        begun.start = start
        if (start.tag === 'relaying') begun.refusal = first.onAnswer?.(start.status) ?? null
        // A 401 discards the managed access token before its expiry.
        const isRefused = start.tag === 'relaying' && start.status === 401
        if (isRefused && row.tokenOf !== null)
          managed.reportRejected(principal.tenantId, row.tokenOf)
        resolve(begun)
      },
      onEnd: end,
    })
  })
}

export const UNSENT: RelayReport = {
  outcome: 'upstream_error',
  status: null,
  bytes: 0,
  requestBytes: 0,
  responseBytes: 0,
  chunks: 0,
  durationMs: 0,
  redactions: 0,
  tokens: { input: null, output: null },
  unreportedTokens: 0,
  isHeard: false,
  proxyError: 'proxy_internal_error',
}

function outcomeOf(
  needs: ProxyNeeds,
  { stream, body: sent }: ProxyRequest,
  begun: Begun,
  share: Share,
  context: MessageContext,
): ProxyOutcome | Promise<ProxyOutcome> {
  const { start, refusal } = begun
  if (start.tag === 'failed') return failed(start.report)
  const { status, headers, body } = start
  if (refusal !== null) {
    if (body instanceof ByteStream) body.cancel('refused')
    return refusal
  }
  if (stream || body instanceof Uint8Array) return { tag: 'relayed', status, headers, body }
  return buffered(needs, { ...start, body, sent, begun }, share, context)
}

type Relaying = Extract<RelayStart, { tag: 'relaying' }> & {
  readonly body: ByteStream
  readonly sent: ProxyRequest['body']
  readonly begun: Begun
}

async function buffered(
  { bufferedLimits: { hopTimeoutMs: handoverMs } }: ProxyNeeds,
  { status, headers, body, sent, begun }: Relaying,
  share: Share,
  context: MessageContext,
): Promise<ProxyOutcome> {
  // The response is buffered, so a disconnect is noticed here and not by its reader.
  const unfollow = context.onAbandoned(() => body.cancel('client_closed'))
  const collected = await collect(body, share.held).finally(unfollow)
  if (collected === 'no_room' || share.isGivenUp) return BUSY
  if (collected === null) return failed(begun.report ?? UNSENT)
  if (sent instanceof ByteStream) sent.cancel('answered')
  const { chunks, bytes } = collected
  if (bytes <= WHOLE_BYTES_MAX) {
    return { tag: 'relayed', status, headers, body: Buffer.concat(chunks, bytes) }
  }
  share.enter()
  const held = heldResponse(chunks, handoverMs, () => share.leave())
  return { tag: 'relayed', status, headers, body: held, bodyBytes: bytes }
}

type Collected = { readonly chunks: readonly Uint8Array[]; readonly bytes: number }

/**
 * Buffers the whole body; null when it breaks off. Bytes count when they arrive: an announced length costs an upstream
 * nothing, and would take the memory of all tenants.
 */
async function collect(body: ByteStream, held: HeldBytes): Promise<Collected | null | 'no_room'> {
  let bytes = 0
  const chunks: Uint8Array[] = []
  try {
    for (;;) {
      const chunk = await body.read()
      if (chunk === undefined) return { chunks, bytes }
      if (!held.take(chunk.byteLength)) break
      chunks.push(chunk)
      bytes += chunk.byteLength
    }
    body.cancel('no_room')
    return 'no_room'
  } catch {
    return null
  }
}

/** Maps the end of a relay without response to the outcome for the caller. */
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
      return denied('authorization_revoked', 'The authorization to use the credential was revoked.')
    default:
      if (proxyError === 'destination_ip_prohibited') return PROHIBITED
      if (proxyError === SHARE_IN_USE) return BUSY
      return { tag: 'upstream_failed', error: proxyError ?? 'proxy_internal_error' }
  }
}
