/** The dependencies of each actor and worker. Rows in the order of `planes.ts`. */
import { pooled, processors } from './pools.js'
import { offeredLocales } from '../../actors/domain/i18n/languages.js'
import { accountActor } from '../../actors/identity/accounts/actor.js'
import { agentsActor } from '../../actors/agents/agents/actor.js'
import { powMetrics } from '../../actors/agents/agents/metrics.js'
import { agentDocumentsActor } from '../../actors/agents/documents/actor.js'
import { observedClientsActor } from '../../actors/oauth/client-id-metadata/actor.js'
import { createMetadataClients } from '../../actors/oauth/client-id-metadata/metadata-clients.js'
import { createRemoteDocuments } from '../../actors/oauth/client-id-metadata/remote-documents.js'
import { agents } from '../../actors/agents/agents/protocol.js'
import { accessPoliciesActor } from '../../actors/oauth/access-policies/actor.js'
import { createAccessPolicies } from '../../actors/oauth/access-policies/enforcement.js'
import { billingActor } from '../../actors/identity/billing/actor.js'
import { apiKeysActor } from '../../actors/oauth/api-keys/actor.js'
import { apiResourcesActor } from '../../actors/oauth/api-resources/actor.js'
import { ownAddressTest } from '../../actors/oauth/api-resources/ownership.js'
import { applicationsActor } from '../../actors/oauth/clients/actor.js'
import { authorizationActor } from '../../actors/oauth/authorization/actor.js'
import { authorization } from '../../actors/oauth/authorization/protocol.js'
import { backchannelActor } from '../../actors/oauth/device-and-ciba/actor.js'
import { consoleSessionsActor } from '../../actors/identity/console-sessions/actor.js'
import { browserSessionsActor } from '../../actors/identity/sessions/actor.js'
import { browserSessions } from '../../actors/identity/sessions/protocol.js'
import { delegationActor } from '../../actors/agents/delegation/actor.js'
import { delegationMetrics } from '../../actors/agents/delegation/metrics.js'
import { delegation } from '../../actors/agents/delegation/protocol.js'
import { hasSinks } from '../../actors/webhooks/event-sinks/settings.js'
import { eventSinksWorker, sinksOf } from '../../actors/webhooks/event-sinks/worker.js'
import { createSender } from '../../actors/webhooks/delivery/sender.js'
import { auditActor } from '../../actors/operations/audit/actor.js'
import { passwordRecoveryActor } from '../../actors/identity/password-recovery/actor.js'
import { discoveryActor } from '../../actors/oauth/discovery/actor.js'
import { TenantGroups } from '../../actors/platform/tenant-groups.js'
import { createDocuments } from '../../actors/platform/outbound-http/documents.js'
import { healthActor } from '../../actors/operations/health/actor.js'
import { credentialIssuanceActor } from '../../actors/oauth/credential-issuance/actor.js'
import { statusListsActor } from '../../actors/oauth/status-lists/actor.js'
import { signingKeysActor } from '../../actors/oauth/signing-keys/actor.js'
import { signingKeys } from '../../actors/oauth/signing-keys/protocol.js'
import { organizationsActor } from '../../actors/identity/organizations/actor.js'
import { organizations } from '../../actors/identity/organizations/protocol.js'
import { mailWorker } from '../../actors/operations/mail/worker.js'
import { signInActor } from '../../actors/identity/sign-in/actor.js'
import { login } from '../../actors/identity/sign-in/protocol.js'
import { signInOffers } from '../../actors/identity/sign-in/settings.js'
import { guestsActor } from '../../actors/identity/guests/actor.js'
import { siweActor } from '../../actors/identity/siwe/actor.js'
import { phoneActor } from '../../actors/identity/phone/actor.js'
import { hasPhone } from '../../actors/identity/phone/settings.js'
import { passkeysActor } from '../../actors/identity/passkeys/actor.js'
import { webauthn } from '../../actors/identity/passkeys/library.js'
import { relyingParty } from '../../actors/identity/passkeys/settings.js'
import {
  checkPasswordEngine,
  type PasswordCompute,
  passwordPlaces,
  passwordPool,
  passwordsHere,
  passwordsActor,
} from '../../actors/identity/passwords/actor.js'
import { openBreaches } from '../../actors/identity/passwords/breaches.js'
import { passwords } from '../../actors/identity/passwords/protocol.js'
import { powActor, powPool } from '../../actors/agents/proof-of-work/actor.js'
import { pow } from '../../actors/agents/proof-of-work/protocol.js'
import { clientRegistrationActor } from '../../actors/oauth/client-registration/actor.js'
import { agentManagementActor } from '../../actors/agents/management/actor.js'
import {
  sshCertificatesActor,
  sshCertificatesPool,
} from '../../actors/vault/ssh-certificates/actor.js'
import { sshCertificatesMetrics } from '../../actors/vault/ssh-certificates/metrics.js'
import { sshCertificates } from '../../actors/vault/ssh-certificates/protocol.js'
import { federatedLogin } from '../../actors/identity/federated-login/protocol.js'
import { scimActor } from '../../actors/identity/scim/actor.js'
import { scimGroupsActor } from '../../actors/identity/scim-groups/actor.js'
import { type ImageModule, imagePool } from '../../actors/identity/tenant-assets/actor.js'
import { tenantsActor } from '../../actors/identity/tenants/actor.js'
import { tenants, type TenantsProtocol } from '../../actors/identity/tenants/protocol.js'
import type { ActorRef } from '../kernel/actor.js'
import { rateLimitsActor } from '../../actors/operations/rate-limits/actor.js'
import { rateLimits } from '../../actors/operations/rate-limits/protocol.js'
import { policiesWith } from '../../actors/operations/rate-limits/protocol.js'
import { tokensActor } from '../../actors/oauth/tokens/actor.js'
import { tokens } from '../../actors/oauth/tokens/protocol.js'
import {
  closeLostCalls,
  recordUnknownCalls,
} from '../../actors/vault/egress/admission/lost-calls.js'
import { retentionWorker } from '../../actors/operations/retention/worker.js'
import { sequencerWorker } from '../../actors/operations/sequencer/worker.js'
import { usersActor } from '../../actors/identity/users/actor.js'
import { users } from '../../actors/identity/users/protocol.js'
import { eventTypesOf } from '../configuration/feature-details.js'
import { webhooksActor } from '../../actors/webhooks/subscriptions/actor.js'
import { vaultActor } from '../../actors/vault/vault/actor.js'
import { workspacesActor } from '../../actors/agents/workspaces/actor.js'
import { reconciliationWorker } from '../../actors/commerce/reconciliation/worker.js'
import { x402Actor, x402Pool } from '../../actors/commerce/x402/actor.js'
import type { X402Module } from '../../actors/commerce/x402/needs.js'
import { commerceWirings, walletWiring } from './commerce.js'
import { type ActorWiring, untilSettled, wireActor } from '../kernel/wiring.js'
import { openChainWatch, reconciliationNeeds, x402Needs } from './payment-chains.js'
import { captchaOf, mailQueueOf, mailRunnerOf, textSenderOf } from './mail.js'
import { assetRetirementOf, tenantAssetWirings } from './tenant-assets.js'
import { resealOf, vaultExportsOf, egressForgets } from './vault.js'
import { federatedLoginWirings } from './federated-login.js'
import type { ProcessResources } from '../process/process-resources.js'
import { egressSettingsOf, ownAddressesOf, senderSettingsOf } from './egress-settings.js'

