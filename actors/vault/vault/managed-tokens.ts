/**
 * Access tokens of `oauth2` credentials: kept until 60 s before they expire, fetched by one caller at
 * a time. Inside of a process whoever comes meanwhile shares the attempt; between processes a lease
 * in the row says who asks, and the others wait for its outcome.
 *
 * An upstream may replace the refresh token with every use. The new one is stored in the transaction
 * that stores the access token, and that is tried until it succeeds or `STORE_MS_MAX` is over. Only a
 * process that dies between the upstream's answer and that commit loses it; the next attempt then
 * shows the older one, which upstreams with a grace period take, and is told `invalid_grant` by others.
 */
import type { RefreshFailure } from './protocol.js'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  claimRefresh,
  dropManagedToken,
  findManagedToken,
  keepManagedToken,
  keepRefreshFailure,
  managedTokenContext,
  type ManagedTokenRow,
  releaseRefresh,
} from '../../../storage/vault/managed-tokens.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../storage/platform/sql.js'
import {
  credentialSecretContext,
  findVaultCredential,
  keepRenewedSecret,
  lockVaultCredential,
} from '../../../storage/vault/vault-credentials.js'
import type { VaultMetrics } from './metrics.js'
import { readOAuthSecret, withRefreshToken } from './oauth-secret.js'
import type { TokenAnswer } from './token-answer.js'
import type { TokenEndpoint } from './token-endpoint.js'

/** decisions.md 22, oauth2 credentials. */
const EXPIRY_MARGIN_MS = 60_000
/** How long a token is kept whose upstream does not say when it expires. */
const UNSAID_LIFETIME_MS = 5 * 60_000
/** Longer than an attempt with its storing takes. */
const LEASE_MS = 45_000
const STORE_MS_MAX = 30_000
const WAIT_MS_MAX = 25_000
const POLL_MS = 100
/** A token is not fetched again for this long because an API refused it. */
const SPOILED_AFTER_MS = 60_000
/** A refusal is not asked for again for this long: it takes a person to change it. */
const REFUSED_KEPT_MS = 60_000
const UNAVAILABLE_KEPT_MS = 5_000

export type ManagedToken = {
  readonly tag: 'token'
  readonly accessToken: string
  /** Null where the upstream does not say. */
  readonly expiresAt: Date | null
  readonly scope: string | null
}
export type ManagedOutcome =
  | ManagedToken
  /** The credential is revoked, or there is none. */
  | { readonly tag: 'gone' }
  | RefreshFailure

export interface ManagedTokens {
  get(tenantId: string, credentialId: string): Promise<ManagedOutcome>
  /**
   * An API refused the token that is kept: the next one is fetched before its time, though not over
   * and over where it is the API that is wrong. Never throws.
   */
  reportRejected(tenantId: string, credentialId: string): void
  /** When everything that an upstream gave is stored. */
  settled(): Promise<void>
}

export type ManagedTokensNeeds = {
  readonly database: Database
  readonly sealer: Sealer
  readonly endpoint: TokenEndpoint
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: VaultMetrics
}

type Granted = Extract<TokenAnswer, { tag: 'granted' }>
/** What of the credential an attempt is made with. */
type Attempt = {
  readonly tenantId: string
  readonly credentialId: string
  readonly refresher: string
  readonly sealed: Uint8Array
  readonly known: ManagedTokenRow | undefined
}

