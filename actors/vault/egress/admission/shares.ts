/** Fair shares of concurrent calls and buffered bytes, per agent and tenant. */
import {
  FairShare,
  type HolderOptions,
  isRefused,
  type Release,
  type ShareCounts,
  type ShareGroup,
} from '../../../../runtime/kernel/fairness/fair-share.js'
import { granteeOf } from '../../../domain/grantee.js'
import type { Principal } from '../../../domain/principal.js'

/** Concurrent calls of all tenants. */
export const CALLS_MAX = 2_048

interface EgressShares {
  /** Concurrent calls. Keys: `keysOf`. */
  readonly calls: FairShare
  /** Memory of buffered responses, JSON requests and redaction tables, in bytes. Key: the tenant. */
  readonly bytes: FairShare
}

export type ShareSettings = Readonly<
  Record<
    | 'egress_calls_per_agent_max'
    | 'egress_calls_per_tenant_max'
    | 'egress_buffered_bytes_max'
    | 'egress_buffered_bytes_per_tenant_max',
    number
  >
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

/** Share keys of a caller: tenant, then agent. */
export function keysOf(principal: Principal): ShareKeys {
  let keys = keysByPrincipal.get(principal)
  if (keys === undefined) {
    const { tenantId, subject } = principal
    keys = [tenantId, `${tenantId} ${granteeOf(principal).agentId ?? subject}`]
    keysByPrincipal.set(principal, keys)
  }
  return keys
}

type ShareKeys = readonly [tenantId: string, agentId: string]
const keysByPrincipal = new WeakMap<Principal, ShareKeys>()

/** The share of memory held by one call. */
export class HeldBytes {
  readonly #bytes: FairShare
  readonly #tenantId: string
  readonly #holder: HolderOptions
  /** Most calls take none. */
  #taken: Release[] | null = null
  #isOver = false

  /** @param giveUp ends the call, whose memory a tenant without any needs. Default: it is not ended. */
  constructor(
    bytes: FairShare,
    tenantId: string,
    groups: readonly ShareGroup[],
    giveUp?: () => boolean,
  ) {
    this.#bytes = bytes
    this.#holder = { groups, giveUp }
    this.#tenantId = tenantId
  }

  /** Acquires more bytes; false when the share is exhausted. */
  take(bytes: number): boolean {
    if (this.#isOver) return false
    const taken = this.#bytes.tryAcquire([this.#tenantId], bytes, this.#holder)
    if (isRefused(taken)) return false
    if (this.#taken === null) this.#taken = [taken]
    else this.#taken.push(taken)
    return true
  }

  /** Releases all bytes. Idempotent. */
  release(): void {
    this.#isOver = true
    const taken = this.#taken
    this.#taken = null
    if (taken !== null) for (const release of taken) release()
  }
}
