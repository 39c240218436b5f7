/**
 * Federated sign-in: through providers of the deployment ([social], [generic_oauth]) and of a tenant
 * ([enterprise_sso]). Rules: docs/reference/identity.md, "Federated sign-in".
 */
import { address, type Ask } from '../../../../../runtime/kernel/protocol.js'
import type { Email } from '../../../../domain/email.js'
import type { BrowserSession, SignInNeeded } from '../../sessions/protocol.js'
import type { OrganizationId, TenantId } from '../../../../domain/ids.js'
import type { TenantSelector } from '../../../../domain/tenants/tenancy.js'
import type { Visitor } from '../../protocol.js'
import type { PageTenant } from '../../../../domain/tenants/branding.js'
import type { EventRefused } from '../../../../domain/webhooks/signals.js'
import type { Upstream } from '../../../../domain/upstream.js'

export type FederatedLoginProtocol = {
  /** The providers available to users of a tenant. */
  offered: Ask<ListOffered, Offered>
  /**
   * Redirects a browser to a provider. Shows a confirmation page first if the request did not come from a page of ours,
   * or if the browser has a session of another tenant (login CSRF).
   */
  startSso: Ask<StartFederatedLogin, ToUpstream | ConfirmStart | FederatedLoginFailed>
  /** Redirects the browser of a signed-in user to a provider, to link the identity there. */
  linkOwnIdentity: Ask<StartLink, ToUpstream | SignInNeeded | FederatedLoginFailed>
  /** The callback. Its state can be used once. */
  finishSso: Ask<
    FederatedLoginCallback,
    FederatedLoginSignedIn | Linked | FederatedLoginFailed | BackElsewhere
  >
  /** The identities linked to the user's account. */
  identities: Ask<{ readonly session: BrowserSession }, IdentitiesListed>
  /** Removes a linked identity and ends the sessions opened by it. Needs a fresh sign-in, otherwise `sign_in`. */
  unlinkOwnIdentity: Ask<
    {
      readonly session: BrowserSession
      readonly token: string
      readonly identityId: string
      readonly address: string
    },
    { tag: 'unlinked' } | { tag: 'unknown_identity' } | { tag: 'last_way_in' } | SignInNeeded
  >
  /** A logout token of a provider ends the sessions that it opened. A token works once. */
  receiveLogout: Ask<ReceiveLogout, { readonly tag: 'logged_out' } | LogoutRefused>
  /** A security event of a provider ends what it is about. One that was received before changes nothing. */
  receiveSecurityEvent: Ask<
    ReceiveLogout,
    { readonly tag: 'received' } | EventRefused | { readonly tag: 'unavailable' }
  >
  /** Tells whether addresses of a domain are routed to a provider of the tenant. Reads nothing else. */
  checkSso: Ask<CheckSso, SsoRouted | NotRouted | TenantUnusable>
}

/** Why a federated sign-in failed. Each value has its text on the page. */
export type FederatedLoginFault =
  /** The state is unknown, used, expired or belongs to another browser. */
  | 'unknown_state'
  | 'unknown_flow'
  | 'unknown_provider'
  | 'unknown_tenant'
  /** The provider is unavailable. */
  | 'unavailable'
  /** The provider's response is invalid: iss, aud, nonce, signature or format. */
  | 'invalid_answer'
  /** The user or the provider declined. */
  | 'denied'
  /** The provider does not state that the address is verified. */
  | 'unverified_email'
  /** An account has the address. It can be linked only after signing in to it. */
  | 'link_first'
  /** The user is not a member of the tenant, and the tenant does not provision new users. */
  | 'not_member'
  /**
   * The user is invited, and the account may belong to another person: the invitation in the mail must be accepted
   * first.
   */
  | 'invited'
  /** Suspended in the tenant or in the whole deployment. */
  | 'suspended'
  /** The identity is linked to another account. */
  | 'identity_taken'
  /** The session that began the link has ended. */
  | 'session_gone'
  /** A new authentication was required, and the provider does not confirm it. */
  | 'not_fresh'