export function createManagedTokens(needs: ManagedTokensNeeds): ManagedTokens {
  const running = new Map<string, Promise<ManagedOutcome>>()
  const { database, clock, log } = needs
  return {
    get(tenantId, credentialId) {
      const key = `${tenantId}/${credentialId}`
      let one = running.get(key)
      if (one === undefined) {
        one = obtain(needs, tenantId, credentialId).finally(() => running.delete(key))
        running.set(key, one)
      }
      return one
    },
    reportRejected(tenantId, credentialId) {
      const before = new Date(clock.now().getTime() - SPOILED_AFTER_MS)
      database
        .tenant(tenantId, (tx) => dropManagedToken(tx, tenantId, credentialId, before))
        .catch((error: unknown) => log.warn({ err: error }, 'a refused token is kept'))
    },
    async settled() {
      await Promise.allSettled(running.values())
    },
  }
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
  for (;;) {
    const seen = await database.tenant(tenantId, async (tx) => {
      const row = await findVaultCredential(tx, tenantId, credentialId)
      if (row === undefined || row.secret === null) return { tag: 'gone' } as const
      const now = clock.now()
      const known = await findManagedToken(tx, tenantId, credentialId)
      const decided = decide(known, began, now)
      if (decided !== null) return { tag: 'known', known: known!, decided } as const
      const until = new Date(now.getTime() + LEASE_MS)
      if (!(await claimRefresh(tx, tenantId, credentialId, { refresher, now, until })))
        return { tag: 'busy' } as const
      // What the one before stored while we waited for the row.
      const latest = await findManagedToken(tx, tenantId, credentialId)
      const already = decide(latest, began, now)
      if (already !== null) {
        await releaseRefresh(tx, tenantId, credentialId, refresher)
        return { tag: 'known', known: latest!, decided: already } as const
      }
      const current = (await findVaultCredential(tx, tenantId, credentialId))?.secret
      if (current === null || current === undefined) return { tag: 'gone' } as const
      const attempt = { tenantId, credentialId, refresher, sealed: current, known: latest }
      return { tag: 'claimed', attempt } as const
    })
    if (seen.tag === 'gone') return seen
    if (seen.tag === 'known') {
      return seen.decided === 'token'
        ? open(needs, tenantId, credentialId, seen.known)
        : seen.decided
    }
    if (seen.tag === 'claimed') {
      const outcome = await attempt(needs, seen.attempt)
      // Somebody replaced the secret meanwhile: what came of the older one is not wanted.
      if (outcome !== 'superseded') return outcome
    }
    if (clock.monotonicMs() > giveUpMs)
      return { tag: 'unavailable', fault: 'busy', retryAfterSecs: 1 }
    await sleep(POLL_MS)
  }
}

/** What the row says already: a token, a failure that is not to be repeated yet, or nothing. */
function decide(
  row: ManagedTokenRow | undefined,
  began: Date,
  now: Date,
): 'token' | RefreshFailure | null {
  if (row === undefined) return null
  const { token, obtainedAt, expiresAt, failure, retryAt } = row
  if (token !== null && obtainedAt !== null) {
    const end = expiresAt?.getTime() ?? obtainedAt.getTime() + UNSAID_LIFETIME_MS
    // Fetched for somebody while we waited: as good as one of our own.
    const margin = expiresAt === null || obtainedAt > began ? 0 : EXPIRY_MARGIN_MS
    if (end - margin > now.getTime()) return 'token'
    // While the upstream is away, one that is nearly used up is better than none.
    const failing = retryAt !== null && retryAt > now && failure?.['tag'] === 'unavailable'
    if (failing && end > now.getTime()) return 'token'
  }
  return retryAt !== null && retryAt > now ? (failure as RefreshFailure) : null
}

/** One attempt under the lease. */
async function attempt(
  needs: ManagedTokensNeeds,
  claimed: Attempt,
): Promise<ManagedOutcome | 'superseded'> {
  const { database, sealer, endpoint, clock, metrics } = needs
  const { tenantId, credentialId, refresher, known } = claimed
  const beganMs = clock.monotonicMs()
  let answer: TokenAnswer
  let document: Uint8Array | undefined
  try {
    document = await sealer.open(tenantId, credentialSecretContext(credentialId), claimed.sealed)
    answer = await endpoint.ask(readOAuthSecret(document), known?.clientAuth ?? null)
    metrics.refreshed(answer.tag, (clock.monotonicMs() - beganMs) / 1000)
    if (answer.tag === 'granted') return await keep(needs, claimed, document, answer)
  } catch (error) {
    await database
      .tenant(tenantId, (tx) => releaseRefresh(tx, tenantId, credentialId, refresher))
      .catch(() => undefined)
    throw error
  } finally {
    document?.fill(0)
  }
  const keptMs = answer.tag === 'unavailable' ? unavailableMs(answer) : REFUSED_KEPT_MS
  const retryAt = new Date(clock.now().getTime() + keptMs)
  await database.tenant(tenantId, (tx) =>
    keepRefreshFailure(tx, tenantId, credentialId, refresher, answer, retryAt),
  )
  // The token of before may be good for some seconds more.
  const now = clock.now()
  const last = known && { ...known, failure: answer, retryAt }
  const decided = decide(last, now, now)
  return decided === 'token' ? open(needs, tenantId, credentialId, last!) : answer
}

