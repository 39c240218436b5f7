/**
 * Placements: which actor or worker runs in which planes, and where inside of the process. An actor
 * must share all its planes with every actor that it asks. A start refuses a table that breaks this
 * rule.
 */
import { accountActor } from '../../actors/identity/sign-in/account/actor.js'
import { agentDocumentsActor } from '../../actors/agents/agents/documents/actor.js'
import { observedClientsActor } from '../../actors/oauth/clients/observed/actor.js'
import { registriesWorker } from '../../actors/agents/agents/registries/worker.js'
import { agentsActor } from '../../actors/agents/agents/actor.js'
import { identityAssertionPoliciesActor } from '../../actors/oauth/resources/identity-assertion-policies/actor.js'
import { accessPoliciesActor } from '../../actors/oauth/resources/access-policies/actor.js'
import { billingActor } from '../../actors/identity/users/plans/actor.js'
import { apiKeysActor } from '../../actors/oauth/resources/api-keys/actor.js'
import { apiResourcesActor } from '../../actors/oauth/resources/api-resources/actor.js'
import { applicationsActor } from '../../actors/oauth/clients/registered/actor.js'
import { authorizationActor } from '../../actors/oauth/tokens/authorization/actor.js'
import { backchannelActor } from '../../actors/oauth/tokens/device-and-ciba/actor.js'
import { renewalsWorker } from '../../actors/commerce/payments/renewals/worker.js'
import { trustedIssuersActor } from '../../actors/oauth/trusted-issuers/actor.js'
import { consoleSessionsActor } from '../../actors/identity/console-sessions/actor.js'
import { browserSessionsActor } from '../../actors/identity/sign-in/sessions/actor.js'
import { delegationActor } from '../../actors/agents/delegation/actor.js'
import { checkoutActor } from '../../actors/commerce/payments/checkout/actor.js'
import { commerceActor } from '../../actors/commerce/payments/actor.js'
import { payoutsActor } from '../../actors/commerce/payments/payouts/actor.js'
import { eventSinksWorker } from '../../actors/webhooks/event-sinks/worker.js'
import { hasSinks } from '../../actors/webhooks/event-sinks/settings.js'
import { deliveryWorker } from '../../actors/webhooks/delivery/worker.js'
import { auditActor } from '../../actors/operations/audit/actor.js'
import { passwordRecoveryActor } from '../../actors/identity/sign-in/recovery/actor.js'
import { identityProvidersActor } from '../../actors/identity/identity-providers/actor.js'
import { discoveryActor } from '../../actors/oauth/discovery/actor.js'
import { approvalsActor } from '../../actors/vault/approvals/actor.js'
import { approvalsWorker } from '../../actors/vault/approvals/worker.js'
import { egressCallsActor } from '../../actors/vault/egress-calls/actor.js'
import { egressActor } from '../../actors/vault/egress/actor.js'
import { healthActor } from '../../actors/operations/health/actor.js'
import { credentialIssuanceActor } from '../../actors/oauth/credential-issuance/actor.js'
import { statusListsActor } from '../../actors/oauth/status-lists/actor.js'
import { signingKeysActor } from '../../actors/oauth/signing-keys/actor.js'
import { organizationsActor } from '../../actors/identity/users/organizations/actor.js'
import { logoutWorker } from '../../actors/oauth/logout/worker.js'
import { mailWorker } from '../../actors/operations/mail/worker.js'
import { signInActor } from '../../actors/identity/sign-in/actor.js'
import { passkeysActor } from '../../actors/identity/sign-in/ways/passkey/actor.js'
import { guestsActor } from '../../actors/identity/sign-in/ways/guest/actor.js'
import { siweActor } from '../../actors/identity/sign-in/ways/ethereum/actor.js'
import { phoneActor } from '../../actors/identity/sign-in/ways/phone/actor.js'
import { passwordsActor } from '../../actors/identity/passwords/actor.js'
import { powActor } from '../../actors/agents/proof-of-work/actor.js'
import { clientRegistrationActor } from '../../actors/oauth/clients/dynamic/actor.js'
import { agentManagementActor } from '../../actors/agents/agents/management/actor.js'
import { sshCertificatesActor } from '../../actors/vault/ssh-certificates/actor.js'
import { federatedLoginActor } from '../../actors/identity/sign-in/ways/federated/actor.js'
import { scimActor } from '../../actors/identity/scim/actor.js'
import { scimGroupsActor } from '../../actors/identity/scim/groups/actor.js'
import { assetFilesActor } from '../../actors/identity/asset-files/actor.js'
import { tenantAssetsActor } from '../../actors/identity/tenant-assets/actor.js'
import { tenantsActor } from '../../actors/identity/users/tenants/actor.js'
import { rateLimitsActor } from '../../actors/operations/rate-limits/actor.js'
import { tokensActor } from '../../actors/oauth/tokens/actor.js'
import { retentionWorker } from '../../actors/operations/retention/worker.js'
import { sequencerWorker } from '../../actors/operations/sequencer/worker.js'
import { usersActor } from '../../actors/identity/users/actor.js'
import { webhookSignerActor } from '../../actors/webhooks/signer/actor.js'
import { webhooksActor } from '../../actors/webhooks/subscriptions/actor.js'
import { signalsActor } from '../../actors/webhooks/signals/actor.js'
import { signalsWorker } from '../../actors/webhooks/signals/worker.js'
import { connectionsActor } from '../../actors/vault/vault/connections/actor.js'
import { connectorsActor } from '../../actors/vault/vault/connections/connectors.js'
import { mcpServersActor } from '../../actors/vault/vault/mcp-servers/actor.js'
import { vaultActor } from '../../actors/vault/vault/actor.js'
import { reconciliationWorker } from '../../actors/commerce/payments/reconciliation/worker.js'
import { walletsActor } from '../../actors/commerce/wallets/actor.js'
import { x402Actor } from '../../actors/commerce/payments/x402/actor.js'
import { workspacesActor } from '../../actors/agents/workspaces/actor.js'
import { hasPhone } from '../../actors/identity/sign-in/ways/phone/settings.js'
import type { Plane } from './configuration/deployment.js'
import { registriesIn } from './configuration/registries.js'
import type { Settings } from './configuration/settings.js'
import { inline, type Placement, pool, placement, thread } from '../kernel/placement.js'