export type ListOffered = {
  readonly tenantId: TenantId
  /** The tenant's settings, as stored. */
  readonly tenantSettings: Readonly<Record<string, unknown>>
}
export type Offered = { readonly tag: 'offered'; readonly upstreams: readonly Upstream[] }

export type StartFederatedLogin = {
  /** Token of the sign-in flow; null: start one. */
  readonly flow: string | null
  readonly tenant: TenantSelector
  readonly provider: string
  readonly loginHint: string | null
  /** Same-origin path to return to, for a flow that starts here. */
  readonly returnTo: string | null
  /**
   * `elsewhere`: nothing shows that the user wants this sign-in. `page`: the request came from a sign-in page of ours.
   * `form`: the user confirmed; `leaves` is the session that the confirmation page named.
   */
  readonly from: 'elsewhere' | 'page' | 'form'
  readonly leaves: string | null
  readonly visitor: Visitor
  /** Secret known only to this browser. */
  readonly browserId: string
}
/** The confirmation page before the redirect to the provider. */
export type ConfirmStart = {
  readonly tag: 'confirm'
  readonly flow: string
  readonly provider: { readonly id: string; readonly name: string }
  readonly tenant: PageTenant
  readonly loginHint: string | null
  /** The browser's session in another tenant. It ends if the user continues. */
  readonly leaves: {
    readonly sessionId: string
    readonly tenantName: string
    readonly email: string
  } | null
}
export type StartLink = {
  readonly session: BrowserSession
  /** Its session cookie. */
  readonly token: string
  readonly provider: string
  /** The Host of the request. */
  readonly host: string
  readonly browserId: string
}
/** Redirect to the provider. The URL is https. */
export type ToUpstream = {
  readonly tag: 'to_upstream'
  readonly url: string
  readonly name: string
  readonly tenant: PageTenant
}

export type FederatedLoginCallback = {
  /** The provider in the callback path. Every provider has its own callback. */
  readonly provider: string
  readonly parameters: readonly (readonly [name: string, value: string])[]
  /** The Host of the request. */
  readonly host: string
  readonly visitor: Visitor
  readonly browserId: string
}
export type FederatedLoginSignedIn = {
  readonly tag: 'signed_in'
  readonly token: string
  readonly location: string
  readonly tenant: PageTenant
}
/** The same callback URL at the host where the browser started. */
export type BackElsewhere = { readonly tag: 'elsewhere'; readonly location: string }
export type Linked = {
  readonly tag: 'linked'
  readonly location: string
  readonly tenant: PageTenant
}
export type FederatedLoginFailed = {
  readonly tag: 'failed'
  readonly fault: FederatedLoginFault
  /** Where to retry; null when there is no flow to return to. */
  readonly location: string | null
  readonly tenant: PageTenant | null
}

export type IdentitySeen = {
  readonly id: string
  /** Name of the provider, or its issuer if the provider was deleted. */
  readonly name: string
  readonly email: string | null
  readonly linkedAt: Date
  readonly lastUsedAt: Date
}
export type IdentitiesListed = {
  readonly tag: 'listed'
  readonly identities: readonly IdentitySeen[]
  /** Providers that can be linked. */
  readonly upstreams: readonly Upstream[]
}

export type ReceiveLogout = {
  /** The id of the provider. */
  readonly provider: string
  readonly token: string
}
export type LogoutRefused = {
  readonly tag: 'refused'
  /** The first fault of the token. */
  readonly detail: string
}

export type CheckSso = { readonly email: Email; readonly tenant: TenantSelector }
export type SsoRouted = {
  readonly tag: 'routed'
  readonly organizationId: OrganizationId
  readonly organizationName: string
  /** Absolute URL. */
  readonly authorizeUrl: string
}
export type NotRouted = { readonly tag: 'not_routed' }
export type TenantUnusable =
  | { readonly tag: 'unknown_tenant' }
  | { readonly tag: 'conflicting_tenant' }

export const federatedLogin = address<FederatedLoginProtocol>('federated-login', {
  idempotent: ['offered', 'identities', 'checkSso'],
})