export function actorWirings(resources: ProcessResources): readonly ActorWiring[] {
  const { settings, database, coordination, kms, sealer, clock, random, metrics } = resources
  const { webhooks, jwt, dpop, auth, challenge, server, openapi } = settings
  const issuer = settings.oidc.issuer_url
  const alwaysTwo = settings.two_factor.enabled
  const { registry } = metrics
  const offers = signInOffers(settings)
  const { captcha, gate } = captchaOf(resources)
  const mailQueue = mailQueueOf(resources)
  const groups = new TenantGroups({ database, clock })
  const documents = createDocuments({ settings: egressSettingsOf(settings), clock })
  /** The dependencies of nearly every actor. */
  const common = { database, clock, random }
  const isOwnAddress = ownAddressTest(ownAddressesOf(settings))
  const tenancy = {
    baseDomain: server.base_domain,
    issuerHost: new URL(issuer).hostname,
    defaultTenantSlug: settings.tenant.default_tenant_slug,
  }
  const remoteDocuments = createRemoteDocuments({
    database,
    clock,
    settings: egressSettingsOf(settings),
    documentBytesMax: settings.oidc.client_id_metadata_max_bytes,
  })
  const metadataClientsOf = (tenantsRef: ActorRef<TenantsProtocol>) =>
    createMetadataClients({
      ...common,
      tenants: tenantsRef,
      remote: remoteDocuments,
      documents,
      issuer,
      enabled: settings.oidc.client_id_metadata_enabled,
      grantSecsMax: jwt.refresh_token_lifetime_human_secs,
    })
  const documentation = openapi.enabled ? issuer + openapi.docs_path : null

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
        process: { ...resources.process, unfit },
        report,
      }
    }),
    wireActor(signingKeysActor, () => ({ database, sealer, kms, clock, random, settings: jwt })),
    wireActor(tenantsActor, () => ({
      database,
      clock,
      random,
      settings: tenancy,
    })),
    wireActor(rateLimitsActor, () => {
      return { coordination, clock, log: resources.log, policies: policiesWith(auth) }
    }),
    wireActor(tokensActor, ({ ref, onStop }) => {
      const vault = vaultExportsOf(resources)
      onStop(() => documents.close())
      onStop(() => vault.close())
      onStop(() => remoteDocuments.close())
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
        tenants: ref(tenants),
        documented: {
          tenancy,
          metadataClients: metadataClientsOf(ref(tenants)),
        },
      }
    }),
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
      issuer,
      defaultTenantSlug: settings.tenant.default_tenant_slug,
      settings: settings.credentials,
    })),
    wireActor(powActor, (context) => ({
      compute: pooled(context, resources, powPool(processors(context))),
    })),
    wireActor(passwordsActor, async (context) => {
      const pool = passwordPool(auth, processors(context))
      const compute: PasswordCompute = pooled(context, resources, pool)
      const { thread_start: starts } = settings.deployment
      await checkPasswordEngine(starts === 'at_start' ? compute : await passwordsHere())
      const breaches = challenge.hibp_enabled
        ? openBreaches({ url: challenge.hibp_url, settings: egressSettingsOf(settings) })
        : null
      context.onStop(async () => breaches?.close())
      const places = passwordPlaces(pool)
      const { shares: counts } = metrics
      return { settings: auth, compute, random, breaches, places, groups, counts }
    }),
    wireActor(usersActor, ({ ref }) => ({
      ...common,
      passwords: ref(passwords),
      tokens: ref(tokens),
      mail: mailQueue,
      invitations: settings.invitations,
      resetTtlSecs: settings.user_self_service.reset_ttl_secs,
      issuer,
    })),
    wireActor(agentsActor, ({ ref }) => ({
      ...common,
      tenants: ref(tenants),
      pow: ref(pow),
      tokens: ref(tokens),
      outcomes: powMetrics(registry),
      documents,
      groups,
      counts: metrics.shares,
      issuer,
      settings: challenge,
    })),
    wireActor(workspacesActor, ({ ref }) => ({
      database,
      clock,
      random,
      agents: ref(agents),
      tenants: ref(tenants),
      tokens: ref(tokens),
      users: ref(users),
      issuer,
    })),
    wireActor(browserSessionsActor, () => ({ database, clock, random, alwaysTwo })),
    ...federatedLoginWirings(resources),
    wireActor(signInActor, ({ ref, onStop }) => {
      onStop(async () => captcha?.close())
      return {
        ...common,
        coordination,
        sealer,
        passwords: ref(passwords),
        tenants: ref(tenants),
        browserSessions: ref(browserSessions),
        federatedLogin: ref(federatedLogin),
        settings: auth,
        cookies: settings.session_cookie,
        alwaysTwo,
        passkeys: settings.passkey.enabled,
        registry,
        mail: mailQueue,
        email: settings.email,
        adaptiveMfa: settings.adaptive_mfa,
        emailOtp: settings.email_otp,
        magicLink: settings.magic_link,
        issuer,
        consolePath: settings.console.enabled ? '/console' : null,
        offers,
        gate,
      }
    }),
    wireActor(passkeysActor, async ({ ref }) => {
      if (settings.deployment.thread_start === 'at_start') await webauthn()
      return {
        database,
        coordination,
        clock,
        random,
        login: ref(login),
        browserSessions: ref(browserSessions),
        federatedLogin: ref(federatedLogin),
        settings: auth,
        cookies: settings.session_cookie,
        passkeys: settings.passkey.enabled,
        relyingParty: relyingParty(settings.passkey, issuer),
        mail: mailQueue,
        email: settings.email,
        adaptiveMfa: settings.adaptive_mfa,
        registry,
        offers,
      }
    }),
    wireActor(phoneActor, ({ ref, onStop }) => {
      const sender = textSenderOf(resources)
      onStop(() => sender.close())
      return {
        ...common,
        coordination,
        settings: auth,
        cookies: settings.session_cookie,
        tenants: ref(tenants),
        browserSessions: ref(browserSessions),
        sms: settings.sms,
        i18n: settings.i18n,
        mail: mailQueue,
        email: settings.email,
        adaptiveMfa: settings.adaptive_mfa,
        sender,
        issuer,
        registry,
      }
    }),
    wireActor(guestsActor, () => ({
      ...common,
      coordination,
      settings: auth,
      adaptiveMfa: settings.adaptive_mfa,
      cookies: settings.session_cookie,
      mail: mailQueue,
      email: settings.email,
      anonymous: settings.anonymous,
      registry,
    })),
    wireActor(siweActor, ({ ref }) => ({
      ...common,
      coordination,
      settings: auth,
      cookies: settings.session_cookie,
      tenants: ref(tenants),
      browserSessions: ref(browserSessions),
      siwe: settings.siwe,
      mail: mailQueue,
      email: settings.email,
      adaptiveMfa: settings.adaptive_mfa,
      issuer,
      registry,
    })),
    wireActor(passwordRecoveryActor, ({ ref }) => ({
      ...common,
      coordination,
      browserSessions: ref(browserSessions),
      passwords: ref(passwords),
      tenants: ref(tenants),
      settings: auth,
      adaptiveMfa: settings.adaptive_mfa,
      cookies: settings.session_cookie,
      gate,
      mail: mailQueue,
      email: settings.email,
      selfService: settings.user_self_service,
      alwaysTwo,
      issuer,
    })),
    wireActor(authorizationActor, ({ ref }) => ({
      ...common,
      keys: ref(signingKeys),
      tokens: ref(tokens),
      tenants: ref(tenants),
      sessions: ref(browserSessions),
      issuer,
      tenancy,
      metadataClients: metadataClientsOf(ref(tenants)),
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
    })),
    wireActor(accountActor, ({ ref }) => ({
      ...common,
      sealer,
      browserSessions: ref(browserSessions),
      authorization: ref(authorization),
      delegation: ref(delegation),
      selfService: settings.user_self_service.enabled,
      passkeys: settings.passkey.enabled,
      phones: hasPhone(settings.phone),
      wallets: settings.siwe.enabled,
      federatedLogin: ref(federatedLogin),
    })),
    wireActor(agentDocumentsActor, () => ({ ...common, issuer })),
    wireActor(observedClientsActor, ({ ref }) => ({ ...common, tokens: ref(tokens) })),
    wireActor(applicationsActor, ({ ref }) => ({
      ...common,
      tenants: ref(tenants),
      tokens: ref(tokens),
      isOwnAddress,
    })),
    wireActor(apiResourcesActor, ({ ref }) => ({
      ...common,
      tenants: ref(tenants),
      tokens: ref(tokens),
      issuer,
      isOwnAddress,
    })),
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
      issuer,
      tokenRequired: settings.oidc.registration_initial_access_token_required,
    })),
    wireActor(scimActor, ({ ref }) => ({
      ...common,
      tokens: ref(tokens),
      mail: mailQueue,
      invitations: settings.invitations,
      issuer,
      documentation,
      maxResults: settings.scim.max_results,
      groups: settings.scim.groups_enabled,
    })),
    wireActor(scimGroupsActor, ({ ref }) => ({
      ...common,
      tokens: ref(tokens),
      issuer,
      maxResults: settings.scim.max_results,
    })),
    wireActor(consoleSessionsActor, () => ({ ...common, sealer })),
    wireActor(auditActor, () => ({ database })),
    wireActor(agentManagementActor, ({ ref }) => ({
      database,
      clock,
      random,
      pow: ref(pow),
      tokens: ref(tokens),
      issuer,
    })),
    wireActor(organizationsActor, ({ ref }) => ({
      ...common,
      tenants: ref(tenants),
      tokens: ref(tokens),
      limits: settings.organizations,
    })),
    wireActor(webhooksActor, ({ onStop }) => {
      const sending = senderSettingsOf(settings)
      const sender = createSender({ settings: sending, clock, groups })
      onStop(() => sender.close())
      return {
        ...common,
        sealer,
        sender,
        shares: metrics.shares,
        groups,
        urlRules: {
          nonStandardPorts: sending.nonStandardPorts,
          privateNetworks: webhooks.allow_private_networks,
        },
        offered: eventTypesOf(settings),
        subscriptionsMax: webhooks.max_subscriptions_per_tenant,
        attempts: webhooks.retry_schedule_secs.length,
        retentionDays: webhooks.delivery_retention_days,
      }
    }),
    wireActor(sequencerWorker, (context) => {
      const isSent = hasSinks(settings.event_sinks)
      return { database, clock, registry, hasSinks: isSent, settled: untilSettled(context) }
    }),
    wireActor(eventSinksWorker, (context) => {
      const sinks = sinksOf(settings.event_sinks)
      return { database, clock, random, registry, sinks, settled: untilSettled(context) }
    }),
    wireActor(mailWorker, ({ onStop }) => {
      const runner = mailRunnerOf(resources)
      onStop(() => runner.settled())
      return { runner }
    }),
    wireActor(sshCertificatesActor, (context) => ({
      database,
      sealer,
      compute: pooled(context, resources, sshCertificatesPool(processors(context))),
      clock,
      random,
      metrics: sshCertificatesMetrics(registry),
      settings: settings.vault,
    })),
    wireActor(vaultActor, (context) => ({
      database,
      sealer,
      sshCertificates: context.ref(sshCertificates),
      changed: egressForgets(context, resources),
      clock,
      random,
      settings: settings.vault,
    })),
    ...commerceWirings(resources),
    wireActor(x402Actor, (context) => {
      const compute = pooled<X402Module>(context, resources, x402Pool(processors(context)))
      return x402Needs(resources, compute, context.onStop)
    }),
    walletWiring(resources),
    wireActor(reconciliationWorker, ({ onStop }) => reconciliationNeeds(resources, onStop)),
    ...tenantAssetWirings(resources, (context) =>
      pooled<ImageModule>(context, resources, imagePool(processors(context))),
    ),
    wireActor(retentionWorker, ({ ref, onStop }) => ({
      database,
      keys: ref(signingKeys),
      clock,
      registry,
      reseal: resealOf(resources),
      closeLostCalls: (signal) => closeLostCalls(resources, signal),
      recordUnknownCalls: (signal) => recordUnknownCalls(resources, signal),
      removeRetiredAssets: assetRetirementOf(resources, onStop),
      random,
      retention: {
        ...webhooks,
        ...settings.commerce,
        guest_retention_secs: settings.anonymous.retention_secs,
      },
    })),
  ]
}
