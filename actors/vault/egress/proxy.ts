/** One call: validate, admit, unseal and inject the secret, relay, and record the end. */
import { denied } from '../../domain/vault/denied.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { invariant } from '../../../runtime/kernel/assert.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { ByteStream } from '../../../runtime/kernel/stream.js'
import type { Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { readPrincipal } from '../../domain/packed-principal.js'
import { type RefusedHeader, sanitizedHeaders } from './relay/headers.js'
import { heldResponse } from './relay/held-response.js'
import type { AdmissionRequest, Admitted, Admission } from './admission/admission.js'
import { withCall } from './approved-call.js'
import type { EgressMetrics } from './metrics.js'
import type { ManagedTokens } from '../vault/protocol.js'
import {
  TokenUnavailable,
  type UnsealedCredential,
  type CredentialCache,
} from './inject/unsealed-credential.js'
import { tokenFailure } from './inject/token-failure.js'
import type {
  HeaderFault,
  HeaderPair,
  NotRelayed,
  ProxyOutcome,
  ProxyRequest,
  RelayLimits,
  RelayReport,
  UrlFault,
} from './protocol.js'
import { ByteBudget } from './admission/byte-budget.js'
import { SHARE_IN_USE } from '../../platform/outbound-http/failures.js'
import { type HeldBytes, keysOf } from './admission/shares.js'
import {
  type FairShare,
  isRefused,
  type Release,
  type ShareGroup,
} from '../../../runtime/kernel/fairness/fair-share.js'
import { WHOLE_BYTES_MAX } from './relay/response-buffer.js'
import { injected, NotSent, type Outgoing, type Sending, signed, wholeBody } from './sending.js'
import { withToken } from './renewal.js'
import { sendWithRetry } from './relay/second-try.js'
import type { Signers } from './sign/signer.js'
import { createRedactor } from './redact/redaction.js'
import { type Relay, relay, type RelayJob, type RelayStart } from './relay/relay.js'
import { invalid, SPENT, withPlainUnreserved } from './admission/rules.js'
import { judgeTarget, type TargetRules } from '../../platform/outbound-http/targets.js'
import type { Upstreams } from '../../platform/outbound-http/upstreams.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import type { RevocationWatch } from './admission/revocation-watch.js'

export type ProxyNeeds = {
  readonly admission: Admission
  readonly revocationWatch: RevocationWatch
  readonly upstreams: Upstreams
  readonly credentialCache: CredentialCache
  readonly signers: Signers
  readonly managed: ManagedTokens
  readonly clock: Clock
  readonly metrics: EgressMetrics
  readonly rules: TargetRules
  readonly limits: RelayLimits
  /** Limits of calls with a buffered response. */
  readonly bufferedLimits: RelayLimits
  /** Places of concurrent calls. */
  readonly calls: FairShare
  readonly groups: TenantGroups
  readonly memoryOf: (tenantId: string, giveUp: () => boolean) => HeldBytes
  readonly bodyBytesMax: number
  readonly bufferedBytesMax: number
}

export function createProxy(needs: ProxyNeeds) {
  return async function proxyRequest(
    request: ProxyRequest,
    context: MessageContext,
  ): Promise<ProxyOutcome> {
    const principal = readPrincipal(request.principal)
    const caller = { principal, address: request.clientAddress }
    const outcome = await withinShare(needs, caller, request, context)
    if (outcome.tag !== 'relayed' && request.body instanceof ByteStream) {
      request.body.cancel('refused')
    }
    return outcome
  }
}

/** Acquires the call's share. Released when the call has its outcome and its relay has ended, or when it gives up. */
function withinShare(
  needs: ProxyNeeds,
  caller: Caller,
  request: ProxyRequest,
  context: MessageContext,
): ProxyOutcome | Promise<ProxyOutcome> {
  const known = needs.groups.of(caller.principal.tenantId)
  if (known instanceof Promise)
    return known.then((groups) => withinGroups(needs, caller, request, groups, context))
  return withinGroups(needs, caller, request, known, context)
}

function withinGroups(
  needs: ProxyNeeds,
  caller: Caller,
  request: ProxyRequest,
  groups: readonly ShareGroup[],
  context: MessageContext,
): ProxyOutcome | Promise<ProxyOutcome> {
  const { principal } = caller
  const giveUp = () => share.giveUp()
  const share = new Share(needs.memoryOf(principal.tenantId, giveUp))
  const release = needs.calls.tryAcquire(keysOf(principal), 1, { groups, giveUp })
  if (isRefused(release)) return release.refused === 'agent' ? TOO_MANY : BUSY
  share.enter(release)
  if (request.isBodyHeld === true && !share.held.take(request.bodyBytes ?? 0)) {
    share.leave()
    return BUSY
  }
  return validateAndRelay(needs, caller, request, share, context)
}

/** The share of a call, reference-counted by its running parts. */
class Share {
  readonly held: HeldBytes
  /** Its caller has an outcome, so it keeps its place until it ends. */
  isAnswered = false
  relay: Relay | undefined
  #isGivenUp = false
  #onGivenUp: (() => void) | undefined
  #release: Release = () => {}
  #parts = 0

  constructor(held: HeldBytes) {
    this.held = held
  }

  enter(release = this.#release): void {
    this.#release = release
    this.#parts += 1
  }

  /** Another tenant has its place or its memory now. */
  get isGivenUp(): boolean {
    return this.#isGivenUp
  }

  /** Ends a call without an answer for a tenant that has no place. */
  giveUp(): boolean {
    if (this.isAnswered || this.#isGivenUp) return false
    this.#isGivenUp = true
    this.#onGivenUp?.()
    this.relay?.giveUp()
    this.held.release()
    return true
  }

  /**
   * The result of a wait, which ends immediately when the call is given up.
   * @param discard takes a result that comes too late.
   * @throws {GivenUp}
   */
  whileHeld<T>(waiting: Promise<T>, discard: (late: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#onGivenUp = () => reject(new GivenUp())
      if (this.#isGivenUp) this.#onGivenUp()
      waiting.then((value) => (this.#isGivenUp ? discard(value) : resolve(value)), reject)
    })
  }

  leave(): void {
    this.#parts -= 1
    if (this.#parts > 0) return
    this.#release()
    this.held.release()
  }
}

/** The place was taken back before the request was sent. */
class GivenUp extends Error {
  override readonly name = 'GivenUp'
}

const TOO_MANY: ProxyOutcome = { tag: 'too_many_calls' }
const BUSY: ProxyOutcome = { tag: 'busy' }

/** Leaves the share at its end. */
async function validateAndRelay(
  needs: ProxyNeeds,
  caller: Caller,
  request: ProxyRequest,
  share: Share,
  context: MessageContext,
): Promise<ProxyOutcome> {
  try {
    const { bodyBytes, credentialId } = request
    if (!isUuid(credentialId)) return invalid('/credential_id', 'The credential_id must be a UUID.')
    const target = judgeTarget(request.url, needs.rules)
    if (target.tag === 'refused') return urlRefused(target.fault)
    const { url } = target
    const { pathname } = url
    const plain = withPlainUnreserved(pathname)
    // An assignment parses the URL again.
    if (plain !== pathname) url.pathname = plain
    const sanitized = sanitizedHeaders(request.headers)
    if (sanitized.tag === 'refused') return headerRefused(sanitized)
    if (bodyBytes !== null && bodyBytes > needs.bodyBytesMax) return { tag: 'body_too_large' }
    const asked: AdmissionRequest = {
      caller,
      credentialId,
      call: {
        method: request.method,
        url,
        headers: request.headers,
        authScheme: request.authScheme,
        bodyBytes: bodyBytes ?? 0,
      },
      requestId: context.requestId,
      approvalId: request.approvalId,
      toApprove: null,
    }
    const deciding = needs.admission.admit(asked)
    // Without a promise the call goes on in this turn.
    let admitted = deciding instanceof Promise ? await deciding : deciding
    let sent = request
    if (admitted.tag === 'call_wanted') {
      const body = await share.whileHeld(wholeBody(needs, request, share.held), () => undefined)
      if (body !== null) sent = { ...request, body, bodyBytes: body.byteLength }
      admitted = await needs.admission.admit(withCall(asked, sent, { url, ...sanitized }, body))
      invariant(admitted.tag !== 'call_wanted', 'the call was given')
    }
    if (admitted.tag !== 'admitted') return admitted
    const headers = admitted.allowRange ? sanitized.headers : withoutRange(sanitized.headers)
    const { tenantId } = caller.principal
    const outgoing = { request: sent, url, headers, tenantId }
    const byteBudget = byteBudgetOf(needs, admitted)
    let credential: UnsealedCredential | undefined
    let begun: Begun
    try {
      const unsealing = needs.credentialCache.unseal(tenantId, admitted.row)
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
      if (error instanceof GivenUp) return BUSY
      if (error instanceof NotSent) return error.outcome
      if (error instanceof TokenUnavailable) return tokenFailure(error.why)
      throw error
    }
    const outcome = outcomeOf(needs, sent, begun, share, context)
    return outcome instanceof Promise ? await outcome : outcome
  } catch (error) {
    // While the body was read.
    if (error instanceof GivenUp) return BUSY
    if (error instanceof NotSent) return error.outcome
    throw error
  } finally {
    share.isAnswered = true
    share.leave()
  }
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
    const unseal = () =>
      share.whileHeld(
        Promise.resolve(needs.credentialCache.unseal(outgoing.tenantId, row)),
        (late) => late.release(),
      )
    return withToken(needs, outgoing, credential, token, { ...uses, unseal })
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

/** Redaction cannot find a secret that is split over several ranges. */
function withoutRange(headers: readonly HeaderPair[]): readonly HeaderPair[] {
  return headers.filter(([name]) => name !== 'range' && name !== 'if-range')
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

const PROHIBITED = denied('address_not_public', 'The host has no public address.')

export function urlRefused(fault: UrlFault): NotRelayed {
  if (fault === 'url_host') return PROHIBITED
  return invalid('/url', URL_DETAILS[fault])
}

const URL_DETAILS: Readonly<Record<Exclude<UrlFault, 'url_host'>, string>> = {
  url_syntax:
    'The URL must be absolute and well-formed. Percent-encode spaces and similar characters.',
  url_scheme: 'The URL must use https.',
  url_userinfo: 'The URL must not contain a user or password.',
  url_fragment: 'The URL must not contain a fragment.',
  url_port: 'The URL must use port 443.',
}

export function headerRefused({ fault, name }: RefusedHeader): NotRelayed {
  return invalid('/headers', HEADER_DETAILS[fault](JSON.stringify(name)))
}

const HEADER_DETAILS: Readonly<Record<HeaderFault, (name: string) => string>> = {
  header_name: (name) => `${name} is not a valid header name.`,
  header_value: (name) => `The value of ${name} contains characters that a header cannot hold.`,
  header_repeated: (name) => `${name} must not occur more than once.`,
  header_duplicates_injected: (name) =>
    `The proxy sets ${name}, so the request must not contain it.`,
}
