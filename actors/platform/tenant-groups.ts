/**
 * The groups of tenants in the shares of this process (runtime/kernel/fairness/fair-share.ts): a tenant that costs nothing
 * is in a group that holds only a part of each resource, and so are the tenants that were registered from one network.
 */
import type { Clock } from '../../runtime/kernel/clock.js'
import type { FairShare, ShareGroup } from '../../runtime/kernel/fairness/fair-share.js'
import { findTenantKind } from '../../storage/identity/tenants.js'
import type { Database } from '../../storage/platform/sql.js'
import type { FullGroups, TenantKind } from '../../storage/platform/in-force.js'

/** All sandboxes together. */
const SANDBOXES: ShareGroup = { name: 'sandboxes', part: 1 / 2 }
/** The tenants of one registering network together. */
const NETWORK_PART = 1 / 8
const NETWORK_PREFIX = 'network '
const UNKNOWN: readonly ShareGroup[] = [SANDBOXES]
/** A sandbox may become a production environment. */
const FRESH_MS = 60_000
const TENANTS_MAX = 10_000

type TenantGroupsNeeds = {
  readonly database: Pick<Database, 'tenant'>
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/** The groups of a tenant. One that does not exist counts as a sandbox. */
export function groupsOf(kind: TenantKind | undefined): readonly ShareGroup[] {
  if (kind === undefined) return UNKNOWN
  const { sandbox, network } = kind
  const own = network === null ? [] : [{ name: NETWORK_PREFIX + network, part: NETWORK_PART }]
  return sandbox ? [...own, SANDBOXES] : own
}

/**
 * What a worker may claim, so that no claim exceeds the part of a group.
 * @param limit what is free in all.
 */
export function claimable(share: FairShare, limit: number): { limit: number; full: FullGroups } {
  const groups = share.groupsInUse()
  const full = groups.filter(({ left }) => left <= 0).map(({ name }) => name)
  const open = groups.filter(({ left }) => left > 0)
  return {
    // A network that holds nothing has its whole part.
    limit: Math.min(limit, share.partOf(NETWORK_PART), ...open.map(({ left }) => left)),
    full: {
      sandboxes: full.includes(SANDBOXES.name),
      networks: full
        .filter((name) => name.startsWith(NETWORK_PREFIX))
        .map((name) => name.slice(NETWORK_PREFIX.length)),
    },
  }
}

type Known = { groups: readonly ShareGroup[]; readMs: number }

export class TenantGroups {
  readonly #needs: TenantGroupsNeeds
  readonly #known = new Map<string, Known>()
  readonly #reading = new Map<string, Promise<readonly ShareGroup[]>>()

  constructor(needs: TenantGroupsNeeds) {
    this.#needs = needs
  }

  /** The groups of a tenant, without waiting if they are known, as they nearly always are. */
  of(tenantId: string): readonly ShareGroup[] | Promise<readonly ShareGroup[]> {
    const known = this.#known.get(tenantId)
    if (known === undefined) return this.#read(tenantId)
    const isFresh = this.#needs.clock.monotonicMs() - known.readMs < FRESH_MS
    // Read in the background: the call goes on with what was known.
    if (!isFresh) void this.#read(tenantId)
    return known.groups
  }

  /** What is known now: the smaller share where nothing is. */
  known(tenantId: string): readonly ShareGroup[] {
    return this.#known.get(tenantId)?.groups ?? UNKNOWN
  }

  #read(tenantId: string): Promise<readonly ShareGroup[]> {
    const running = this.#reading.get(tenantId)
    if (running !== undefined) return running
    const { database, clock } = this.#needs
    const reading = database
      .tenant(tenantId, (tx) => findTenantKind(tx, tenantId))
      .then((kind) => {
        const groups = groupsOf(kind)
        if (this.#known.size >= TENANTS_MAX) this.#known.delete(this.#known.keys().next().value!)
        this.#known.set(tenantId, { groups, readMs: clock.monotonicMs() })
        return groups
      })
      // The smaller share, until the database answers.
      .catch(() => UNKNOWN)
      .finally(() => this.#reading.delete(tenantId))
    this.#reading.set(tenantId, reading)
    return reading
  }
}
