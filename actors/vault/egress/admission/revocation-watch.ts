/**
 * Ends running relays whose right to run has ended: a grant, a lease or a credential was revoked, the
 * session was closed, the agent suspended. Looked up in the database, so that it does not matter
 * which process revoked (decisions.md 18, revocation everywhere).
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

/** A revocation is noticed within this and one look-up. */
const LOOK_EVERY_MS = 400

export type Watched = {
  readonly relay: Relay
  readonly principal: Principal
  readonly authority: AuthorityRef
}

export interface Watch {
  /** Looks after it until what is answered is called. */
  add(watched: Watched): () => void
  stop(): void
}

export type WatchNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
}

export function createWatch({ database, clock, log }: WatchNeeds): Watch {
  const running = new Slots<Watched & { isSeen: boolean }>()
  let looking = false

  async function look(): Promise<void> {
    const all = running.all()
    // What has run through one whole interval: shorter relays were just admitted.
    const due = all.filter(({ isSeen }) => isSeen)
    for (const each of all) each.isSeen = true
    const byTenant = new Map<string, Watched[]>()
    for (const each of due) {
      const { tenantId } = each.principal
      byTenant.set(tenantId, [...(byTenant.get(tenantId) ?? []), each])
    }
    for (const [tenantId, each] of byTenant) await lookAt(tenantId, each)
  }

  async function lookAt(tenantId: string, each: readonly Watched[]): Promise<void> {
    const ids = [...new Set(each.map(({ authority }) => authority.id))]
    const inForce = await database.tenant(tenantId, (tx) =>
      authoritiesInForce(tx, tenantId, ids, clock.now()),
    )
    const principals = [
      ...new Map(each.map((one) => [one.principal.tokenId, one.principal])).values(),
    ]
    // An agent may be at home in another tenant than its token is for: the look-up crosses tenants.
    const statuses = await database.system((tx) =>
      readTokenStatus(tx, principals.map(tokenStatusQuery)),
    )
    const fallen = new Set(
      principals
        .filter((_, at) => !Object.values(statuses[at]!).every(Boolean))
        .map(({ tokenId }) => tokenId),
    )
    for (const { relay, principal, authority } of each) {
      if (!inForce.has(authority.id) || fallen.has(principal.tokenId)) relay.revoke()
    }
  }

  const timer = setInterval(() => {
    if (looking || running.size === 0) return
    looking = true
    look()
      // A database that is away ends no streams; what is revoked in the meantime ends afterwards.
      .catch((error: unknown) => log.warn({ err: error }, 'running relays are not looked at'))
      .finally(() => {
        looking = false
      })
  }, LOOK_EVERY_MS)

  return {
    add(watched) {
      const slot = running.add({ isSeen: false, ...watched })
      return () => void running.take(slot)
    },
    stop() {
      clearInterval(timer)
    },
  }
}
