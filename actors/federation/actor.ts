/** What tenants set up for sign-in through their own providers. */
import { defineActor } from '../../runtime/kernel/actor.js'
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'
import type { Sealer } from '../../storage/sealer.js'
import type { Database } from '../../storage/sql.js'
import type { TargetRules } from '../egress/targets.js'
import type { EnterpriseSsoSettings, VerifiedDomainsSettings } from '../sso/settings.js'
import { domainSteps } from './domains.js'
import { federation, type FederationProtocol } from './protocol.js'
import { providerSteps } from './providers.js'
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
  /** The redirect URI of a provider. */
  readonly callbackOf: (provider: string) => string
}

const anyOrder = () => undefined

export const federationActor = defineActor<FederationProtocol, FederationNeeds>({
  address: federation,
  asks: {},
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: {
    listProviders: anyOrder,
    createProvider: anyOrder,
    readProvider: anyOrder,
    updateProvider: ({ id }) => id,
    deleteProvider: ({ id }) => id,
    listDomains: anyOrder,
    createDomain: anyOrder,
    readDomain: anyOrder,
    updateDomain: ({ id }) => id,
    verifyDomain: ({ id }) => id,
    deleteDomain: ({ id }) => id,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => ({ ...providerSteps(needs), ...domainSteps(needs) }),
})
