/**
 * The groups of tenants in the shares of this process (runtime/kernel/fairness/fair-share.ts): a tenant that costs nothing
 * is in a group that holds only a part of each resource.
 */
import type { Clock } from '../../runtime/kernel/clock.js'
import type { ShareGroup } from '../../runtime/kernel/fairness/fair-share.js'
import { isSandbox } from '../../storage/identity/tenants.js'
import type { Database } from '../../storage/platform/sql.js'

/** All sandboxes together. */
const SANDBOXES: readonly ShareGroup[] = [{ name: 'sandboxes', part: 1 / 2 }]
const NONE: readonly ShareGroup[] = []
/** A sandbox may become a production environment. */
const FRESH_MS = 60_000
const TENANTS_MAX = 10_000

export type TenantGroupsNeeds = { readonly database: Database; readonly clock: Clock }

type Known = { groups: readonly ShareGroup[]; readMs: number }

export class TenantGroups {
  readonly #needs: TenantGroupsNeeds
  readonly #known = new Map<string, Known>()
  readonly #reading = new Map<string, Promise<readonly ShareGroup[]>>()

  constructor(needs: TenantGroupsNeeds) {
    this.#needs = needs
  }

  /** The groups of a tenant: at once where they are known, which they nearly always are. */
  of(tenantId: string): readonly ShareGroup[] | Promise<readonly ShareGroup[]> {
    const known = this.#known.get(tenantId)
    if (known === undefined) return this.#read(tenantId)
    const isFresh = this.#needs.clock.monotonicMs() - known.readMs < FRESH_MS
    // Read beside the call, which goes on with what was known.
    if (!isFresh) void this.#read(tenantId)
    return known.groups
  }

  /** What is known now: the smaller share where nothing is. */
  known(tenantId: string): readonly ShareGroup[] {
    return this.#known.get(tenantId)?.groups ?? SANDBOXES
  }

  #read(tenantId: string): Promise<readonly ShareGroup[]> {
    const running = this.#reading.get(tenantId)
    if (running !== undefined) return running
    const { database, clock } = this.#needs
    const reading = database
      .tenant(tenantId, (tx) => isSandbox(tx, tenantId))
      .then((sandbox) => {
        const groups = sandbox ? SANDBOXES : NONE
        if (this.#known.size >= TENANTS_MAX) this.#known.delete(this.#known.keys().next().value!)
        this.#known.set(tenantId, { groups, readMs: clock.monotonicMs() })
        return groups
      })
      // The smaller share, until the database answers.
      .catch(() => SANDBOXES)
      .finally(() => this.#reading.delete(tenantId))
    this.#reading.set(tenantId, reading)
    return reading
  }
}
