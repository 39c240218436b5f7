/** Dependencies of federated sign-in. */
import type { ActorRef, Handler } from '../../../../../runtime/kernel/actor.js'
import type { Coordination } from '../../../../../storage/platform/coordination/port.js'
import type { Sealer } from '../../../../../storage/platform/sealing/sealer.js'
import type { BrowserSessionsProtocol } from '../../sessions/protocol.js'
import type { TenantsProtocol } from '../../../users/tenants/protocol.js'
import type { TrustedIssuersProtocol } from '../../../../oauth/trusted-issuers/protocol.js'
import type { CallbackRelay } from './callback-relay.js'
import type { UpstreamClient } from './client.js'
import type { FederatedLoginMetrics } from './metrics.js'
import type { FederatedLoginProtocol } from './protocol.js'
import type { ProviderSettings, Providers } from './providers.js'
import type { WriteNeeds } from '../../../../platform/write-needs.js'

export type FederatedLoginNeeds = WriteNeeds & {
  readonly sealer: Sealer
  /** Remembers logout tokens and security events. */
  readonly coordination: Pick<Coordination, 'lock' | 'get' | 'put'>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly trustedIssuers: ActorRef<TrustedIssuersProtocol>
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly client: UpstreamClient
  readonly metrics: FederatedLoginMetrics
  readonly issuer: string
  /** `[oauth_proxy]`. Absent unless it is enabled. */
  readonly relay?: CallbackRelay | undefined
  readonly settings: ProviderSettings
  /** `verified_domains.enabled`. */
  readonly verifiedDomains: boolean
  /** `social.account_linking.enabled`. */
  readonly linking: boolean
  readonly cookies: { readonly idle_secs: number; readonly absolute_secs: number }
  /** `two_factor.enabled`. */
  readonly alwaysTwo: boolean
}

/** The dependencies with the providers read from the settings. */
export type FederatedLoginTools = FederatedLoginNeeds & { readonly providers: Providers }

export type FederatedLoginHandler<K extends keyof FederatedLoginProtocol> = Handler<
  FederatedLoginTools,
  FederatedLoginProtocol,
  K
>
