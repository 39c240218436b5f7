/** Health, keys, tenants, tokens, and the credentials that are issued. */
import { pooled, processors } from './pools.js'
import { offeredLocales } from '../../../actors/domain/i18n/languages.js'
import { discoveryActor } from '../../../actors/oauth/discovery/actor.js'
import { healthActor } from '../../../actors/operations/health/actor.js'
import { credentialIssuanceActor } from '../../../actors/oauth/credential-issuance/actor.js'
import { statusListsActor } from '../../../actors/oauth/status-lists/actor.js'
import { signingKeysActor } from '../../../actors/oauth/signing-keys/actor.js'
import { signingKeys } from '../../../actors/oauth/signing-keys/protocol.js'
import { powActor, powPool } from '../../../actors/agents/proof-of-work/actor.js'
import { tenantsActor } from '../../../actors/identity/users/tenants/actor.js'
import { tenants } from '../../../actors/identity/users/tenants/protocol.js'
import { rateLimitsActor } from '../../../actors/operations/rate-limits/actor.js'
import { rateLimits, policiesWith } from '../../../actors/operations/rate-limits/protocol.js'
import { tokensActor } from '../../../actors/oauth/tokens/actor.js'
import { trustedIssuersActor } from '../../../actors/oauth/trusted-issuers/actor.js'
import { trustedIssuers } from '../../../actors/oauth/trusted-issuers/protocol.js'
import { tokens } from '../../../actors/oauth/tokens/protocol.js'
import { type ActorWiring, wireActor } from '../../kernel/wiring.js'
import { openChainWatch } from './payment-chains.js'
import { vaultExportsOf } from './vault.js'
import type { SharedNeeds } from './shared-needs.js'

/** The actors of this file, with their dependencies. */
export function issuingWirings(shared: SharedNeeds): readonly ActorWiring[] {
  const {
    resources,
    settings,
    database,
    coordination,
    kms,
    sealer,
    clock,
    random,
    jwt,
    dpop,
    auth,
    issuer,
    registry,
    documents,
    common,
    tenancy,
    remoteDocuments,
    documentation,
    isOwnAddress,
  } = shared
  return [
    wireActor(healthActor, ({ ref, onStop }) => {
      const watch = openChainWatch(settings)
      if (watch !== null) onStop(() => watch.close())
      const unfit = () => [...resources.process.unfit(), ...(watch?.unfit() ?? [])]
      const { report } = resources
      return {
        database,
        keys: ref(signingKeys),
        coordination,
        clock,
        process: { ...resources.process, unfit },
        report,
      }
    }),
    wireActor(signingKeysActor, () => ({ database, sealer, kms, clock, random, settings: jwt })),
    wireActor(tenantsActor, () => ({ database, clock, random, settings: tenancy })),
    wireActor(rateLimitsActor, () => {
      return { coordination, clock, log: resources.log, policies: policiesWith(auth) }
    }),
    tokensWiring(shared),
    wireActor(trustedIssuersActor, ({ ref }) => ({
      ...common,
      tenants: ref(tenants),
      isOwnAddress,
      coordination,
      ownIssuer: issuer,
      documents: remoteDocuments,
      urlFaultOf: documents.faultOf,
    })),
    wireActor(discoveryActor, ({ ref }) => ({
      keys: ref(signingKeys),
      tenants: ref(tenants),
      database,
      clock,
      tenancy,
      facts: {
        issuer,
        baseUrl: issuer,
        dpopEnabled: dpop.enabled,
        passkeys: settings.passkey.enabled,
        locales: offeredLocales(settings.i18n),
        registrationEnabled: settings.oidc.dynamic_registration_enabled,
        clientIdMetadata: settings.oidc.client_id_metadata_enabled,
        credentials: settings.credentials.enabled,
        rootTenantSlug: settings.credentials.root_tenant_slug,
        documentation,
      },
    })),
    wireActor(statusListsActor, ({ ref }) => ({
      keys: ref(signingKeys),
      database,
      clock,
      baseUrl: issuer,
    })),
    wireActor(credentialIssuanceActor, ({ ref }) => ({
      ...common,
      registry,
      coordination,
      sealer,
      keys: ref(signingKeys),
      tenants: ref(tenants),
      tokens: ref(tokens),
      baseUrl: issuer,
      rootTenantSlug: settings.credentials.root_tenant_slug,
      settings: settings.credentials,
    })),
    wireActor(powActor, (context) => ({
      compute: pooled(context, resources, powPool(processors(context))),
    })),
  ]
}

function tokensWiring(shared: SharedNeeds): ActorWiring {
  const { resources, settings, database, coordination, sealer, clock, random, jwt, dpop } = shared
  const { server, issuer, registry, documents, tenancy, remoteDocuments, clientLogos } = shared
  return wireActor(tokensActor, ({ ref, onStop }) => {
    const vault = vaultExportsOf(resources)
    onStop(() => documents.close())
    onStop(() => vault.close())
    onStop(() => remoteDocuments.close())
    onStop(() => clientLogos.close())
    return {
      keys: ref(signingKeys),
      throttle: server.endpoint_throttle.enabled ? ref(rateLimits) : undefined,
      database,
      coordination,
      sealer,
      documents,
      clock,
      random,
      registry,
      issuer,
      jwt,
      dpop,
      refreshFamilyCache: settings.refresh_family_cache,
      console: settings.console.enabled,
      credentials: settings.credentials.enabled,
      accessControl: settings.access_control.enabled,
      apiKeys: settings.api_keys.enabled,
      vault,
      trustedIssuers: ref(trustedIssuers),
      tenants: ref(tenants),
      documented: {
        tenancy,
        metadataClients: shared.metadataClientsOf(ref(tenants)),
      },
    }
  })
}
