/**
 * Who somebody is who comes back from a provider. Pure. An identity is a provider, its issuer and a
 * subject; an address only ever leads to an account that nobody else can have a key to.
 */
import { domainToASCII } from 'node:url'
import { isEmail } from '../../domain/email.js'
import { isPublicName } from '../../platform/outbound-http/targets.js'
import type { SsoFault } from './protocol.js'

export type Candidate = {
  readonly id: string
  readonly active: boolean
  readonly emailVerified: boolean
  readonly knownToProvider: boolean
}

export type Arrival = {
  /** The account that the identity is linked to. */
  readonly linked: string | undefined
  /** The account that has the address. */
  readonly candidate: Candidate | undefined
  readonly email: string | null
  /**
   * What the provider's word about the address is worth. `none`: nothing. A provider of a tenant is believed
   * only where the tenant proved the domain and routed it to this provider. `silent`: such a provider did not
   * say `email_verified`; `verified`: it, or a provider of the deployment, said `email_verified: true`.
   */
  readonly vouches: Vouching
  /** For a provider of a tenant: the domain is proved and routed to it. Else: linking is switched on. */
  readonly mayLink: boolean
  /** The tenant takes in people of this provider that it does not know. */
  readonly mayCreate: boolean
  /** The provider belongs to the tenant, and the domain is not proved and routed to it. */
  readonly isForeign: boolean
}

export type Vouching = 'none' | 'silent' | 'verified'

/** What the word of a provider about an address is worth. */
export function vouchingOf(
  emailVerified: unknown,
  provider: { readonly ofDeployment: boolean; readonly ownsDomain: boolean },
): Vouching {
  if (!provider.ofDeployment && !provider.ownsDomain) return 'none'
  if (emailVerified === true) return 'verified'
  return provider.ownsDomain && emailVerified === undefined ? 'silent' : 'none'
}

export type Decision =
  | { readonly tag: 'use'; readonly accountId: string }
  | { readonly tag: 'link'; readonly accountId: string }
  | { readonly tag: 'create'; readonly email: string }
  | { readonly tag: 'refuse'; readonly fault: SsoFault }

/**
 * Evidence beats squatting: an account with an unproved address blocks no sign-in, because a provider that is
 * believed about the address proves it. `proveMailbox` then drops what the account had.
 */
export function decide(arrival: Arrival): Decision {
  const { linked, candidate, email, vouches, mayLink, mayCreate, isForeign } = arrival
  if (linked !== undefined) return { tag: 'use', accountId: linked }
  if (email === null) return refuse('unverified_email')
  // The same answer whether or not the address has an account: the provider has no say about it.
  if (isForeign) return refuse('not_member')
  if (vouches === 'none') return refuse('unverified_email')
  if (candidate === undefined) return mayCreate ? { tag: 'create', email } : refuse('not_member')
  if (!candidate.emailVerified)
    return mayLink || mayCreate ? { tag: 'link', accountId: candidate.id } : refuse('link_first')
  if (vouches !== 'verified') return refuse('unverified_email')
  // Another subject of the same provider: an address that was given to somebody else.
  if (!mayLink || candidate.knownToProvider) return refuse('link_first')
  return { tag: 'link', accountId: candidate.id }
}

export type Membership = {
  readonly accountActive: boolean
  /** Whoever this is has shown to read the mailbox of the account, here or elsewhere. */
  readonly addressProved: boolean
  readonly status: 'invited' | 'pre_provisioned' | 'active' | 'suspended' | 'removed' | null
}

/**
 * Whether an account may come in, comes in as a new user of the tenant, or stays outside. Anybody can make
 * an account for any address and link it to who they are elsewhere: an address is what a tenant invites
 * and takes in, so it has to be proved first.
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

const refuse = (fault: SsoFault): Decision => ({ tag: 'refuse', fault })

/** An address that an account may have, at a domain of the public names; undefined for anything else. */
export function readEmail(value: unknown): string | undefined {
  if (typeof value !== 'string' || !isEmail(value)) return undefined
  return domainOf(value) === undefined ? undefined : value
}

/** The domain of an address as domains are kept; undefined when it has none of the public names. */
export function domainOf(email: string): string | undefined {
  const at = email.lastIndexOf('@')
  return at < 1 ? undefined : readDomain(email.slice(at + 1))
}

/** Lower case, A-labels, no trailing dot. */
export function readDomain(text: string): string | undefined {
  const trimmed = text.trim().replace(/\.$/, '')
  if (trimmed === '' || /[^\p{L}\p{M}\p{N}.-]/u.test(trimmed)) return undefined
  const ascii = domainToASCII(trimmed).toLowerCase()
  return isPublicName(ascii) ? ascii : undefined
}

/** Names of RFC 8176: what else a provider says is its own business. */
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

/** What a sign-in elsewhere is worth here: two factors only where the policy trusts the `acr`. */
export function evidenceOf(
  acr: unknown,
  amr: unknown,
  trustedAcrValues: readonly string[],
): { readonly level: 1 | 2; readonly amr: readonly string[] } {
  if (typeof acr !== 'string' || !trustedAcrValues.includes(acr)) return { level: 1, amr: ['fed'] }
  const said = Array.isArray(amr) ? amr.filter((one): one is string => AMR_KNOWN.has(one)) : []
  return { level: 2, amr: [...new Set(['fed', ...said, 'mfa'])] }
}
