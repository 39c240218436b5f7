/**
 * The seating plan: which actor, where inside of the process, in which planes. The one table to read
 * for "what runs here". Whoever asks must share every plane with whoever it asks; a start refuses a
 * plan that breaks this.
 */
import { accountActor } from '../actors/identity/accounts/actor.js'
import { agentsActor } from '../actors/agents/agents/actor.js'
import { applicationsActor } from '../actors/oauth/clients/actor.js'
import { authorizationActor } from '../actors/oauth/authorization/actor.js'
import { backchannelActor } from '../actors/oauth/device-and-ciba/actor.js'
import { billingActor } from '../actors/commerce/renewals/actor.js'
import { browserSessionsActor } from '../actors/identity/sessions/actor.js'
import { delegationActor } from '../actors/agents/delegation/actor.js'
import { checkoutActor } from '../actors/commerce/checkout/actor.js'
import { commerceActor } from '../actors/commerce/payments/actor.js'
import { settlementActor } from '../actors/commerce/payouts/actor.js'
import { deliveriesActor } from '../actors/webhooks/delivery/actor.js'
import { auditActor } from '../actors/operations/audit/actor.js'
import { credentialsActor } from '../actors/identity/password-recovery/actor.js'
import { federationActor } from '../actors/identity/identity-providers/actor.js'
import { discoveryActor } from '../actors/oauth/discovery/actor.js'
import { egressActor } from '../actors/vault/egress/actor.js'
import { healthActor } from '../actors/operations/health/actor.js'
import { signingKeysActor } from '../actors/oauth/signing-keys/actor.js'
import { organizationsActor } from '../actors/identity/organizations/actor.js'
import { notifyActor } from '../actors/operations/mail/actor.js'
import { loginActor } from '../actors/identity/sign-in/actor.js'
import { passkeysActor } from '../actors/identity/passkeys/actor.js'
import { passwordsActor } from '../actors/identity/passwords/actor.js'
import { powActor } from '../actors/agents/proof-of-work/actor.js'
import { clientRegistrationActor } from '../actors/oauth/client-registration/actor.js'
import { rosterActor } from '../actors/agents/management/actor.js'
import { sshcaActor } from '../actors/vault/ssh-certificates/actor.js'
import { ssoActor } from '../actors/identity/federated-login/actor.js'
import { tenantsActor } from '../actors/identity/tenants/actor.js'
import { throttleActor } from '../actors/operations/rate-limits/actor.js'
import { tokensActor } from '../actors/oauth/tokens/actor.js'
import { upkeepActor } from '../actors/operations/retention/actor.js'
import { usersActor } from '../actors/identity/users/actor.js'
import { webhooksActor } from '../actors/webhooks/subscriptions/actor.js'
import { vaultActor } from '../actors/vault/vault/actor.js'
import { reconciliationActor } from '../actors/commerce/reconciliation/actor.js'
import { x402Actor } from '../actors/commerce/x402/actor.js'
import { workspacesActor } from '../actors/agents/workspaces/actor.js'
import type { Plane } from './configuration/deployment.js'
import type { Settings } from './configuration/settings.js'
import { inline, pool, placement, thread } from './kernel/placement.js'

export type RunPlane = Exclude<Plane, 'all'>

const A = 'auth'
const C = 'control'
const J = 'async'

/** Threads of a pool at most; a machine with fewer processors runs fewer. */
const POW_THREADS_MAX = 4
const PASSWORD_THREADS_MAX = 8
const SSHCA_THREADS_MAX = 2
const X402_THREADS_MAX = 2

// biome-ignore format: the alignment is the information
export const placements = [
  //   actor              place                                                     planes
  placement(healthActor,       inline,                                                   A, C, J),
  placement(signingKeysActor,  inline,                                                   A, C, J),
  placement(tenantsActor,      inline,                                                   A, C, J),
  placement(throttleActor,     inline,                                                   A, C, J),
  placement(tokensActor,       inline,                                                   A, C, J),
  placement(discoveryActor,    inline,                                                   A, C   ),
  placement(powActor,          pool('pow', { threadsMax: POW_THREADS_MAX }),             A, C   ),
  placement(passwordsActor,    pool('passwords', { threadsMax: PASSWORD_THREADS_MAX }),  A, C   ),
  placement(usersActor,        inline,                                                   A, C   ),
  placement(agentsActor,       inline,                                                   A      ),
  placement(workspacesActor,   inline,                                                   A      ),
  placement(browserSessionsActor, inline,                                                A      ),
  placement(ssoActor,          inline,                                                   A      ),
  placement(loginActor,        inline,                                                   A      ),
  placement(credentialsActor,  inline,                                                   A      ),
  placement(passkeysActor,     inline,                                                   A      ),
  placement(authorizationActor, inline,                                                  A      ),
  placement(backchannelActor,  inline,                                                   A      ),
  placement(delegationActor,   inline,                                                   A      ),
  placement(accountActor,      inline,                                                   A      ),
  placement(clientRegistrationActor, inline,                                             A, C   ),
  placement(applicationsActor, inline,                                                      C   ),
  placement(organizationsActor, inline,                                                     C   ),
  placement(federationActor,   inline,                                                      C   ),
  placement(auditActor,        inline,                                                      C   ),
  placement(rosterActor,       inline,                                                      C   ),
  placement(webhooksActor,     inline,                                                      C   ),
  placement(deliveriesActor,   thread('webhooks'),                                             J),
  placement(notifyActor,       inline,                                                         J),
  placement(sshcaActor,        pool('sshca', { threadsMax: SSHCA_THREADS_MAX }),         A, C   ),
  placement(vaultActor,        inline,                                                   A, C   ),
  placement(checkoutActor,     inline,                                                   A      ),
  placement(commerceActor,     inline,                                                      C   ),
  placement(settlementActor,   inline,                                                      C   ),
  placement(billingActor,      inline,                                                         J),
  placement(egressActor,       thread('egress'),                                         A      ),
  placement(x402Actor,         pool('x402', { threadsMax: X402_THREADS_MAX }),           A      ),
  placement(reconciliationActor, inline,                                                       J),
  placement(upkeepActor,       inline,                                                         J),
]

/** The planes that a process serves. */
export function planesOf(plane: Plane): readonly RunPlane[] {
  return plane === 'all' ? [A, C, J] : [plane]
}

/** Whether a process answers HTTP for an actor. `async` serves its probes and metrics, nothing else. */
export function isServed(plane: Plane, actor: string): boolean {
  return plane !== 'async' || actor === healthActor.address.name
}

/** Actors that only work by themselves: absent where background tasks are off. */
const BACKGROUND: ReadonlySet<string> = new Set([
  deliveriesActor.address.name,
  notifyActor.address.name,
  reconciliationActor.address.name,
])

type PlacementSettings = Pick<Settings, 'deployment' | 'oidc' | 'passkey'>

/** Actors of features that a deployment turns on. */
const isAbsent = (actor: string, { deployment, oidc, passkey }: PlacementSettings): boolean =>
  (BACKGROUND.has(actor) && !deployment.background_tasks_enabled) ||
  (actor === passkeysActor.address.name && !passkey.enabled) ||
  (actor === clientRegistrationActor.address.name && !oidc.dynamic_registration_enabled)

/** The seats that are filled; the routes of the others do not exist. */
export function placementsWith(settings: PlacementSettings): typeof placements {
  return placements.filter(({ definition }) => !isAbsent(definition.address.name, settings))
}
