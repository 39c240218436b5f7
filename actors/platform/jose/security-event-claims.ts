/** Security event tokens of other parties (RFC 8417, SSF 1.0, CAEP 1.0, RISC 1.0). */
import {
  ACCOUNT_DISABLED,
  ACCOUNT_PURGED,
  CREDENTIAL_CHANGE,
  CREDENTIAL_CHANGE_REQUIRED,
  CREDENTIAL_COMPROMISE,
  type EventRefused,
  SESSION_REVOKED,
  SESSIONS_REVOKED,
} from '../../domain/webhooks/signals.js'
import { isTime } from './external-jws.js'
import type { IssuerJws } from './issuer-jws.js'
import { isStored } from './logout-claims.js'

/** How far the clocks of a transmitter and of the service may differ. */
export const EVENT_SKEW_SECS = 30
/** A transmitter repeats an event until it is received, for days. */
const AGE_SECS_MAX = 4 * 86_400
/** How long a `jti` is remembered: longer than its token is accepted. */
export const EVENT_MEMORY_SECS = AGE_SECS_MAX + 2 * EVENT_SKEW_SECS

/** `sessions`: what the sender opened. `person`: all that the person has. `purge`: the link to the sender too. */
type Effect = 'sessions' | 'person' | 'purge'

/** Other events are received, and change nothing. */
const EFFECTS: ReadonlyMap<string, Effect> = new Map([
  [SESSION_REVOKED, 'sessions'],
  [SESSIONS_REVOKED, 'sessions'],
  [CREDENTIAL_CHANGE, 'sessions'],
  [CREDENTIAL_CHANGE_REQUIRED, 'sessions'],
  [CREDENTIAL_COMPROMISE, 'person'],
  [ACCOUNT_DISABLED, 'person'],
  [ACCOUNT_PURGED, 'purge'],
])

/** What a token says. */
export type SecurityEvent = {
  readonly tokenId: string
  readonly type: string
  readonly effect: Effect | null
  /** The user at the sender, and a session there. One of both is not null if the event has an effect. */
  readonly subject: string | null
  readonly sid: string | null
  /** The tenant of the sender. Null without one. */
  readonly tenant: string | null
  /** What the person began later goes on. */
  readonly untilSecs: number
}
export const eventRefused = (
  detail: string,
  err: EventRefused['err'] = 'invalid_request',
): EventRefused => ({ tag: 'refused', err, detail })

type Members = Readonly<Record<string, unknown>>
type Named = Pick<SecurityEvent, 'subject' | 'sid' | 'tenant'>

/** What the token says, or its first fault. The caller verifies the signature. */
export function readSecurityEvent(
  { typ, claims }: Pick<IssuerJws, 'typ' | 'claims'>,
  expected: { readonly issuer: string; readonly audience: string; readonly nowSecs: number },
): SecurityEvent | EventRefused {
  const { issuer, audience, nowSecs } = expected
  const { iss, aud, events, jti, iat } = claims
  if (!/^(?:application\/)?secevent\+jwt$/i.test(String(typ)))
    return eventRefused('typ is not secevent+jwt')
  if (iss !== issuer) return eventRefused(`iss is not ${issuer}`, 'invalid_issuer')
  if (![aud].flat().includes(audience))
    return eventRefused(`aud is not ${audience}`, 'invalid_audience')
  if ('sub' in claims) return eventRefused('sub is forbidden')
  if ('exp' in claims) return eventRefused('exp is forbidden')
  if (!isStored(jti)) return eventRefused('jti is not a text')
  if (!isTime(iat) || iat > nowSecs + EVENT_SKEW_SECS)
    return eventRefused('iat is missing, or in the future')
  if (iat < nowSecs - AGE_SECS_MAX - EVENT_SKEW_SECS) return eventRefused('iat is too old')
  const [one, ...more] = isObject(events) ? Object.entries(events) : []
  if (one === undefined || more.length > 0 || !isObject(one[1]))
    return eventRefused('events does not have exactly one event')
  const [type, event] = one
  const effect = effectOf(type, event)
  const nothing = { tokenId: jti, type, effect: null, subject: null, sid: null, tenant: null }
  const { event_timestamp: at } = event
  const untilSecs = Math.floor(Math.min(isTime(at) ? at : iat, nowSecs))
  if (effect === null) return { ...nothing, untilSecs }
  const named = namedBy(claims['sub_id'], issuer)
  return named === undefined
    ? eventRefused('sub_id is neither iss_sub of the issuer nor complex with user or session')
    : { ...nothing, effect, ...named, untilSecs }
}

/** A new credential ends nothing: what the person has is as safe as before. */
const effectOf = (type: string, event: Members): Effect | null =>
  type === CREDENTIAL_CHANGE && event['change_type'] === 'create'
    ? null
    : (EFFECTS.get(type) ?? null)

/** Whom a subject identifier names (RFC 9493). Undefined: no user and no session of the issuer. */
function namedBy(subject: unknown, issuer: string): Named | undefined {
  if (!isObject(subject)) return undefined
  const alone = userOf(subject, issuer)
  if (alone !== undefined) return { subject: alone, sid: null, tenant: null }
  const { format, user, session, tenant } = subject
  if (format !== 'complex' || (user === undefined && session === undefined)) return undefined
  const person = user === undefined ? null : userOf(user, issuer)
  const [sid, home] = [opaqueOf(session), opaqueOf(tenant)]
  return person === undefined || sid === undefined || home === undefined
    ? undefined
    : { subject: person, sid, tenant: home }
}

const userOf = (user: unknown, issuer: string): string | undefined =>
  isObject(user) && user['format'] === 'iss_sub' && user['iss'] === issuer && isStored(user['sub'])
    ? user['sub']
    : undefined

/** Null for an absent member, undefined for one with another format. */
function opaqueOf(member: unknown): string | null | undefined {
  if (member === undefined) return null
  const { format, id } = isObject(member) ? member : {}
  return format === 'opaque' && isStored(id) ? id : undefined
}

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
