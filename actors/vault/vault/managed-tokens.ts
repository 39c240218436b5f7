/**
 * Managed access tokens of OAuth credentials: cached until 60 s before they expire, refreshed by one
 * caller at a time. Within a process concurrent callers share an attempt. Across processes a lease in
 * the row names the refresher. Others wait up to 5 s for its outcome; then a token that still lives
 * serves them. An attempt goes on without the caller that began it.
 *
 * An upstream may rotate the refresh token on every use. Its answer is kept, sealed, before anything else.
 * Then the new refresh token is stored with the access token in one transaction, before the access token
 * is used. The next attempt stores what a killed process had kept. Only a process that is killed while the
 * answer is on its way loses it: the next attempt sends the previous refresh token, which upstreams with a
 * grace period accept and others refuse with `invalid_grant`.
 */
import type {
  ManagedOutcome,
  ManagedToken,
  ManagedTokens,
  RefreshFailure,
  RejectedToken,
} from './protocol.js'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../../runtime/kernel/log.js'
import {
  claimRefresh,
  dropManagedToken,
  endManagedToken,
  findManagedToken,
  keepManagedToken,
  keepManagedTokenUntil,
  keepRefreshFailure,
  keepTokenAnswer,
  managedTokenContext,
  type ManagedTokenRow,
  releaseRefresh,
  tokenAnswerContext,
} from '../../../storage/vault/managed-tokens.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  credentialSecretContext,
  findVaultCredential,
  keepRenewedSecret,
  lockVaultCredential,
  type SecretCredentialRow,
} from '../../../storage/vault/vault-credentials.js'
import { isTokenScheme } from '../../domain/vault/egress.js'
import { canLapse, lapse } from './lapse.js'
import type { VaultMetrics } from './metrics.js'
import type { TokenAnswer } from './token-answer.js'
import { ASK_MS_MAX, type TokenEndpoint } from './token-endpoint.js'
import {
  isOnAllowedHost,
  readTokenSource,
  refreshTokenOf,
  type TokenSource,
  withRefreshToken,
} from './token-source.js'
import { keepLateRevocation } from '../../../storage/vault/revocations.js'
import { cannotRefresh, connectionOf, ofConnector, reopened } from './connections/refresh.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

/** Tokens are refreshed this long before they expire. */
const EXPIRY_MARGIN_MS = 60_000
/** Lifetime of a token without `expires_in`. */
const DEFAULT_LIFETIME_MS = 5 * 60_000
/** From the claim of the lease to the request for a token. */
const PREPARE_MS_MAX = 5_000
/** From the answer to its commit, however often that fails. */
const STORE_MS_MAX = 30_000
/** The clocks of two processes may differ by this much. */
const SKEW_MS_MAX = 5_000
/** No refresh token is sent a second time while its first answer may still be stored. */
const LEASE_MS = PREPARE_MS_MAX + ASK_MS_MAX + STORE_MS_MAX + SKEW_MS_MAX
const WAIT_MS_MAX = 5_000
const POLL_MS = 100
/** A token of a `token_of` younger than this is not refreshed when an API rejects it. */
const REJECTABLE_AFTER_MS = 60_000
/** When a fresh token is rejected too, no rejection ends a token for this long. */
const KEPT_MS = 60_000
/** A refusal is cached for this long, because only a person can fix its cause. */
const REFUSED_KEPT_MS = 60_000
const UNAVAILABLE_KEPT_MS = 5_000

export type ManagedTokensNeeds = WriteNeeds & {
  /** How long a person can answer a request to connect an account again. */
  readonly connectionTtlSecs: number
  readonly sealer: Sealer
  readonly endpoint: TokenEndpoint
  readonly log: Logger
  readonly metrics: VaultMetrics
}

type Granted = Extract<TokenAnswer, { tag: 'granted' }>
/** The state of the credential at the start of an attempt. */
type Attempt = {
  readonly tenantId: string
  readonly credentialId: string
  readonly refresher: string
  readonly credential: SecretCredentialRow & { readonly secret: Uint8Array }
  readonly known: ManagedTokenRow | undefined
  /** Before the lease was claimed. */
  readonly claimedMs: number
}

const BUSY: RefreshFailure = { tag: 'unavailable', fault: 'busy', retryAfterSecs: 1 }