export type RunPlane = Exclude<Plane, 'all'>

const A = 'auth'
const C = 'control'
const J = 'async'

/** Most threads of a pool. A machine with fewer processors runs fewer. */
const POW_THREADS_MAX = 4
const PASSWORD_THREADS_MAX = 8
const SSH_THREADS_MAX = 2
const X402_THREADS_MAX = 2
const WALLET_THREADS_MAX = 2
const IMAGE_THREADS_MAX = 2

// biome-ignore format: the alignment is the information
export const placements = [
  //   actor              place                                                     planes
  placement(healthActor,       inline,                                                   A, C, J),
  placement(signingKeysActor,  inline,                                                   A, C, J),
  placement(tenantsActor,      inline,                                                   A, C, J),
  placement(rateLimitsActor,   inline,                                                   A, C, J),
  placement(tokensActor,       inline,                                                   A, C, J),
  placement(discoveryActor,    inline,                                                   A, C   ),
  placement(statusListsActor,  inline,                                                   A, C   ),
  placement(credentialIssuanceActor, inline,                                             A, C   ),
  placement(powActor,          pool('pow', { threadsMax: POW_THREADS_MAX }),             A, C   ),
  placement(passwordsActor,    pool('passwords', { threadsMax: PASSWORD_THREADS_MAX }),  A, C   ),
  placement(usersActor,        inline,                                                   A, C   ),
  placement(agentsActor,       inline,                                                   A      ),
  placement(workspacesActor,   inline,                                                   A      ),
  placement(browserSessionsActor, inline,                                                A      ),
  placement(federatedLoginActor, inline,                                                 A      ),
  placement(signInActor,       inline,                                                   A      ),
  placement(passwordRecoveryActor, inline,                                               A      ),
  placement(passkeysActor,     inline,                                                   A      ),
  placement(phoneActor,        inline,                                                   A      ),
  placement(siweActor,         inline,                                                   A      ),
  placement(guestsActor,       inline,                                                   A      ),
  placement(authorizationActor, inline,                                                  A      ),
  placement(backchannelActor,  inline,                                                   A      ),
  placement(delegationActor,   inline,                                                   A      ),
  placement(accountActor,      inline,                                                   A      ),
  placement(clientRegistrationActor, inline,                                             A, C   ),
  placement(agentDocumentsActor, inline,                                                 A, C   ),
  placement(observedClientsActor, inline,                                                   C   ),
  placement(applicationsActor, inline,                                                      C   ),
  placement(apiResourcesActor, inline,                                                      C   ),
  placement(accessPoliciesActor, inline,                                                    C   ),
  placement(identityAssertionPoliciesActor, inline,                                         C   ),
  placement(trustedIssuersActor, inline,                                                 A, C, J),
  placement(billingActor,      inline,                                                      C   ),
  placement(apiKeysActor,      inline,                                                      C   ),
  placement(organizationsActor, inline,                                                     C   ),
  placement(identityProvidersActor, inline,                                                 C   ),
  placement(scimActor,         inline,                                                      C   ),
  placement(scimGroupsActor,   inline,                                                      C   ),
  placement(consoleSessionsActor, inline,                                                   C   ),
  placement(auditActor,        inline,                                                      C   ),
  placement(egressCallsActor,  inline,                                                      C   ),
  placement(tenantAssetsActor, pool('images', { threadsMax: IMAGE_THREADS_MAX }),           C   ),
  placement(assetFilesActor,   inline,                                                   A, C   ),
  placement(agentManagementActor, inline,                                                   C   ),
  // The thread of the deliveries has its own.
  placement(webhookSignerActor, inline,                                                     C, J),
  placement(webhooksActor,     inline,                                                      C   ),
  placement(signalsActor,      inline,                                                   A, C   ),
  placement(sequencerWorker,   inline,                                                         J),
  placement(deliveryWorker,    thread('webhooks'),                                             J),
  placement(eventSinksWorker,  inline,                                                         J),
  placement(logoutWorker,      inline,                                                         J),
  placement(signalsWorker,     inline,                                                         J),
  placement(mailWorker,        inline,                                                         J),
  placement(sshCertificatesActor, pool('sshca', { threadsMax: SSH_THREADS_MAX }),        A, C   ),
  placement(vaultActor,        inline,                                                   A, C   ),
  placement(connectorsActor,   inline,                                                      C   ),
  placement(mcpServersActor,   inline,                                                      C   ),
  placement(connectionsActor,  inline,                                                   A      ),
  placement(checkoutActor,     inline,                                                   A      ),
  placement(commerceActor,     inline,                                                      C   ),
  placement(payoutsActor,   inline,                                                      C   ),
  placement(renewalsWorker,    inline,                                                         J),
  placement(approvalsActor,    inline,                                                   A      ),
  placement(egressActor,       thread('egress'),                                         A      ),
  placement(x402Actor,         pool('x402', { threadsMax: X402_THREADS_MAX }),           A      ),
  placement(walletsActor,      pool('wallets', { threadsMax: WALLET_THREADS_MAX }),      A, C   ),
  placement(reconciliationWorker, inline,                                                      J),
  placement(registriesWorker,  inline,                                                         J),
  placement(approvalsWorker,   inline,                                                         J),
  placement(retentionWorker,   inline,                                                         J),
]

