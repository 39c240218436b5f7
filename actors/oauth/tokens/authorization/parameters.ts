/** The stored form of an authorization request, and the readers of its parameters. */
import { findJsonLoss } from '../../../../runtime/kernel/text/json-lossiness.js'
import type {
  RequestedClaims,
  AuthorizationDetails,
} from '../../../../storage/oauth/authorization-codes.js'
import {
  CREDENTIAL_DETAILS_TYPE,
  isCredentialConfiguration,
} from '../../../domain/credentials/catalogue.js'
import { personClaims } from '../../../domain/person-claims.js'
import type { AssuranceLevel } from '../../../domain/assurance.js'
import { parseStrictJson } from '../../../platform/jose/strict-json.js'
import type { ResponseMode } from './protocol.js'

/** A valid request as plain JSON, without the times and ids of its row. */
export type AuthorizationRequest = {
  readonly redirectUri: string
  readonly state: string | null
  /** The requested scopes, all of them known. */
  readonly scopes: readonly string[]
  readonly nonce: string | null
  readonly codeChallenge: string | null
  readonly jkt: string | null
  readonly prompt: {
    readonly none: boolean
    readonly login: boolean
    readonly consent: boolean
    /** Absent in requests that an earlier version stored. */
    readonly selectAccount?: boolean
  }
  /** The session that the user chose for `prompt=select_account`. Absent before. */
  readonly chosenSession?: string | undefined
  readonly maxAgeSecs: number | null
  readonly level: AssuranceLevel
  /** From `audience` or `resource`. Empty: the application's audience. */
  readonly audience: readonly string[]
  readonly details: AuthorizationDetails | null
  readonly claims: RequestedClaims | null
  /** The `sub` of the claims parameter: the only user that is accepted. */
  readonly sub: string | null
  readonly idTokenHint: string | null
  readonly loginHint: string | null
  readonly uiLocales: string | null
  /** Absent: `query`. */
  readonly responseMode?: ResponseMode | undefined
  /** The metadata document that identifies the client. Absent for a registered one. */
  readonly documentSha256?: string | undefined
  /** The state of a credential offer (OpenID4VCI section 5.1.3). Absent in requests that an earlier version stored. */
  readonly issuerState?: string | null | undefined
}

const ACR = /^aal([123])$/
const DETAILS_MAX = 10
const JSON_CHARACTERS_MAX = 8192
/** Details become token claims, and tokens have a depth limit of 16 (see `jwt.ts`). */
const DETAILS_DEPTH_MAX = 12
/** RFC 9396 section 2.2. The API defines the values. */
const COMMON_LISTS = ['locations', 'actions', 'datatypes', 'privileges'] as const

/** `acr_values`: the lowest known level. Unknown values are ignored, since the parameter is voluntary. */
export function readLevel(acrValues: string | null): AssuranceLevel {
  const named = (acrValues ?? '')
    .split(' ')
    .map((value) => ACR.exec(value)?.[1])
    .filter((level) => level !== undefined)
    .map((level) => Number(level) as AssuranceLevel)
  return named.length === 0 ? 1 : (Math.min(...named) as AssuranceLevel)
}

type ReadClaims = {
  readonly claims: RequestedClaims | null
  readonly sub: string | null
  /**
   * Null unless `acr` is an essential claim (OpenID Connect Core section 5.5.1.1). `foreign` if none of
   * the required values is known, so that no sign-in can satisfy it.
   */
  readonly level: AssuranceLevel | 'foreign' | null
}