export function createManagedTokens(needs: ManagedTokensNeeds): ManagedTokens {
  const running = new Map<string, Promise<ManagedOutcome>>()
  const { database, clock, log } = needs
  const warned = (error: unknown) =>
    void log.warn({ err: error }, 'vault: could not discard a rejected access token')
  const obtained = async (
    tenantId: string,
    credentialId: string,
    rejected?: RejectedToken,
  ): Promise<ManagedOutcome> => {
    const key = `${tenantId}/${credentialId}`
    const shared = running.get(key)
    const attempt =
      shared ?? obtain(needs, tenantId, credentialId).finally(() => running.delete(key))
    if (shared === undefined) running.set(key, attempt)
    const outcome = await within(attempt, WAIT_MS_MAX)
    if (outcome !== 'late') {
      const isOlder = shared !== undefined && rejected !== undefined && isSame(outcome, rejected)
      // The attempt had read the token before it was rejected. The next one begins after that.
      return isOlder ? obtained(tenantId, credentialId) : outcome
    }
    const living = await livingToken(needs, tenantId, credentialId)
    return living ?? (shared === undefined ? attempt : BUSY)
  }
  return {
    async get(tenantId, credentialId, rejected) {
      const outcome = await obtained(tenantId, credentialId, rejected)
      return outcome.tag === 'lapsed' ? reopened(needs, tenantId, credentialId) : outcome
    },
    reportRejected(tenantId, credentialId) {
      const before = new Date(clock.now().getTime() - REJECTABLE_AFTER_MS)
      void database
        .tenant(tenantId, (tx) => dropManagedToken(tx, tenantId, credentialId, before))
        .catch(warned)
    },
    async rejected(tenantId, credentialId, { obtainedAt, isFresh }) {
      const now = clock.now()
      const until = new Date(now.getTime() + KEPT_MS)
      const isKept = await database
        .tenant(tenantId, async (tx) => {
          if (isFresh)
            return keepManagedTokenUntil(tx, tenantId, credentialId, { obtainedAt, until })
          await endManagedToken(tx, tenantId, credentialId, { obtainedAt, now })
          return false
        })
        .catch(warned)
      needs.metrics.rejected(isKept === true ? 'kept' : 'ended')
      return isKept === true
    },
    async settled() {
      await Promise.allSettled(running.values())
    },
  }
}

const isSame = (outcome: ManagedOutcome, { obtainedAt }: RejectedToken): boolean =>
  outcome.tag === 'token' && outcome.obtainedAt.getTime() === obtainedAt.getTime()

function within<T>(waiting: Promise<T>, ms: number): Promise<T | 'late'> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, ms, 'late')
  })
  return Promise.race([waiting, late]).finally(() => clearTimeout(timer))
}

/** The stored token until its true end. */
async function livingToken(
  needs: ManagedTokensNeeds,
  tenantId: string,
  credentialId: string,
): Promise<ManagedToken | null> {
  const known = await needs.database.tenant(tenantId, (tx) =>
    findManagedToken(tx, tenantId, credentialId),
  )
  const lives = known !== undefined && endOf(known) > needs.clock.now().getTime()
  return lives ? open(needs, tenantId, credentialId, known) : null
}

async function obtain(
  needs: ManagedTokensNeeds,
  tenantId: string,
  credentialId: string,
): Promise<ManagedOutcome> {
  const { database, clock, random } = needs
  const began = clock.now()
  const giveUpMs = clock.monotonicMs() + WAIT_MS_MAX
  const refresher = random.uuid()
  const of = { tenantId, credentialId, refresher, began }
  for (;;) {
    const seen = await database.tenant(tenantId, (tx) => look(tx, needs, of))
    if (seen.tag === 'gone' || seen.tag === 'lapsed') return seen
    if (seen.tag === 'known') {
      return seen.decided === 'token'
        ? open(needs, tenantId, credentialId, seen.known, seen.known.obtainedAt! > began)
        : seen.decided
    }
    if (seen.tag === 'claimed') {
      const outcome = await attempt(needs, seen.attempt)
      if (outcome !== 'again') return outcome
    }
    if (clock.monotonicMs() > giveUpMs) {
      return (await livingToken(needs, tenantId, credentialId)) ?? BUSY
    }
    if (seen.tag === 'busy') await sleep(POLL_MS)
  }
}

type Looking = Pick<Attempt, 'tenantId' | 'credentialId' | 'refresher'> & { readonly began: Date }
type Seen =
  | { readonly tag: 'gone' }
  | { readonly tag: 'lapsed' }
  | { readonly tag: 'busy' }
  | { readonly tag: 'known'; readonly known: ManagedTokenRow; readonly decided: Decided }
  | { readonly tag: 'claimed'; readonly attempt: Attempt }

