/** The dependencies of connected accounts. */
import type { ActorRef, Handler } from '../../../../runtime/kernel/actor.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import type { BrowserSessionsProtocol } from '../../../identity/sign-in/sessions/protocol.js'
import type { BoundedFetch } from '../../../platform/outbound-http/bounded-fetch.js'
import type { Documents } from '../../../platform/outbound-http/documents.js'
import type { TenantGroups } from '../../../platform/tenant-groups.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'
import { FairShare, type ShareCounts } from '../../../../runtime/kernel/fairness/fair-share.js'
import type { ConnectionsProtocol } from './protocol.js'

/** Codes, names of accounts and revocations that wait for providers, in a process. */
const CALLS_MAX = 64
const CALLS_PER_TENANT_MAX = 8

export function connectCalls(counts: ShareCounts): FairShare {
  const levels = [{ name: 'tenant', max: CALLS_PER_TENANT_MAX }]
  return new FairShare({ resource: 'connect_calls', total: CALLS_MAX, levels, counts })
}

/** What ends a connection. */
export type EndNeeds = WriteNeeds & {
  readonly sealer: Sealer
  readonly fetch: BoundedFetch
  /** What waits for a provider runs in one of these, so that a silent one holds few places of the actor. */
  readonly calls: FairShare
  readonly groups: Pick<TenantGroups, 'of'>
  /** The egress proxy of this process forgets what it knows of the tenant. */
  readonly changed: (tenantId: string) => Promise<void>
}

export type ConnectionsNeeds = EndNeeds & {
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly documents: Pick<Documents, 'fetch'>
  readonly issuer: string
  readonly settings: {
    readonly connection_ttl_secs: number
    readonly max_credentials_per_tenant: number
  }
  /** How recent the sign-in must be that lets an agent in. */
  readonly maxAuthAgeSecs: number
}

export type ConnectionsHandler<K extends keyof ConnectionsProtocol> = Handler<
  ConnectionsNeeds,
  ConnectionsProtocol,
  K
>
