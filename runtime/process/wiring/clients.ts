/** Authorization, and the clients and resources of the authorization server. */
import { approvals } from '../../../actors/vault/approvals/protocol.js'
import { accountActor } from '../../../actors/identity/sign-in/account/actor.js'
import { agentDocumentsActor } from '../../../actors/agents/agents/documents/actor.js'
import { observedClientsActor } from '../../../actors/oauth/clients/observed/actor.js'
import { identityAssertionPoliciesActor } from '../../../actors/oauth/resources/identity-assertion-policies/actor.js'
import { accessPoliciesActor } from '../../../actors/oauth/resources/access-policies/actor.js'
import { createAccessPolicies } from '../../../actors/oauth/tokens/issue/access-policies.js'
import { billingActor } from '../../../actors/identity/users/plans/actor.js'
import { apiKeysActor } from '../../../actors/oauth/resources/api-keys/actor.js'
import { apiResourcesActor } from '../../../actors/oauth/resources/api-resources/actor.js'
import { applicationsActor } from '../../../actors/oauth/clients/registered/actor.js'
import { authorizationActor } from '../../../actors/oauth/tokens/authorization/actor.js'
import { authorization } from '../../../actors/oauth/tokens/authorization/protocol.js'
import { backchannelActor } from '../../../actors/oauth/tokens/device-and-ciba/actor.js'
import { browserSessions } from '../../../actors/identity/sign-in/sessions/protocol.js'
import { delegationActor } from '../../../actors/agents/delegation/actor.js'
import { delegationMetrics } from '../../../actors/agents/delegation/metrics.js'
import { connections } from '../../../actors/vault/vault/connections/protocol.js'
import { delegation } from '../../../actors/agents/delegation/protocol.js'
import { signingKeys } from '../../../actors/oauth/signing-keys/protocol.js'
import { organizations } from '../../../actors/identity/users/organizations/protocol.js'
import { hasPhone } from '../../../actors/identity/sign-in/ways/phone/settings.js'
import { clientRegistrationActor } from '../../../actors/oauth/clients/dynamic/actor.js'
import { federatedLogin } from '../../../actors/identity/sign-in/ways/federated/protocol.js'
import { relyingPartyOf } from '../../../actors/identity/sign-in/ways/passkey/settings.js'
import { tenants } from '../../../actors/identity/users/tenants/protocol.js'
import { tokens } from '../../../actors/oauth/tokens/protocol.js'
import { type ActorWiring, wireActor } from '../../kernel/wiring.js'
import type { SharedNeeds } from './shared-needs.js'

/** The actors of this file, with their dependencies. */
export function clientWirings(shared: SharedNeeds): readonly ActorWiring[] {
  const {
    settings,
    database,
    coordination,
    sealer,
    clock,
    random,
    jwt,
    auth,
    issuer,
    registry,
    documents,
    groups,
    metrics,
    common,
    isOwnAddress,
    tenancy,
    metadataClientsOf,
    clientLogos,
  } = shared
  return [
    wireActor(authorizationActor, ({ ref }) => ({
      ...common,
      keys: ref(signingKeys),
      tokens: ref(tokens),
      tenants: ref(tenants),
      sessions: ref(browserSessions),
      issuer,
      tenancy,
      metadataClients: metadataClientsOf(ref(tenants)),
      logos: clientLogos,
      console: settings.console.enabled,
      accessPolicies: settings.access_control.enabled ? createAccessPolicies(common) : null,
      oidc: settings.oidc,
      levelMax: settings.passkey.enabled ? (3 as const) : (2 as const),
      // Until the last refresh token of the last code would have expired.
      sessionSecsMax: settings.oidc.code_ttl_secs + jwt.refresh_token_lifetime_human_secs,
    })),
    wireActor(backchannelActor, ({ ref }) => ({
      ...common,
      coordination,
      registry,
      issuer,
      keys: ref(signingKeys),
      documents,
      tokens: ref(tokens),
      tenants: ref(tenants),
      sessions: ref(browserSessions),
      settings: settings.device_authorization,
      levelMax: settings.passkey.enabled ? (3 as const) : (2 as const),
      guessing: auth,
    })),
    wireActor(delegationActor, ({ ref }) => ({
      ...common,
      tokens: ref(tokens),
      browserSessions: ref(browserSessions),
      metrics: delegationMetrics(registry),
      issuer,
      settings: settings.device_authorization,
      coordination,
      guessing: auth,
    })),
    accountWiring(shared),
    wireActor(agentDocumentsActor, () => ({ ...common, sealer, issuer })),
    wireActor(observedClientsActor, ({ ref }) => ({ ...common, tokens: ref(tokens) })),
    wireActor(applicationsActor, ({ ref }) => ({
      ...common,
      tenants: ref(tenants),
      tokens: ref(tokens),
      isOwnAddress,
      urlFaultOf: documents.faultOf,
    })),
    wireActor(apiResourcesActor, ({ ref }) => ({
      ...common,
      tenants: ref(tenants),
      tokens: ref(tokens),
      issuer,
      isOwnAddress,
    })),
    wireActor(identityAssertionPoliciesActor, () => ({ ...common, isOwnAddress })),
    wireActor(accessPoliciesActor, ({ ref }) => ({
      ...common,
      tokens: ref(tokens),
      settings: settings.access_control,
      levelMax: settings.passkey.enabled ? (3 as const) : (2 as const),
    })),
    wireActor(billingActor, ({ ref }) => ({
      ...common,
      tenants: ref(tenants),
      organizations: ref(organizations),
    })),
    wireActor(apiKeysActor, ({ ref }) => ({
      ...common,
      tokens: ref(tokens),
      settings: settings.api_keys,
    })),
    wireActor(clientRegistrationActor, ({ ref }) => ({
      database,
      clock,
      random,
      tenants: ref(tenants),
      tokens: ref(tokens),
      documents,
      groups,
      counts: metrics.shares,
      tokenRequired: settings.oidc.registration_initial_access_token_required,
    })),
  ]
}

function accountWiring({ settings, sealer, issuer, common }: SharedNeeds): ActorWiring {
  return wireActor(accountActor, ({ ref }) => ({
    ...common,
    sealer,
    browserSessions: ref(browserSessions),
    authorization: ref(authorization),
    delegation: ref(delegation),
    approvals: ref(approvals),
    connections: ref(connections),
    selfService: settings.user_self_service.enabled,
    passkeyDomain: relyingPartyOf(settings.passkey, issuer)?.id ?? null,
    phones: hasPhone(settings.phone),
    wallets: settings.siwe.enabled,
    federatedLogin: ref(federatedLogin),
  }))
}
