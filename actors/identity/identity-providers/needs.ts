/** Dependencies of the identity-provider and domain handlers. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { TargetRules } from '../../platform/outbound-http/targets.js'
import type { EnterpriseSsoSettings, VerifiedDomainsSettings } from '../federated-login/settings.js'
import type { TxtLookup } from './txt-records.js'

export type FederationNeeds = {
  readonly database: Database
  readonly sealer: Sealer
  readonly clock: Clock
  readonly random: Random
  readonly txt: TxtLookup
  readonly settings: EnterpriseSsoSettings
  readonly domains: Pick<VerifiedDomainsSettings, 'enabled' | 'max_per_tenant'>
  readonly urlRules: TargetRules
  /** Builds the redirect URI of a provider. */
  readonly callbackOf: (provider: string) => string
}
