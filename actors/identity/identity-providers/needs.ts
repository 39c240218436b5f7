/** What the handlers of identity providers and domains get. */
import type { Handler } from '../../../runtime/kernel/actor.js'
import { FairShare, type ShareCounts } from '../../../runtime/kernel/fairness/fair-share.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { TargetRules } from '../../platform/outbound-http/targets.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import type { EnterpriseSsoSettings, VerifiedDomainsSettings } from './settings.js'
import type { IdentityProvidersProtocol } from './protocol.js'
import type { TxtLookup } from './txt-records.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

/** Proofs that are looked up at the same time. Name servers that never answer hold so many of the actor's places. */
const LOOK_UPS_MAX = 32
const LOOK_UPS_PER_TENANT_MAX = 2

export type IdentityProvidersNeeds = WriteNeeds & {
  readonly sealer: Sealer
  readonly txt: TxtLookup
  readonly groups: Pick<TenantGroups, 'of'>
  readonly counts: ShareCounts
  readonly settings: EnterpriseSsoSettings
  readonly domains: Pick<VerifiedDomainsSettings, 'enabled' | 'max_per_tenant'>
  readonly urlRules: TargetRules
  /** Builds the redirect URI of a provider. */
  readonly callbackOf: (provider: string) => string
}

export type IdentityProvidersTools = IdentityProvidersNeeds & { readonly lookUps: FairShare }

export type Handling<K extends keyof IdentityProvidersProtocol> = Handler<
  IdentityProvidersTools,
  IdentityProvidersProtocol,
  K
>

export function identityProvidersTools(needs: IdentityProvidersNeeds): IdentityProvidersTools {
  const levels = [{ name: 'tenant', max: LOOK_UPS_PER_TENANT_MAX }]
  const { counts } = needs
  const lookUps = new FairShare({ resource: 'domain_proofs', total: LOOK_UPS_MAX, levels, counts })
  return { ...needs, lookUps }
}