/** What is known of the token. If nothing is, the lease of this caller, unless another one has it. */
async function look(
  tx: Transaction,
  { clock }: ManagedTokensNeeds,
  { tenantId, credentialId, refresher, began }: Looking,
): Promise<Seen> {
  const row = await findVaultCredential(tx, tenantId, credentialId)
  if (row === undefined || row.secret === null) return { tag: 'gone' }
  if (row.status === 'needs_reauthorization') return { tag: 'lapsed' }
  const now = clock.now()
  const claimedMs = clock.monotonicMs()
  const known = await findManagedToken(tx, tenantId, credentialId)
  const decided = decide(known, began, now)
  if (decided !== null) return { tag: 'known', known: known!, decided }
  const until = new Date(now.getTime() + LEASE_MS)
  if (!(await claimRefresh(tx, tenantId, credentialId, { refresher, now, until })))
    return { tag: 'busy' }
  // The previous refresher may have stored a token while this call waited for the row lock.
  const latest = await findManagedToken(tx, tenantId, credentialId)
  const already = decide(latest, began, now)
  if (already !== null) {
    await releaseRefresh(tx, tenantId, credentialId, refresher)
    return { tag: 'known', known: latest!, decided: already }
  }
  const current = await findVaultCredential(tx, tenantId, credentialId)
  if (current === undefined || current.secret === null) return { tag: 'gone' }
  const credential = { ...current, secret: current.secret }
  return {
    tag: 'claimed',
    attempt: { tenantId, credentialId, refresher, credential, known: latest, claimedMs },
  }
}

type Decided = 'token' | RefreshFailure

/** The cached result: a valid token, a failure whose retry time has not come, or null. */
function decide(row: ManagedTokenRow | undefined, began: Date, now: Date): Decided | null {
  if (row === undefined) return null
  const { obtainedAt, expiresAt, failure, retryAt } = row
  const end = endOf(row)
  if (obtainedAt !== null) {
    // A token obtained while this call waited is used without margin.
    const margin = expiresAt === null || obtainedAt > began ? 0 : EXPIRY_MARGIN_MS
    if (end - margin > now.getTime()) return 'token'
    // While the upstream is unavailable, a token within the margin is used.
    const failing = retryAt !== null && retryAt > now && failure?.['tag'] === 'unavailable'
    if (failing && end > now.getTime()) return 'token'
  }
  return retryAt !== null && retryAt > now ? (failure as RefreshFailure) : null
}

/** The end of the stored token; 0 without one. */
function endOf({ obtainedAt, expiresAt }: ManagedTokenRow): number {
  if (obtainedAt === null) return 0
  return expiresAt?.getTime() ?? obtainedAt.getTime() + DEFAULT_LIFETIME_MS
}

/** One attempt under the lease. `again`: the state has changed. */
async function attempt(
  needs: ManagedTokensNeeds,
  claimed: Attempt,
): Promise<ManagedOutcome | 'again'> {
  const { database, sealer, clock, metrics } = needs
  const { tenantId, credentialId, refresher, credential, known } = claimed
  const beganMs = clock.monotonicMs()
  let document: Uint8Array | undefined
  try {
    document = await sealer.open(tenantId, credentialSecretContext(credentialId), credential.secret)
    if (known?.answer) {
      // A process was killed before it had stored these tokens.
      const answer = await openAnswer(needs, claimed, known.answer)
      await keep(needs, claimed, document, answer, true)
      return 'again'
    }
    const read = readTokenSource(credential.authScheme, document)
    const source = await ofConnector(needs, tenantId, read)
    if (clock.monotonicMs() - claimed.claimedMs > PREPARE_MS_MAX) {
      await database.tenant(tenantId, (tx) => releaseRefresh(tx, tenantId, credentialId, refresher))
      return 'again'
    }
    const answer = isProhibited(credential, source)
      ? ({ tag: 'prohibited', fault: 'host_not_allowed' } as const)
      : cannotRefresh(source)
        ? ({ tag: 'refused', error: 'invalid_grant' } as const)
        : await needs.endpoint.ask(source, known?.clientAuth ?? null)
    metrics.refreshed(answer.tag, (clock.monotonicMs() - beganMs) / 1000)
    return answer.tag === 'granted'
      ? await keep(needs, claimed, document, answer)
      : await fail(needs, claimed, document, answer)
  } catch (error) {
    await database
      .tenant(tenantId, (tx) => releaseRefresh(tx, tenantId, credentialId, refresher))
      .catch(() => undefined)
    throw error
  } finally {
    document?.fill(0)
  }
}

