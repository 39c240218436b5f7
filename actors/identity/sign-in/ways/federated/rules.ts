/**
 * Decides which account a federated identity belongs to. Pure functions. An identity is a provider, its issuer and a
 * subject. An address alone leads only to an account to which no other person can hold a key.
 */
import type { Email } from '../../../../domain/email.js'
import type { FederatedLoginFault } from './protocol.js'

export type Candidate = {
  readonly id: string
  readonly active: boolean
  readonly emailVerified: boolean
  readonly knownToProvider: boolean
}

export type Arrival = {
  /** The account already linked to the identity. */
  readonly linked: string | undefined
  /** The account with the address. */
  readonly candidate: Candidate | undefined
  readonly email: Email | null
  /**
   * How far the provider's statement about the address counts. `none`: not at all. A tenant's provider is trusted only
   * for domains that the tenant verified and routed to it. `silent`: such a provider did not send `email_verified`.
   * `verified`: it, or a provider of the deployment, sent `email_verified: true`.
   */
  readonly vouches: Vouching
  /** For a tenant's provider: the domain is verified and routed to it. Otherwise: account linking is enabled. */
  readonly mayLink: boolean
  /** The tenant provisions unknown users of this provider. */
  readonly mayCreate: boolean
  /** The provider belongs to the tenant, and the domain is not verified and routed to it. */
  readonly isForeign: boolean
}

export type Vouching = 'none' | 'silent' | 'verified'

/** How far a provider's statement about an address counts. */
export function vouchingOf(
  emailVerified: unknown,
  provider: { readonly ofDeployment: boolean; readonly ownsDomain: boolean },
): Vouching {
  if (!provider.ofDeployment && !provider.ownsDomain) return 'none'
  if (emailVerified === true) return 'verified'
  return provider.ownsDomain && emailVerified === undefined ? 'silent' : 'none'
}

type Decision =
  | { readonly tag: 'use'; readonly accountId: string }
  | { readonly tag: 'link'; readonly accountId: string }
  | { readonly tag: 'create'; readonly email: Email }
  | { readonly tag: 'refuse'; readonly fault: FederatedLoginFault }

/**
 * Evidence wins over squatting: an account with an unverified address blocks no sign-in, because a trusted provider
 * verifies the address. `proveMailbox` then drops what the account had.
 */
export function decide(arrival: Arrival): Decision {
  const { linked, candidate, email, vouches, mayLink, mayCreate, isForeign } = arrival
  if (linked !== undefined) return { tag: 'use', accountId: linked }
  if (email === null) return refuse('unverified_email')
  // The same answer whether or not the address has an account: this provider is not trusted for it.
  if (isForeign) return refuse('not_member')
  if (vouches === 'none') return refuse('unverified_email')
  if (candidate === undefined) return mayCreate ? { tag: 'create', email } : refuse('not_member')
  if (!candidate.emailVerified)
    return mayLink || mayCreate ? { tag: 'link', accountId: candidate.id } : refuse('link_first')
  if (vouches !== 'verified') return refuse('unverified_email')
  // Another subject of the same provider: the address was reassigned to another person.
  if (!mayLink || candidate.knownToProvider) return refuse('link_first')
  return { tag: 'link', accountId: candidate.id }
}

type Membership = {
  readonly accountActive: boolean
  /** The user has shown control of the account's mailbox, here or at the provider. */
  readonly addressProved: boolean
  readonly status: 'invited' | 'pre_provisioned' | 'active' | 'suspended' | 'removed' | null
}

/**
 * Decides whether an account is admitted, admitted as a new user, or refused. Anybody can create an account for any
 * address and link it to their own identity. A tenant invites and provisions addresses, so the address must be verified
 * first.
 */
export function admission(
  { accountActive, addressProved, status }: Membership,
  mayJoin: boolean,
): 'admit' | 'join' | 'suspended' | 'not_member' | 'invited' | 'unverified_email' {
  if (!accountActive || status === 'suspended') return 'suspended'
  if (status === 'removed') return 'not_member'
  if (status === 'invited' && !addressProved) return 'invited'
  if (status !== null) return 'admit'
  if (!mayJoin) return 'not_member'
  return addressProved ? 'join' : 'unverified_email'
}

const refuse = (fault: FederatedLoginFault): Decision => ({ tag: 'refuse', fault })

/** Values of RFC 8176. Other values of a provider are dropped. */
const AMR_KNOWN = new Set([
  'face',
  'fpt',
  'geo',
  'hwk',
  'iris',
  'kba',
  'mca',
  'mfa',
  'otp',
  'pin',
  'pop',
  'pwd',
  'rba',
  'retina',
  'sc',
  'sms',
  'swk',
  'tel',
  'user',
  'vbm',
  'wia',
])

/** The assurance level of a federated sign-in: two factors only if the policy trusts the `acr`. */
export function evidenceOf(
  acr: unknown,
  amr: unknown,
  trustedAcrValues: readonly string[],
): { readonly level: 1 | 2; readonly amr: readonly string[] } {
  if (typeof acr !== 'string' || !trustedAcrValues.includes(acr)) return { level: 1, amr: ['fed'] }
  const known = Array.isArray(amr)
    ? amr.filter((method): method is string => AMR_KNOWN.has(method))
    : []
  return { level: 2, amr: [...new Set(['fed', ...known, 'mfa'])] }
}
