/** What calls share, and how much of it one agent and one tenant may hold (decisions.md section 24). */
import {
  FairShare,
  isRefused,
  type Release,
  type ShareCounts,
} from '../../../../runtime/kernel/fairness/fair-share.js'
import { granteeOf } from '../../../domain/grantee.js'
import type { Principal } from '../../../domain/principal.js'
import type { VaultSettings } from '../../vault/settings.js'

/** Calls under way at once, of all tenants. */
const CALLS_MAX = 4_096

export interface EgressShares {
  /** Calls under way. Keys: those of `keysOf`. */
  readonly calls: FairShare
  /** Bytes held for buffered answers, JSON requests and tables of redaction. Key: the tenant. */
  readonly bytes: FairShare
}

export type ShareSettings = Pick<
  VaultSettings,
  | 'egress_calls_per_agent_max'
  | 'egress_calls_per_tenant_max'
  | 'egress_buffered_bytes_max'
  | 'egress_buffered_bytes_per_tenant_max'
>

export function createEgressShares(settings: ShareSettings, counts?: ShareCounts): EgressShares {
  return {
    calls: new FairShare({
      resource: 'egress_calls',
      total: CALLS_MAX,
      levels: [
        { name: 'tenant', max: settings.egress_calls_per_tenant_max },
        { name: 'agent', max: settings.egress_calls_per_agent_max },
      ],
      counts,
    }),
    bytes: new FairShare({
      resource: 'egress_buffered_bytes',
      total: settings.egress_buffered_bytes_max,
      levels: [{ name: 'tenant', max: settings.egress_buffered_bytes_per_tenant_max }],
      counts,
    }),
  }
}

/** Tenant and agent of a caller. */
export function keysOf(principal: Principal): readonly [tenantId: string, agentId: string] {
  const { tenantId, subject } = principal
  return [tenantId, `${tenantId} ${granteeOf(principal).agentId ?? subject}`]
}

/** Bytes that one call holds of the share, taken as they come. */
export class HeldBytes {
  readonly #bytes: FairShare
  readonly #tenantId: string
  readonly #taken: Release[] = []
  #isOver = false

  constructor(bytes: FairShare, tenantId: string) {
    this.#bytes = bytes
    this.#tenantId = tenantId
  }

  /** Holds so many more; false where there are not as many left. */
  take(bytes: number): boolean {
    if (this.#isOver) return false
    const taken = this.#bytes.tryAcquire([this.#tenantId], bytes)
    if (isRefused(taken)) return false
    this.#taken.push(taken)
    return true
  }

  /** Gives back all of them. Calling it again changes nothing. */
  release(): void {
    this.#isOver = true
    for (const release of this.#taken.splice(0)) release()
  }
}