/** The planes that a process serves. */
export function planesOf(plane: Plane): readonly RunPlane[] {
  return plane === 'all' ? [A, C, J] : [plane]
}

/** Whether a process answers HTTP for an actor. `async` serves its probes and metrics, nothing else. */
export function isServed(plane: Plane, actor: string): boolean {
  return plane !== 'async' || actor === healthActor.address.name
}

/** The workers: absent where background tasks are off. */
const WORKERS: ReadonlySet<string> = new Set([
  approvalsWorker.address.name,
  deliveryWorker.address.name,
  eventSinksWorker.address.name,
  logoutWorker.address.name,
  mailWorker.address.name,
  reconciliationWorker.address.name,
  registriesWorker.address.name,
  renewalsWorker.address.name,
  retentionWorker.address.name,
  sequencerWorker.address.name,
  signalsWorker.address.name,
])

/** Inline actors that a process has once: other gateway threads ask the one of the main thread. */
const ON_MAIN_THREAD: ReadonlySet<string> = new Set([healthActor.address.name])

/** Whether other gateway threads ask the main thread for this actor. */
export function isOnMainThread({ definition, place }: Placement): boolean {
  return place.tag !== 'inline' || ON_MAIN_THREAD.has(definition.address.name)
}

/** Without the workers, which run on the main thread alone. */
export function placementsOfGatewayThread(settings: PlacementSettings): typeof placements {
  return placementsWith(settings).filter(({ definition }) => !WORKERS.has(definition.address.name))
}