/** The hosts of the credential may have changed since its secret was stored. */
function isProhibited(
  { authScheme, allowedHosts }: SecretCredentialRow,
  source: TokenSource,
): boolean {
  if (!isTokenScheme(authScheme)) return false
  if (source.kind === 'oauth' && source.document.connection_id !== undefined) return false
  return !isOnAllowedHost(source, allowedHosts)
}

/** Stores why there is no token. */
async function fail(
  needs: ManagedTokensNeeds,
  claimed: Attempt,
  document: Uint8Array,
  failure: RefreshFailure,
): Promise<ManagedOutcome | 'again'> {
  const { database, clock } = needs
  const { tenantId, credentialId, refresher, credential, known } = claimed
  const keptMs = failure.tag === 'unavailable' ? unavailableMs(failure) : REFUSED_KEPT_MS
  const retryAt = new Date(clock.now().getTime() + keptMs)
  const store = (tx: Transaction) =>
    keepRefreshFailure(tx, tenantId, credentialId, refresher, { failure, retryAt })
  if (canLapse(credential.authScheme, failure)) {
    const outcome = await whileSame(needs, claimed, document, async (tx, row) => {
      await store(tx)
      if (await lapse(tx, needs, row)) needs.metrics.lapsed()
      return 'lapsed' as const
    })
    return outcome === 'again' ? outcome : { tag: outcome }
  }
  await database.tenant(tenantId, store)
  // The previous token may still be valid for some seconds.
  const now = clock.now()
  const last = known && { ...known, failure, retryAt }
  const decided = decide(last, now, now)
  return decided === 'token' ? open(needs, tenantId, credentialId, last!) : failure
}

function unavailableMs({ retryAfterSecs }: Extract<RefreshFailure, { tag: 'unavailable' }>) {
  return retryAfterSecs === null ? UNAVAILABLE_KEPT_MS : Math.max(1, retryAfterSecs) * 1000
}

/**
 * Stores the tokens. Retries while the database is unavailable, up to `STORE_MS_MAX`. The lease has lasted until then,
 * except in a process that stood still: another one may have used the same refresh token, and both have tokens.
 * `again`: the other tokens are stored, and newer.
 */
async function keep(
  needs: ManagedTokensNeeds,
  claimed: Attempt,
  document: Uint8Array,
  answer: Granted,
  isAnswerKept = answer.refreshToken === null,
): Promise<ManagedToken | { readonly tag: 'gone' } | 'again'> {
  const { clock, log } = needs
  const giveUpMs = clock.monotonicMs() + STORE_MS_MAX
  let isKept = isAnswerKept
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, 2_000)) {
    const signal = AbortSignal.timeout(Math.max(1, Math.ceil(giveUpMs - clock.monotonicMs())))
    try {
      // Without the lease it is not kept: it is stored now, unless the refresher that has the lease was faster.
      if (!isKept) await keepAnswer(needs, claimed, answer, signal)
      isKept = true
      return await store(needs, claimed, document, answer, signal)
    } catch (error) {
      if (clock.monotonicMs() + pauseMs > giveUpMs) {
        const { credentialId, tenantId } = claimed
        const rotated = answer.refreshToken !== null
        log.error(
          { err: error, tenant_id: tenantId, credential_id: credentialId, rotated },
          'vault: could not store the tokens of an upstream',
        )
        throw error
      }
      await sleep(pauseMs)
    }
  }
}

async function keepAnswer(
  { database, sealer }: ManagedTokensNeeds,
  { tenantId, credentialId, refresher }: Attempt,
  answer: Granted,
  signal: AbortSignal,
): Promise<void> {
  const text = Buffer.from(JSON.stringify(answer), 'utf8')
  const sealed = await sealer.seal(tenantId, tokenAnswerContext(credentialId), text)
  text.fill(0)
  await database.tenant(
    tenantId,
    (tx) => keepTokenAnswer(tx, tenantId, credentialId, refresher, sealed),
    { signal },
  )
}

async function openAnswer(
  { sealer }: ManagedTokensNeeds,
  { tenantId, credentialId }: Attempt,
  sealed: Uint8Array,
): Promise<Granted> {
  const bytes = await sealer.open(tenantId, tokenAnswerContext(credentialId), sealed)
  const answer = JSON.parse(Buffer.from(bytes).toString('utf8')) as Granted
  bytes.fill(0)
  const { obtainedAt, expiresAt } = answer
  return {
    ...answer,
    obtainedAt: new Date(obtainedAt),
    expiresAt: expiresAt === null ? null : new Date(expiresAt),
  }
}

