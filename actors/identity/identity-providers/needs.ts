/** Dependencies of the identity-provider and domain handlers. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { ShareCounts } from '../../../runtime/kernel/fairness/fair-share.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import type { TargetRules } from '../../platform/outbound-http/targets.js'
import type { EnterpriseSsoSettings, VerifiedDomainsSettings } from '../federated-login/settings.js'
import type { TxtLookup } from './txt-records.js'

export type IdentityProvidersNeeds = {
  readonly database: Database
  readonly sealer: Sealer
  readonly clock: Clock
  readonly random: Random
  readonly txt: TxtLookup
  readonly groups: Pick<TenantGroups, 'of'>
  readonly counts: ShareCounts
  readonly settings: EnterpriseSsoSettings
  readonly domains: Pick<VerifiedDomainsSettings, 'enabled' | 'max_per_tenant'>
  readonly urlRules: TargetRules
  /** Builds the redirect URI of a provider. */
  readonly callbackOf: (provider: string) => string
}
