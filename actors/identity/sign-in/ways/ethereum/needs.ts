/** Dependencies of sign-in with Ethereum. */
import type { ActorRef, Handler } from '../../../../../runtime/kernel/actor.js'
import type { BrowserSessionsProtocol } from '../../sessions/protocol.js'
import type { WayNeeds, WayTools } from '../../limits/limits-of.js'
import type { TenantsProtocol } from '../../../users/tenants/protocol.js'
import type { SiweProtocol } from './protocol.js'
import type { SiweSettings } from './settings.js'

export type SiweNeeds = WayNeeds & {
  readonly tenants: ActorRef<TenantsProtocol>
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly siwe: SiweSettings
  /** `oidc.issuer_url`. */
  readonly issuer: string
}

export type SiweTools = SiweNeeds & WayTools

export type SiweHandler<K extends keyof SiweProtocol> = Handler<SiweTools, SiweProtocol, K>