type PlacementSettings = Pick<
  Settings,
  | 'access_control'
  | 'anonymous'
  | 'api_keys'
  | 'billing'
  | 'chains'
  | 'commerce'
  | 'console'
  | 'deployment'
  | 'event_sinks'
  | 'oidc'
  | 'passkey'
  | 'phone'
  | 'scim'
  | 'siwe'
  | 'tenant_assets'
  | 'wallet'
>

/** Actors of features that are off in this deployment. */
const isAbsent = (actor: string, settings: PlacementSettings): boolean => {
  const { anonymous, commerce, console, deployment, oidc, passkey, phone, scim, siwe } = settings
  const { access_control, api_keys, billing, tenant_assets: assets } = settings
  return (
    (WORKERS.has(actor) && !deployment.background_tasks_enabled) ||
    (actor === eventSinksWorker.address.name && !hasSinks(settings.event_sinks)) ||
    (actor === registriesWorker.address.name &&
      !(deployment.embedded_chain_monitor && registriesIn(settings.chains).length > 0)) ||
    (actor === renewalsWorker.address.name && !commerce.enabled) ||
    (actor === consoleSessionsActor.address.name && !console.enabled) ||
    (actor === scimActor.address.name && !scim.enabled) ||
    (actor === scimGroupsActor.address.name && !(scim.enabled && scim.groups_enabled)) ||
    (actor === passkeysActor.address.name && !passkey.enabled) ||
    (actor === accessPoliciesActor.address.name && !access_control.enabled) ||
    (actor === billingActor.address.name && !billing.enabled) ||
    (actor === apiKeysActor.address.name && !api_keys.enabled) ||
    (actor === guestsActor.address.name && !anonymous.enabled) ||
    (actor === siweActor.address.name && !siwe.enabled) ||
    (actor === phoneActor.address.name && !hasPhone(phone)) ||
    (actor === observedClientsActor.address.name && !oidc.client_id_metadata_enabled) ||
    (actor === clientRegistrationActor.address.name && !oidc.dynamic_registration_enabled) ||
    (actor === walletsActor.address.name && !settings.wallet.enabled) ||
    (actor === tenantAssetsActor.address.name && !assets.enabled) ||
    (actor === assetFilesActor.address.name && !(assets.enabled && assets.folder !== undefined))
  )
}

/** The placements that apply. The routes of the other actors do not exist. */
export function placementsWith(settings: PlacementSettings): typeof placements {
  return placements.filter(({ definition }) => !isAbsent(definition.address.name, settings))
}
