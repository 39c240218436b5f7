/**
 * Managed access tokens of `oauth2` credentials: cached until 60 s before they expire, refreshed by one
 * caller at a time. Within a process concurrent callers share an attempt. Across processes a lease in
 * the row names the refresher, and the others wait for its outcome.
 *
 * An upstream may rotate the refresh token on every use. The new one is stored with the access token in
 * one transaction, which is retried for up to `STORE_MS_MAX`. Only a process that is killed between the
 * upstream's response and the commit loses it. The next attempt then sends the previous refresh token,
 * which upstreams with a grace period accept and others reject with `invalid_grant`.
 */
import type { ManagedOutcome, ManagedToken, ManagedTokens, RefreshFailure } from './protocol.js'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../../runtime/kernel/log.js'
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
import type { WriteNeeds } from '../../platform/write-needs.js'

/** Tokens are refreshed this long before they expire. */
const EXPIRY_MARGIN_MS = 60_000
/** Lifetime of a token without `expires_in`. */
const DEFAULT_LIFETIME_MS = 5 * 60_000
/** Longer than an attempt including its commit. */
const LEASE_MS = 45_000
const STORE_MS_MAX = 30_000
const WAIT_MS_MAX = 25_000
const POLL_MS = 100
/** A token younger than this is not refreshed when an API rejects it. */
const REJECTABLE_AFTER_MS = 60_000
/** A refusal is cached for this long, because only a person can fix its cause. */
const REFUSED_KEPT_MS = 60_000
const UNAVAILABLE_KEPT_MS = 5_000

export type ManagedTokensNeeds = WriteNeeds & {
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
  readonly sealed: Uint8Array
  readonly known: ManagedTokenRow | undefined
}

export function createManagedTokens(needs: ManagedTokensNeeds): ManagedTokens {
  const running = new Map<string, Promise<ManagedOutcome>>()
  const { database, clock, log } = needs
  return {
    get(tenantId, credentialId) {
      const key = `${tenantId}/${credentialId}`
      let attempt = running.get(key)
      if (attempt === undefined) {
        attempt = obtain(needs, tenantId, credentialId).finally(() => running.delete(key))
        running.set(key, attempt)
      }
      return attempt
    },
    reportRejected(tenantId, credentialId) {
      const before = new Date(clock.now().getTime() - REJECTABLE_AFTER_MS)
      database
        .tenant(tenantId, (tx) => dropManagedToken(tx, tenantId, credentialId, before))
        .catch((error: unknown) =>
          log.warn({ err: error }, 'vault: could not discard a rejected access token'),
        )
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
      // The previous refresher may have stored a token while this call waited for the row lock.
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
      // The secret was rotated during the attempt, so its token is discarded.
      if (outcome !== 'superseded') return outcome
    }
    if (clock.monotonicMs() > giveUpMs)
      return { tag: 'unavailable', fault: 'busy', retryAfterSecs: 1 }
    await sleep(POLL_MS)
  }
}

/** The cached result: a valid token, a failure whose retry time has not come, or null. */
function decide(
  row: ManagedTokenRow | undefined,
  began: Date,
  now: Date,
): 'token' | RefreshFailure | null {
  if (row === undefined) return null
  const { token, obtainedAt, expiresAt, failure, retryAt } = row
  if (token !== null && obtainedAt !== null) {
    const end = expiresAt?.getTime() ?? obtainedAt.getTime() + DEFAULT_LIFETIME_MS
    // A token obtained while this call waited is used without margin.
    const margin = expiresAt === null || obtainedAt > began ? 0 : EXPIRY_MARGIN_MS
    if (end - margin > now.getTime()) return 'token'
    // While the upstream is unavailable, a token within the margin is used.
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
    keepRefreshFailure(tx, tenantId, credentialId, refresher, { failure: answer, retryAt }),
  )
  // The previous token may still be valid for some seconds.
  const now = clock.now()
  const last = known && { ...known, failure: answer, retryAt }
  const decided = decide(last, now, now)
  return decided === 'token' ? open(needs, tenantId, credentialId, last!) : answer
}

function unavailableMs({ retryAfterSecs }: Extract<RefreshFailure, { tag: 'unavailable' }>) {
  return retryAfterSecs === null ? UNAVAILABLE_KEPT_MS : Math.max(1, retryAfterSecs) * 1000
}

/** Stores the tokens. Retries while the database is unavailable, up to `STORE_MS_MAX`. */
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
          'vault: could not store the tokens of an upstream',
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
    // The stored secret differs: rotated, or the same secret sealed again with another data key.
    const stored = await sealer.open(tenantId, secretContext, outcome)
    const same = Buffer.compare(stored, document) === 0
    stored.fill(0)
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