async function store(
  needs: ManagedTokensNeeds,
  claimed: Attempt,
  document: Uint8Array,
  answer: Granted,
  signal: AbortSignal,
): Promise<ManagedToken | { readonly tag: 'gone' } | 'again'> {
  const { sealer } = needs
  const { tenantId, credentialId, refresher, credential, known } = claimed
  const { accessToken, obtainedAt, expiresAt, refreshToken, scope, clientAuth } = answer
  const previous = known?.token
    ? (await open(needs, tenantId, credentialId, known)).accessToken
    : null
  const text = Buffer.from(JSON.stringify({ access_token: accessToken, scope, previous }), 'utf8')
  const token = await sealer.seal(tenantId, managedTokenContext(credentialId), text)
  text.fill(0)
  let renewed: Uint8Array | null = null
  const stored = refreshTokenOf(readTokenSource(credential.authScheme, document))
  if (refreshToken !== null && stored !== undefined && stored !== refreshToken) {
    const replaced = withRefreshToken(document, refreshToken)
    renewed = await sealer.seal(tenantId, credentialSecretContext(credentialId), replaced)
    replaced.fill(0)
  }
  const outcome = await whileSame(
    needs,
    claimed,
    document,
    async (tx) => {
      const kept = { token, obtainedAt, expiresAt, clientAuth }
      if (!(await keepManagedToken(tx, tenantId, credentialId, refresher, kept))) return 'again'
      if (renewed !== null) await keepRenewedSecret(tx, tenantId, credentialId, renewed)
      return 'kept'
    },
    signal,
  )
  if (outcome === 'again') return outcome
  if (outcome === 'gone') {
    const connectionId = connectionOf(readTokenSource(credential.authScheme, document))
    const { random, clock } = needs
    if (renewed !== null && connectionId !== undefined) {
      const late = { tenantId, connectionId, id: random.uuid(), credentialId, token }
      const secret = renewed
      await needs.database.tenant(tenantId, (tx) =>
        keepLateRevocation(tx, { ...late, secret, now: clock.now() }),
      )
    }
    return { tag: 'gone' }
  }
  return { tag: 'token', accessToken, expiresAt, scope, obtainedAt, isFresh: true, previous }
}

/**
 * Runs `work` while the row is locked and has the secret of the attempt. `again`: the owner has replaced the secret, so
 * the answer is of no use.
 */
async function whileSame<T>(
  { database, sealer }: ManagedTokensNeeds,
  { tenantId, credentialId, refresher, credential }: Attempt,
  document: Uint8Array,
  work: (tx: Transaction, row: SecretCredentialRow) => Promise<T>,
  signal?: AbortSignal,
): Promise<T | 'gone' | 'again'> {
  let expected: Uint8Array = credential.secret
  for (;;) {
    const sealed = expected
    const seen = await database.tenant(
      tenantId,
      async (tx) => {
        const row = await lockVaultCredential(tx, tenantId, credentialId)
        if (row === undefined || row.secret === null) return { tag: 'gone' } as const
        if (Buffer.compare(row.secret, sealed) !== 0)
          return { tag: 'other', secret: row.secret } as const
        return { tag: 'done', value: await work(tx, row) } as const
      },
      { signal },
    )
    if (seen.tag === 'done') return seen.value
    if (seen.tag === 'gone') return 'gone'
    // The same secret may be sealed again with another data key.
    const stored = await sealer.open(tenantId, credentialSecretContext(credentialId), seen.secret)
    const same = Buffer.compare(stored, document) === 0
    stored.fill(0)
    if (!same) {
      await database.tenant(tenantId, (tx) => releaseRefresh(tx, tenantId, credentialId, refresher))
      return 'again'
    }
    expected = seen.secret
  }
}

async function open(
  { sealer }: ManagedTokensNeeds,
  tenantId: string,
  credentialId: string,
  { token, obtainedAt, expiresAt }: ManagedTokenRow,
  isFresh = false,
): Promise<ManagedToken> {
  const bytes = await sealer.open(tenantId, managedTokenContext(credentialId), token!)
  const stored = JSON.parse(Buffer.from(bytes).toString('utf8')) as {
    access_token: string
    scope: string | null
    previous?: string | null
  }
  bytes.fill(0)
  const { access_token: accessToken, scope, previous = null } = stored
  return { tag: 'token', accessToken, expiresAt, scope, obtainedAt: obtainedAt!, isFresh, previous }
}