/** The `claims` parameter (OpenID Connect Core section 5.5). Null if it is malformed. */
export function readClaims(text: string | null): ReadClaims | null {
  if (text === null) return { claims: null, sub: null, level: null }
  const parsed = readJson(text)
  if (!isObject(parsed)) return null
  // A null member requests nothing.
  const idToken = parsed['id_token'] ?? {}
  const userinfo = parsed['userinfo'] ?? {}
  if (!isObject(idToken) || !isObject(userinfo)) return null
  for (const claimRequest of [...Object.values(idToken), ...Object.values(userinfo)])
    if (claimRequest !== null && !isObject(claimRequest)) return null
  const requested = {
    idToken: personClaims(Object.keys(idToken)),
    userinfo: personClaims(Object.keys(userinfo)),
  }
  const none = requested.idToken.length + requested.userinfo.length === 0
  const sub = valueOf(idToken['sub']) ?? valueOf(userinfo['sub'])
  return { claims: none ? null : requested, sub, level: essentialLevel(idToken['acr']) }
}

/** `authorization_details` (RFC 9396 section 2) of the given types. Null if absent. */
export function readDetails(
  text: string | null,
  client: {
    readonly authorizationDetailsTypes: readonly string[]
    readonly scopes: readonly string[]
  },
): AuthorizationDetails | null | { readonly fault: string } {
  if (text === null) return null
  // Strict JSON, so that the user is shown what the API reads, whatever parser it uses.
  const parsed =
    text.length > JSON_CHARACTERS_MAX
      ? undefined
      : parseStrictJson(Buffer.from(text), DETAILS_DEPTH_MAX)
  if (!Array.isArray(parsed) || parsed.length === 0 || parsed.length > DETAILS_MAX)
    return { fault: `authorization_details must be an array of 1 to ${DETAILS_MAX} objects` }
  if (!parsed.every(isObject)) return { fault: 'authorization_details must hold objects' }
  const types = [...client.authorizationDetailsTypes, CREDENTIAL_DETAILS_TYPE]
  const known = parsed.every(({ type }) => typeof type === 'string' && types.includes(type))
  if (!known) return { fault: 'a type is missing or not registered for the application' }
  const lost = findJsonLoss(text, parsed)
  if (lost !== null) return { fault: `a member cannot be represented exactly: ${lost.detail}` }
  const credential = parsed.find(
    (one) => one['type'] === CREDENTIAL_DETAILS_TYPE && !isCredentialDetail(one, client.scopes),
  )
  if (credential !== undefined)
    return { fault: 'credential_configuration_id is missing, or not a scope of the application' }
  const mistaken = parsed.map(mistakenMember).find((name) => name !== undefined)
  return mistaken === undefined ? parsed : { fault: `${mistaken} has the wrong type` }
}

/** OpenID4VCI section 5.1.1. The scope of a configuration is its id. */
function isCredentialDetail(
  { credential_configuration_id: id }: Readonly<Record<string, unknown>>,
  scopes: readonly string[],
): boolean {
  return isCredentialConfiguration(id) && scopes.includes(id)
}

/** The first common member that violates RFC 9396 section 2.2. */
function mistakenMember(detail: Readonly<Record<string, unknown>>): string | undefined {
  const list = COMMON_LISTS.find((name) => detail[name] !== undefined && !isTexts(detail[name]))
  if (list !== undefined) return list
  const { identifier } = detail
  return identifier === undefined || typeof identifier === 'string' ? undefined : 'identifier'
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

function readJson(text: string): unknown {
  if (text.length > JSON_CHARACTERS_MAX) return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function essentialLevel(claimRequest: unknown): AssuranceLevel | 'foreign' | null {
  if (!isObject(claimRequest) || claimRequest['essential'] !== true) return null
  const values = Array.isArray(claimRequest['values'])
    ? claimRequest['values']
    : [claimRequest['value']]
  const named = values.filter((value): value is string => typeof value === 'string')
  if (named.length === 0) return null
  const ours = named.filter((value) => ACR.test(value))
  return ours.length === 0 ? 'foreign' : readLevel(ours.join(' '))
}

function valueOf(claimRequest: unknown): string | null {
  return isObject(claimRequest) && typeof claimRequest['value'] === 'string'
    ? claimRequest['value']
    : null
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
