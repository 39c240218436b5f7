/**
 * A tenant user as a SCIM resource, and back. Names, locale, time zone, one picture and one telephone number are the
 * profile claims of the user in the tenant, so they have a column. What a claim cannot hold stays with the other attributes.
 */
import { createHash } from 'node:crypto'
import { isUndeliverable } from '../../platform/mail/reserved-domains.js'
import type { ScimUserData, ScimUserRow } from '../../../storage/identity/scim-users.js'
import type { ProfileChange } from '../../../storage/identity/profiles.js'
import { type Email, parseEmail, soughtEmail, storedName } from '../../domain/email.js'
import {
  type Profile,
  type ProfileText,
  typedProfileValue,
} from '../../domain/people/profile-claims.js'
import { SHOWN_NAME } from '../../domain/shown-names.js'
import { invalid } from './faults.js'
import { isObject, type Json, type JsonObject, type Resource } from './resource.js'
import { ENTERPRISE_SCHEMA, USER_SCHEMA } from './schema.js'

const ROLE = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/
const ROLES_MAX = 32
const USER_NAME_CHARS_MAX = 320
const EXTERNAL_ID_CHARS_MAX = 1_024
const ATTRIBUTES_BYTES_MAX = 64 * 1024
/** Marks one value of a list as the claim. */
const CLAIM = 'claim'

/** The parts of a resource, as they are stored. */
export type Person = ScimUserData & {
  readonly displayName: string | null
  readonly profile: ProfileChange
  readonly roles: readonly string[]
  /** Undefined: the request does not say. */
  readonly active: boolean | undefined
  /** The address for the account, or null. */
  readonly email: Email | null
}

/** @throws {ScimFault} `invalidValue`. */
export function personOf(resource: Resource): Person {
  const { userName, externalId, displayName, active, roles, name, ...rest } = resource
  const attributes: Record<string, Json> = rest
  if (rest.emails !== undefined) attributes['emails'] = objectsIn(rest.emails).map(storedAddress)
  const typedName = textIn(userName)
  const userNameText = typedName === null ? null : storedName(typedName)
  if (userNameText === null || userNameText.trim() === '')
    throw invalid('invalidValue', 'The attribute userName is required.')
  limit('userName', userNameText, USER_NAME_CHARS_MAX)
  const shown = textIn(displayName)
  if (shown !== null && !SHOWN_NAME.test(shown))
    throw invalid(
      'invalidValue',
      'displayName must have 1 to 120 characters, without control characters.',
    )
  const parts: Record<string, Json> = { ...(name as JsonObject | undefined) }
  const profile = {
    given_name: taken(parts, 'givenName', 'given_name'),
    family_name: taken(parts, 'familyName', 'family_name'),
    locale: taken(attributes, 'locale', 'locale'),
    zoneinfo: taken(attributes, 'timezone', 'zoneinfo'),
    phone_number: takenOf(attributes, 'phoneNumbers', 'phone_number'),
    picture: takenOf(attributes, 'photos', 'picture'),
  }
  const kept = Object.keys(parts).length === 0 ? attributes : { ...attributes, name: parts }
  const named = rolesOf(roles)
  if (named.details.length > 0) kept['roles'] = named.details
  if (Buffer.byteLength(JSON.stringify(kept)) > ATTRIBUTES_BYTES_MAX)
    throw invalid('invalidValue', `The attributes take more than ${ATTRIBUTES_BYTES_MAX} bytes.`)
  return {
    userName: userNameText,
    externalId: externalIdIn(externalId),
    displayName: shown,
    profile,
    roles: named.roles,
    active: active as boolean | undefined,
    attributes: kept,
    email: addressOf(resource, userNameText),
  }
}

const storedAddress = (entry: JsonObject): JsonObject => {
  const value = textIn(entry['value'])
  return value === null ? entry : { ...entry, value: storedName(value) }
}

/** The primary address, else the first one, else a userName that is an address. @throws {ScimFault} `invalidValue`. */
function addressOf({ emails }: Resource, userName: string): Email | null {
  const list = objectsIn(emails)
  const chosen = list.find(({ primary }) => primary === true) ?? list[0]
  const address = textIn(chosen?.['value'])
  if (address === null) return parseEmail(userName) ?? null
  const email = soughtEmail(address)
  if (email === undefined || isUndeliverable(email)) throw noAddress()
  return email
}

export const noAddress = () => invalid('invalidValue', 'The value of emails is not a mail address.')

function rolesOf(value: Json): { roles: readonly string[]; details: readonly JsonObject[] } {
  const list = objectsIn(value)
  const roles = list.map((each) => textIn(each['value']) ?? '')
  if (list.length > ROLES_MAX || roles.some((role) => !ROLE.test(role)))
    throw invalid(
      'invalidValue',
      `The value of roles must be at most ${ROLES_MAX} names of letters, digits and "._:-", with at most 64 characters.`,
    )
  // The name itself is stored with the user.
  const details = list.filter((each) => Object.keys(each).length > 1)
  return { roles: [...new Set(roles)], details }
}

/** Takes a claim out of its attribute. The attribute stays if the claim cannot hold its value as it is. */
function taken(from: Record<string, Json>, name: string, claim: ProfileText): string | null {
  const raw = textIn(from[name])
  if (raw === null || raw === '') {
    delete from[name]
    return null
  }
  const value = claimOf(claim, raw)
  if (value === raw) delete from[name]
  return value
}

