/**
 * Values of the profile claims (OpenID Connect Core section 5.1), as people type them, as applications of a tenant send
 * them and as providers assert them (docs/reference/identity.md, Profile claims).
 */
import { httpsUrl, PAGE } from '../entities/https-url.js'
import { SHOWN_NAME, shownName } from '../shown-names.js'

/** The profile claims with a text value, in the order of the standard. */
export const PROFILE_TEXTS = [
  'given_name',
  'family_name',
  'picture',
  'locale',
  'zoneinfo',
  'phone_number',
] as const
export type ProfileText = (typeof PROFILE_TEXTS)[number]

/** The values that exist. `phone_number_verified` exists with `phone_number` only. */
export type Profile = { readonly [claim in ProfileText]?: string } & {
  readonly phone_number_verified?: boolean
}

export const PICTURE_LENGTH_MAX = 2048
const LOCALE_LENGTH_MAX = 35
/** E.164: `+`, the country code, at most 15 digits in all. */
const PHONE_NUMBER = /^\+[1-9][0-9]{1,14}$/
/** Names of the IANA database. Offsets such as `+01:00` are no names. */
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/

/** The value in the form that is stored, or undefined when it is not valid. */
export function profileValue(claim: ProfileText, value: string): string | undefined {
  switch (claim) {
    case 'given_name':
    case 'family_name':
      return SHOWN_NAME.test(value) && value.trim() !== '' ? value : undefined
    case 'picture':
      return httpsUrl(value, PAGE) === null ? undefined : value
    case 'locale':
      return localeOf(value)
    case 'zoneinfo':
      return zoneOf(value)
    case 'phone_number':
      return PHONE_NUMBER.test(value) ? value : undefined
  }
}

/** What a person typed: spaces around it and the separators of a phone number are removed. */
export function typedProfileValue(claim: ProfileText, typed: string): string | undefined {
  const text = typed.trim()
  if (claim !== 'phone_number') return profileValue(claim, text)
  // `(0)` is dialled only without the country code.
  return text.includes('(0)') ? undefined : profileValue(claim, text.replaceAll(/[\s()./-]/gu, ''))
}

/** The valid profile claims of a provider. Others count as absent. */
export function assertedProfile(claims: Readonly<Record<string, unknown>>): Profile {
  const texts = PROFILE_TEXTS.map((claim) => [claim, assertedValue(claim, claims[claim])] as const)
  const profile: Profile = Object.fromEntries(texts.filter(([, value]) => value !== undefined))
  return profile.phone_number === undefined
    ? profile
    : { ...profile, phone_number_verified: claims['phone_number_verified'] === true }
}

function assertedValue(claim: ProfileText, value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  if (claim === 'given_name' || claim === 'family_name')
    return profileValue(claim, shownName(value))
  // Some providers write `en_US` (OpenID Connect Core section 5.1).
  return typedProfileValue(claim, claim === 'locale' ? value.replaceAll('_', '-') : value)
}

/** A well-formed language tag (BCP 47) in its canonical case. */
function localeOf(value: string): string | undefined {
  if (value.length > LOCALE_LENGTH_MAX) return undefined
  try {
    const [tag] = Intl.getCanonicalLocales(value)
    return tag !== undefined && tag.length <= LOCALE_LENGTH_MAX ? tag : undefined
  } catch {
    return undefined
  }
}

/** A time zone of the IANA database. Its links, such as `US/Eastern`, stay as they are. */
function zoneOf(value: string): string | undefined {
  if (!ZONE_NAME.test(value)) return undefined
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions()
    return timeZone.toLowerCase() === value.toLowerCase() ? timeZone : value
  } catch {
    return undefined
  }
}
