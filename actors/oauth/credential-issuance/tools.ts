/** What the handlers of credential issuance share. */
import type { Counter, Registry } from 'prom-client'
import type { ActorRef, Handler } from '../../../runtime/kernel/actor.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { TenantsProtocol } from '../../identity/users/tenants/protocol.js'
import { counter } from '../../platform/metrics.js'
import { credentialIssuers } from './issuers.js'
import type { IssueNeeds } from './issue.js'
import { type CredentialNonces, credentialNonces } from './nonces.js'
import type { CredentialIssuanceProtocol } from './protocol.js'
import type { CredentialsSettings } from './settings.js'
import type { WalletTokenNeeds } from './wallet-token.js'

export type CredentialIssuanceNeeds = Omit<IssueNeeds, 'lifetimeSecs'> &
  WalletTokenNeeds & {
    readonly tenants: ActorRef<TenantsProtocol>
    readonly coordination: Pick<Coordination, 'once'>
    readonly sealer: Sealer
    readonly registry: Registry
    readonly settings: CredentialsSettings
  }

export type IssuanceTools = CredentialIssuanceNeeds &
  IssueNeeds & {
    readonly issuers: ReturnType<typeof credentialIssuers>
    readonly nonces: CredentialNonces
    readonly issued: Counter<'configuration'>
  }

export type Handling<K extends keyof CredentialIssuanceProtocol> = Handler<
  IssuanceTools,
  CredentialIssuanceProtocol,
  K
>

export function issuanceTools(needs: CredentialIssuanceNeeds): IssuanceTools {
  const { settings, registry } = needs
  return {
    ...needs,
    lifetimeSecs: settings.lifetime_secs,
    issuers: credentialIssuers({ ...needs, enabled: settings.enabled }),
    nonces: credentialNonces({ ...needs, ttlSecs: settings.nonce_ttl_secs }),
    issued: counter(registry, 'svc_credentials_issued_total', 'Verifiable credentials issued.', [
      'configuration',
    ]),
  }
}
