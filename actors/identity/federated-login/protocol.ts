/**
 * Signing in through other providers: those of the deployment ([social], [generic_oauth]) and those
 * of a tenant ([enterprise_sso]). decisions.md 2.3, 7.3 (check-sso), 20.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { BrowserSession } from '../sessions/protocol.js'
import type { OrganizationId, TenantId } from '../../domain/ids.js'
import type { TenantSelector } from '../../domain/tenants/tenancy.js'
import type { Visitor } from '../sign-in/protocol.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import type { Upstream } from '../../domain/upstream.js'

export type SsoProtocol = {
  /** The providers that people of a tenant may use. */
  offered: Ask<ListOffered, Offered>
  /**
   * Sends a browser to a provider to sign in. Asks the person first where a page of ours did not lead here, or
   * where the browser has a session of another tenant.
   */
  start: Ask<StartSso, ToUpstream | ConfirmStart | SsoFailed>
  /** Sends the browser of a person who is signed in to a provider, to link who they are there. */
  link: Ask<StartLink, ToUpstream | SignInFirst | SsoFailed>
  /** A browser comes back. Its way back is good once. */
  callback: Ask<SsoCallback, SsoSignedIn | Linked | SsoFailed | BackElsewhere>
  /** What the account of a person is linked to. */
  identities: Ask<{ readonly session: BrowserSession }, IdentitiesListed>
  /** Ends a link and the sessions that came by one. Needs a fresh sign-in; else `sign_in`. */
  unlink: Ask<
    {
      readonly session: BrowserSession
      readonly token: string
      readonly identityId: string
      readonly address: string
    },
    { tag: 'unlinked' } | { tag: 'unknown_identity' } | { tag: 'last_way_in' } | SignInFirst
  >
  /** Whether addresses of a domain are led to a provider of the tenant. Looks at nothing else. */
  check: Ask<CheckSso, SsoRouted | NotRouted | TenantUnusable>
}

/** Why a sign-in through a provider came to nothing; each has its words on the page. */
export type SsoFault =
  /** Never was, used before, too old, or another browser's. */
  | 'unknown_state'
  | 'unknown_flow'
  | 'unknown_provider'
  | 'unknown_tenant'
  /** The provider gives no answer. */
  | 'unavailable'
  /** The provider's answer is not one: iss, aud, nonce, signature, shape. */
  | 'invalid_answer'
  /** The person, or the provider, said no. */
  | 'denied'
  /** The provider does not say that the address is the person's. */
  | 'unverified_email'
  /** An account has the address; only who signs in to it may link it. */
  | 'link_first'
  /** The tenant does not know the person and takes nobody in by itself. */
  | 'not_member'
  /** Invited, and the account may be somebody else's: the letter has to be accepted first. */
  | 'invited'
  /** Suspended, in the tenant or altogether. */
  | 'suspended'
  /** The identity belongs to another account. */
  | 'identity_taken'
  /** Whoever began to link is not signed in any more. */
  | 'session_gone'
  /** A new sign-in was asked for and the provider does not confirm one. */
  | 'not_fresh'

export type ListOffered = {
  readonly tenantId: TenantId
  /** The tenant's settings, as stored. */
  readonly tenantSettings: Readonly<Record<string, unknown>>
}
export type Offered = { readonly tag: 'offered'; readonly upstreams: readonly Upstream[] }

export type StartSso = {
  /** The secret of a flow; null: one begins here. */
  readonly flow: string | null
  readonly tenant: TenantSelector
  readonly provider: string
  readonly loginHint: string | null
  /** An own path, for a flow that begins here. */
  readonly returnTo: string | null
  /**
   * `elsewhere`: nothing shows that the person wants it. `page`: a link of a sign-in page of ours led here.
   * `form`: the person pressed the button of the page that asks; `leaves` is the session that it named.
   */
  readonly from: 'elsewhere' | 'page' | 'form'
  readonly leaves: string | null
  readonly visitor: Visitor
  /** What only this browser knows. */
  readonly browserId: string
}
/** The question that comes before the provider. */
export type ConfirmStart = {
  readonly tag: 'confirm'
  readonly flow: string
  readonly provider: { readonly id: string; readonly name: string }
  readonly tenant: PageTenant
  readonly loginHint: string | null
  /** The session of another tenant that the browser has, and that ends if the person goes on. */
  readonly leaves: {
    readonly sessionId: string
    readonly tenantName: string
    readonly email: string
  } | null
}
export type StartLink = {
  readonly session: BrowserSession
  /** Its cookie. */
  readonly token: string
  readonly provider: string
  /** The Host of the request. */
  readonly host: string
  readonly browserId: string
}
/** Off to the provider: an https address. */
export type ToUpstream = {
  readonly tag: 'to_upstream'
  readonly url: string
  readonly name: string
  readonly tenant: PageTenant
}
export type SignInFirst = { readonly tag: 'sign_in'; readonly location: string }

export type SsoCallback = {
  /** As the path names it: every provider has a callback of its own. */
  readonly provider: string
  readonly parameters: readonly (readonly [name: string, value: string])[]
  /** The Host of the request. */
  readonly host: string
  readonly visitor: Visitor
  readonly browserId: string
}
export type SsoSignedIn = {
  readonly tag: 'signed_in'
  readonly token: string
  readonly location: string
  readonly tenant: PageTenant
}
/** The same way back at the host where the browser began. */
export type BackElsewhere = { readonly tag: 'elsewhere'; readonly location: string }
export type Linked = {
  readonly tag: 'linked'
  readonly location: string
  readonly tenant: PageTenant
}
export type SsoFailed = {
  readonly tag: 'failed'
  readonly fault: SsoFault
  /** Where to try again; null where there is nothing to go back to. */
  readonly location: string | null
  readonly tenant: PageTenant | null
}

export type IdentitySeen = {
  readonly id: string
  /** Of the provider, or of its issuer where the provider is gone. */
  readonly name: string
  readonly email: string | null
  readonly linkedAt: Date
  readonly lastUsedAt: Date
}
export type IdentitiesListed = {
  readonly tag: 'listed'
  readonly identities: readonly IdentitySeen[]
  /** Providers that could be linked. */
  readonly upstreams: readonly Upstream[]
}

export type CheckSso = { readonly email: string; readonly tenant: TenantSelector }
export type SsoRouted = {
  readonly tag: 'routed'
  readonly organizationId: OrganizationId
  readonly organizationName: string
  /** Absolute. */
  readonly authorizeUrl: string
}
export type NotRouted = { readonly tag: 'not_routed' }
export type TenantUnusable =
  | { readonly tag: 'unknown_tenant' }
  | { readonly tag: 'conflicting_tenant' }

export const sso = address<SsoProtocol>('sso', ['offered', 'identities', 'check'])
