/**
 * Each step of the validation of a security event has rows here, which fail without the step:
 * `node dist/test/seeded-faults.js` takes them out (test/runner/seeded/security-events.ts).
 */
import test from 'ava'
import { readSecurityEvent } from '../../../../actors/platform/jose/security-event-claims.js'

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/'
const RISC = 'https://schemas.openid.net/secevent/risc/event-type/'
const ISSUER = 'https://id.example'
const NOW_SECS = 1_800_000_000
const DAY_SECS = 86_400

type Json = Readonly<Record<string, unknown>>
const ALICE = { format: 'iss_sub', iss: ISSUER, sub: 'alice' }
const SESSION = { format: 'opaque', id: 's1' }
const one = (type: string, event: unknown = {}) => ({ events: { [type]: event } })
const VALID: Json = {
  iss: ISSUER,
  aud: 'rp',
  jti: 'once',
  iat: NOW_SECS,
  sub_id: ALICE,
  ...one(`${CAEP}session-revoked`),
}
const read = (changed: Json = {}, typ: unknown = 'secevent+jwt') =>
  readSecurityEvent(
    {
      typ,
      claims: Object.fromEntries(
        Object.entries({ ...VALID, ...changed }).filter(([, value]) => value !== undefined),
      ),
    },
    { issuer: ISSUER, audience: 'rp', nowSecs: NOW_SECS },
  )

const REFUSED: readonly (readonly [what: string, err: string, changed: Json, typ?: unknown])[] = [
  ['another type', 'invalid_request', {}, 'logout+jwt'],
  ['a type that begins with it', 'invalid_request', {}, 'secevent+jwt2'],
  ['no type', 'invalid_request', {}, null],
  ['another issuer', 'invalid_issuer', { iss: 'https://other.example' }],
  ['no issuer', 'invalid_issuer', { iss: undefined }],
  ['another audience', 'invalid_audience', { aud: ['one', 'two'] }],
  ['no audience', 'invalid_audience', { aud: undefined }],
  ['sub', 'invalid_request', { sub: 'alice' }],
  ['exp', 'invalid_request', { exp: NOW_SECS + 60 }],
  ['no jti', 'invalid_request', { jti: undefined }],
  ['an empty jti', 'invalid_request', { jti: '' }],
  ['a jti that is too long', 'invalid_request', { jti: 'a'.repeat(256) }],
  ['no iat', 'invalid_request', { iat: undefined }],
  ['an iat of tomorrow', 'invalid_request', { iat: NOW_SECS + DAY_SECS }],
  ['an iat of five days ago', 'invalid_request', { iat: NOW_SECS - 5 * DAY_SECS }],
  ['no events', 'invalid_request', { events: {} }],
  ['a list of events', 'invalid_request', { events: [{}] }],
  ['two events', 'invalid_request', { events: { [`${CAEP}session-revoked`]: {}, other: {} } }],
  ['an event that is no object', 'invalid_request', one(`${CAEP}session-revoked`, true)],
  ['no subject', 'invalid_request', { sub_id: undefined }],
  ['an address', 'invalid_request', { sub_id: { format: 'email', email: 'a@id.example' } }],
  [
    'a user of another issuer',
    'invalid_request',
    { sub_id: { ...ALICE, iss: 'https://x.example' } },
  ],
  [
    'a session, and a user of another issuer',
    'invalid_request',
    {
      sub_id: { format: 'complex', session: SESSION, user: { ...ALICE, iss: 'https://x.example' } },
    },
  ],
  ['complex without both', 'invalid_request', { sub_id: { format: 'complex', device: SESSION } }],
  [
    'a session that is not opaque',
    'invalid_request',
    { sub_id: { format: 'complex', user: ALICE, session: { format: 'email', email: 'a' } } },
  ],
  [
    'a tenant that is not opaque',
    'invalid_request',
    { sub_id: { format: 'complex', user: ALICE, tenant: 't1' } },
  ],
]
for (const [what, err, changed, typ] of REFUSED)
  test(`a security event with ${what} is refused`, (t) => {
    t.like(read(changed, typ === undefined ? 'secevent+jwt' : typ), { tag: 'refused', err })
  })

const nothing = { subject: null, sid: null, tenant: null }
const ACCEPTED: readonly (readonly [what: string, event: Json, changed: Json, typ?: string])[] = [
  ['a user', { effect: 'sessions', subject: 'alice', sid: null, untilSecs: NOW_SECS }, {}],
  ['a media type', { subject: 'alice' }, {}, 'application/SecEvent+JWT'],
  ['one of many audiences', { subject: 'alice' }, { aud: ['other', 'rp'] }],
  [
    'an iat of three days ago',
    { untilSecs: NOW_SECS - 3 * DAY_SECS },
    { iat: NOW_SECS - 3 * DAY_SECS },
  ],
  [
    'a session',
    { ...nothing, effect: 'sessions', sid: 's1' },
    { sub_id: { format: 'complex', session: SESSION } },
  ],
  [
    'a user, a session and a tenant',
    { subject: 'alice', sid: 's1', tenant: 't1' },
    {
      sub_id: {
        format: 'complex',
        user: ALICE,
        session: SESSION,
        tenant: { format: 'opaque', id: 't1' },
      },
    },
  ],
  [
    'a time before it was sent',
    { untilSecs: NOW_SECS - 60 },
    one(`${CAEP}session-revoked`, { event_timestamp: NOW_SECS - 60 }),
  ],
  [
    'a time in milliseconds',
    { untilSecs: NOW_SECS },
    one(`${CAEP}session-revoked`, { event_timestamp: NOW_SECS * 1000 }),
  ],
  [
    'a new credential',
    { effect: null },
    one(`${CAEP}credential-change`, { change_type: 'create' }),
  ],
  [
    'a changed credential',
    { effect: 'sessions' },
    one(`${CAEP}credential-change`, { change_type: 'update' }),
  ],
  ['sessions', { effect: 'sessions' }, one(`${RISC}sessions-revoked`)],
  ['a required change', { effect: 'sessions' }, one(`${RISC}account-credential-change-required`)],
  ['a disabled account', { effect: 'person' }, one(`${RISC}account-disabled`)],
  ['a compromise', { effect: 'person' }, one(`${RISC}credential-compromise`)],
  ['a purged account', { effect: 'purge' }, one(`${RISC}account-purged`)],
  [
    'an enabled account',
    { ...nothing, effect: null },
    { ...one(`${RISC}account-enabled`), sub_id: { format: 'opaque', id: 'x' } },
  ],
]
for (const [what, event, changed, typ] of ACCEPTED)
  test(`a security event with ${what} is read`, (t) => {
    t.like(read(changed, typ ?? 'secevent+jwt'), { tokenId: 'once', ...event })
  })
