/** The dependencies of connected accounts. */
import type { ActorRef, Handler } from '../../../../runtime/kernel/actor.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import type { BrowserSessionsProtocol } from '../../../identity/sign-in/sessions/protocol.js'
import type { BoundedFetch } from '../../../platform/outbound-http/bounded-fetch.js'
import type { Documents } from '../../../platform/outbound-http/documents.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'
import type { ConnectionsProtocol } from './protocol.js'

/** What ends a connection. */
export type EndNeeds = WriteNeeds & {
  readonly sealer: Sealer
  readonly fetch: BoundedFetch
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