function unavailableMs({ retryAfterSecs }: Extract<RefreshFailure, { tag: 'unavailable' }>) {
  return retryAfterSecs === null ? UNAVAILABLE_KEPT_MS : Math.max(1, retryAfterSecs) * 1000
}

/** Stores what the upstream gave, however long the database takes to answer, within reason. */
async function keep(
  needs: ManagedTokensNeeds,
  claimed: Attempt,
  document: Uint8Array,
  answer: Granted,
): Promise<ManagedToken | { readonly tag: 'gone' } | 'superseded'> {
  const { clock, log } = needs
  const giveUpMs = clock.monotonicMs() + STORE_MS_MAX
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, 2_000)) {
    try {
      return await store(needs, claimed, document, answer)
    } catch (error) {
      if (clock.monotonicMs() + pauseMs > giveUpMs) {
        const { credentialId, tenantId } = claimed
        const rotated = answer.refreshToken !== null
        log.error(
          { err: error, tenant_id: tenantId, credential_id: credentialId, rotated },
          'what an upstream gave for a credential could not be stored',
        )
        throw error
      }
      await sleep(pauseMs)
    }
  }
}

async function store(
  { database, sealer }: ManagedTokensNeeds,
  { tenantId, credentialId, refresher, sealed: before }: Attempt,
  document: Uint8Array,
  answer: Granted,
): Promise<ManagedToken | { readonly tag: 'gone' } | 'superseded'> {
  const { accessToken, obtainedAt, expiresAt, refreshToken, scope, clientAuth } = answer
  const secretContext = credentialSecretContext(credentialId)
  const text = Buffer.from(JSON.stringify({ access_token: accessToken, scope }), 'utf8')
  const token = await sealer.seal(tenantId, managedTokenContext(credentialId), text)
  text.fill(0)
  let renewed: Uint8Array | null = null
  if (refreshToken !== null && readOAuthSecret(document).refreshToken !== refreshToken) {
    const replaced = withRefreshToken(document, refreshToken)
    renewed = await sealer.seal(tenantId, secretContext, replaced)
    replaced.fill(0)
  }
  let sealed = before
  for (;;) {
    const expected = sealed
    const outcome = await database.tenant(tenantId, async (tx) => {
      const row = await lockVaultCredential(tx, tenantId, credentialId)
      if (row === undefined || row.secret === null) return 'gone' as const
      if (Buffer.compare(row.secret, expected) !== 0) return row.secret
      if (renewed !== null) await keepRenewedSecret(tx, tenantId, credentialId, renewed)
      const kept = { token, obtainedAt, expiresAt, clientAuth }
      await keepManagedToken(tx, tenantId, credentialId, refresher, kept)
      return 'kept' as const
    })
    if (outcome === 'kept') return { tag: 'token', accessToken, expiresAt, scope }
    if (outcome === 'gone') return { tag: 'gone' }
    // The same words under a newer data key are no other secret.
    const theirs = await sealer.open(tenantId, secretContext, outcome)
    const same = Buffer.compare(theirs, document) === 0
    theirs.fill(0)
    if (!same) return superseded(database, tenantId, credentialId, refresher)
    sealed = outcome
  }
}

async function superseded(
  database: Database,
  tenantId: string,
  credentialId: string,
  refresher: string,
): Promise<'superseded'> {
  await database.tenant(tenantId, (tx) => releaseRefresh(tx, tenantId, credentialId, refresher))
  return 'superseded'
}

async function open(
  { sealer }: ManagedTokensNeeds,
  tenantId: string,
  credentialId: string,
  { token, expiresAt }: ManagedTokenRow,
): Promise<ManagedToken> {
  const bytes = await sealer.open(tenantId, managedTokenContext(credentialId), token!)
  const { access_token: accessToken, scope } = JSON.parse(Buffer.from(bytes).toString('utf8')) as {
    access_token: string
    scope: string | null
  }
  bytes.fill(0)
  return { tag: 'token', accessToken, expiresAt, scope }
}
