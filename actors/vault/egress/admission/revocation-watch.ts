/**
 * Aborts running relays after a revocation: of the grant, the lease, the credential, the session or the
 * agent. It polls the database, so a revocation by any process applies.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Logger } from '../../../../runtime/kernel/log.js'
import { Slots } from '../../../../runtime/kernel/threads/slots.js'
import { authoritiesInForce } from '../../../../storage/vault/egress-authorities.js'
import { readTokenStatus } from '../../../../storage/oauth/token-sessions.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { Principal } from '../../../domain/principal.js'
import { tokenStatusQuery } from '../../../domain/token-status.js'
import type { AuthorityRef } from '../../../../storage/vault/egress-authorities.js'
import type { Relay } from '../relay/relay.js'

/** Polling interval; a revocation applies within this plus one query. */
const POLL_EVERY_MS = 400

type WatchedRelay = {
  readonly relay: Relay
  readonly principal: Principal
  readonly authority: AuthorityRef
}

export interface RevocationWatch {
  /** @returns a function that removes it again. */
  add(watched: WatchedRelay): () => void
  stop(): void
}

type RevocationWatchNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
}

export function createRevocationWatch({
  database,
  clock,
  log,
}: RevocationWatchNeeds): RevocationWatch {
  const running = new Slots<WatchedRelay & { isSeen: boolean }>()
  let isPolling = false

  async function poll(): Promise<void> {
    const all = running.all()
    // A relay is checked from its second poll on: before, its admission is recent.
    const due = all.filter(({ isSeen }) => isSeen)
    for (const watched of all) watched.isSeen = true
    const byTenant = new Map<string, WatchedRelay[]>()
    for (const watched of due) {
      const { tenantId } = watched.principal
      byTenant.set(tenantId, [...(byTenant.get(tenantId) ?? []), watched])
    }
    for (const [tenantId, relays] of byTenant) await check(tenantId, relays)
  }

  async function check(tenantId: string, relays: readonly WatchedRelay[]): Promise<void> {
    const ids = [...new Set(relays.map(({ authority }) => authority.id))]
    const inForce = await database.tenant(tenantId, (tx) =>
      authoritiesInForce(tx, tenantId, ids, clock.now()),
    )
    const principals = [
      ...new Map(relays.map(({ principal }) => [principal.tokenId, principal])).values(),
    ]
    // Crosses tenants, because the agent's home tenant may differ from its token's tenant.
    const statuses = await database.system((tx) =>
      readTokenStatus(tx, principals.map(tokenStatusQuery)),
    )
    const revokedTokens = new Set(
      principals
        .filter((_, index) => !Object.values(statuses[index]!).every(Boolean))
        .map(({ tokenId }) => tokenId),
    )
    for (const { relay, principal, authority } of relays) {
      if (!inForce.has(authority.id) || revokedTokens.has(principal.tokenId)) relay.revoke()
    }
  }

  const timer = setInterval(() => {
    if (isPolling || running.size === 0) return
    isPolling = true
    poll()
      // Without the database no relay is aborted; a revocation then applies after it is back.
      .catch((error: unknown) => log.warn({ err: error }, 'egress: could not check running relays'))
      .finally(() => {
        isPolling = false
      })
  }, POLL_EVERY_MS)

  return {
    add({ relay, principal, authority }) {
      const slot = running.add({ isSeen: false, relay, principal, authority })
      return () => void running.take(slot)
    },
    stop() {
      clearInterval(timer)
    },
  }
}