/** The same for a list: the primary value that the claim can hold, else the first one. */
function takenOf(from: Record<string, Json>, name: string, claim: ProfileText): string | null {
  const list = objectsIn(from[name])
  const values = list.map((each) => claimOf(claim, textIn(each['value']) ?? ''))
  const isUsable = (index: number) => values[index] !== null
  const primary = list.findIndex((each, index) => each['primary'] === true && isUsable(index))
  const chosen = primary >= 0 ? primary : list.findIndex((_each, index) => isUsable(index))
  if (chosen < 0) return null
  const { value: raw, ...others } = list[chosen]!
  const value = values[chosen]!
  const marked = { ...others, ...(raw === value ? {} : { value: raw }), [CLAIM]: true }
  from[name] = list.with(chosen, marked)
  return value
}

/** A directory writes locales as `en_US` too (OpenID Connect Core section 5.1). */
function claimOf(claim: ProfileText, raw: string): string | null {
  const text = claim === 'locale' ? raw.replaceAll('_', '-') : raw.replace(/^tel:/i, '')
  return typedProfileValue(claim, text) ?? null
}

/** The writable attributes of a user, in canonical form. */
export function resourceOf(row: ScimUserRow): Resource {
  const { profile, attributes, displayName, externalId } = row
  const {
    name,
    locale,
    timezone,
    phoneNumbers,
    photos,
    roles,
    emails: _,
    ...rest
  } = {
    ...attributes,
  } as Record<string, Json>
  const parts = {
    ...(name as JsonObject | undefined),
    ...optional('givenName', shown(profile, 'given_name', memberOf(name, 'givenName'))),
    ...optional('familyName', shown(profile, 'family_name', memberOf(name, 'familyName'))),
  }
  const { [ENTERPRISE_SCHEMA]: enterprise, ...core } = rest
  return {
    userName: row.userName,
    ...optional('externalId', externalId ?? undefined),
    ...(Object.keys(parts).length === 0 ? {} : { name: parts }),
    ...optional('displayName', displayName ?? undefined),
    ...core,
    ...optional('locale', shown(profile, 'locale', locale)),
    ...optional('timezone', shown(profile, 'zoneinfo', timezone)),
    active: row.status !== 'suspended',
    ...(Array.isArray(row.emails) && row.emails.length > 0 ? { emails: row.emails as Json[] } : {}),
    ...list('phoneNumbers', shownOf(profile.phone_number, 'phone_number', phoneNumbers)),
    ...list('photos', shownOf(profile.picture, 'picture', photos)),
    ...list('roles', shownRoles(row.roles, roles)),
    ...optional(ENTERPRISE_SCHEMA, enterprise),
  }
}

function shown(profile: Profile, claim: ProfileText, kept: Json): Json {
  const value = profile[claim]
  const raw = textIn(kept)
  // The kept text stands for the claim until the claim is changed elsewhere.
  return raw !== null && claimOf(claim, raw) === (value ?? null) ? raw : value
}

function shownOf(value: string | undefined, claim: ProfileText, kept: Json): readonly Json[] {
  const values = objectsIn(kept).flatMap(({ [CLAIM]: isClaim, value: raw, ...others }) => {
    if (isClaim !== true) return [{ ...others, ...optional('value', raw) }]
    if (value === undefined) return []
    const text = textIn(raw)
    const isSame = text !== null && claimOf(claim, text) === value
    return [{ value: isSame ? text : value, ...others }]
  })
  const isMarked = objectsIn(kept).some((each) => each[CLAIM] === true)
  return isMarked || value === undefined ? values : [{ value }, ...values]
}

function shownRoles(roles: readonly string[], details: Json): readonly Json[] {
  const known = objectsIn(details)
  return roles.map((role) => known.find(({ value }) => value === role) ?? { value: role })
}

/** The resource as a client gets it: with `id`, `groups` and `meta`. */
export function presentedUser(
  row: ScimUserRow,
  base: string,
  withGroups: boolean,
): { readonly resource: JsonObject; readonly version: string } {
  const writable = resourceOf(row)
  const groups = row.groups.map(({ id, displayName: display }) => ({
    value: id,
    $ref: `${base}/Groups/${id}`,
    display,
    type: 'direct',
  }))
  const resource = {
    schemas: [USER_SCHEMA, ...(ENTERPRISE_SCHEMA in writable ? [ENTERPRISE_SCHEMA] : [])],
    id: row.id,
    ...writable,
    ...(withGroups && groups.length > 0 ? { groups } : {}),
  }
  const [created, lastModified] = [row.createdAt.toISOString(), row.lastModified.toISOString()]
  const version = weakTag(JSON.stringify([resource, lastModified]))
  const location = `${base}/Users/${row.id}`
  const meta = { resourceType: 'User', created, lastModified, location, version }
  return { resource: { ...resource, meta }, version }
}

/** The weak entity tag of a text (RFC 7644 section 3.14). */
export function weakTag(text: string): string {
  return `W/"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
}

function limit(name: string, text: string, most: number): void {
  if (text.length > most)
    throw invalid('invalidValue', `${name} is longer than ${most} characters.`)
}

/** The externalId of a user or group. An empty one is none. @throws {ScimFault} `invalidValue`. */
export function externalIdIn(value: unknown): string | null {
  if (typeof value !== 'string' || value === '') return null
  limit('externalId', value, EXTERNAL_ID_CHARS_MAX)
  return value
}

function textIn(value: Json): string | null {
  return typeof value === 'string' ? value : null
}

function memberOf(value: Json, name: string): Json {
  return isObject(value) ? value[name] : undefined
}

function objectsIn(value: Json): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function optional(name: string, value: Json): Record<string, Json> {
  return value === undefined ? {} : { [name]: value }
}

function list(name: string, values: readonly Json[]): Record<string, Json> {
  return values.length === 0 ? {} : { [name]: values }
}
