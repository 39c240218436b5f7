/** Claims about a user, by scope and by `claims` parameter. */
import type { Profile, ProfileText } from './people/profile-claims.js'

type PersonFacts = {
  /** Empty: a guest. The claims of the address are absent. */
  readonly email: string
  readonly emailVerified: boolean
  readonly displayName: string
  readonly profile: Profile
  /** As a directory wrote them (RFC 7643 section 4.1.2). */
  readonly addresses: unknown
  readonly updatedAt: Date
  readonly organizationId: string | null
  readonly organizationName: string | null
}

/** The scope of each supported claim (OpenID Connect Core section 5.4). */
const SCOPE_OF = {
  name: 'profile',
  given_name: 'profile',
  family_name: 'profile',
  preferred_username: 'profile',
  picture: 'profile',
  locale: 'profile',
  zoneinfo: 'profile',
  updated_at: 'profile',
  email: 'email',
  email_verified: 'email',
  phone_number: 'phone',
  phone_number_verified: 'phone',
  address: 'address',
  organization_id: 'org:read',
  organizations: 'org:read',
} as const satisfies Readonly<Record<string, string>> & Readonly<Record<ProfileText, string>>
type PersonClaim = keyof typeof SCOPE_OF

export const PERSON_CLAIMS = Object.keys(SCOPE_OF) as readonly PersonClaim[]

/** The supported claims among the names, in catalogue order. */
export function personClaims(names: readonly string[]): readonly PersonClaim[] {
  return PERSON_CLAIMS.filter((claim) => names.includes(claim))
}

/** The scopes of the named claims, for the consent page. */
export function scopesOfClaims(names: readonly string[]): readonly string[] {
  return [...new Set(personClaims(names).map((claim) => SCOPE_OF[claim]))]
}

/** The values of the claims of the scopes and of the named claims. */
export function claimsOf(
  facts: PersonFacts,
  scopes: readonly string[],
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  const wanted = PERSON_CLAIMS.filter(
    (claim) => scopes.includes(SCOPE_OF[claim]) || names.includes(claim),
  )
  return Object.fromEntries(
    wanted
      .map((claim) => [claim, valueOf(facts, claim)] as const)
      .filter(([, value]) => value !== null && value !== undefined && value !== ''),
  )
}

function valueOf(facts: PersonFacts, claim: PersonClaim): unknown {
  switch (claim) {
    case 'name':
      return facts.displayName
    case 'preferred_username':
    case 'email':
      return facts.email
    case 'email_verified':
      return facts.email === '' ? null : facts.emailVerified
    case 'updated_at':
      return Math.floor(facts.updatedAt.getTime() / 1000)
    case 'given_name':
    case 'family_name':
    case 'picture':
    case 'locale':
    case 'zoneinfo':
    case 'phone_number':
    case 'phone_number_verified':
      return facts.profile[claim]
    case 'address':
      return addressClaim(facts.addresses)
    case 'organization_id':
      return facts.organizationId
    case 'organizations':
      return facts.organizationId === null
        ? []
        : [{ id: facts.organizationId, name: facts.organizationName }]
  }
}

/** The members of the claim, and of an address of a directory. */
const ADDRESS_MEMBERS = [
  ['formatted', 'formatted'],
  ['street_address', 'streetAddress'],
  ['locality', 'locality'],
  ['region', 'region'],
  ['postal_code', 'postalCode'],
  ['country', 'country'],
] as const
/** Longer members are left out: the claim may be in a token. */
const ADDRESS_MEMBER_LENGTH_MAX = 500

/** The primary address, else the first one, as OpenID Connect Core section 5.1.1 says. Null without a member. */
function addressClaim(addresses: unknown): Readonly<Record<string, string>> | null {
  const list = Array.isArray(addresses) ? (addresses as Readonly<Record<string, unknown>>[]) : []
  const chosen = list.find(({ primary }) => primary === true) ?? list[0]
  const members = ADDRESS_MEMBERS.map(([name, attribute]) => [name, chosen?.[attribute]] as const)
  const given = members.filter(
    (member): member is readonly [(typeof member)[0], string] =>
      typeof member[1] === 'string' &&
      member[1] !== '' &&
      member[1].length <= ADDRESS_MEMBER_LENGTH_MAX,
  )
  return given.length === 0 ? null : Object.fromEntries(given)
}
