/**
 * Each step of OpenID Connect Back-Channel Logout 1.0 section 2.6 has rows here, which fail without the step:
 * `node dist/test/seeded-faults.js` takes them out (test/runner/seeded/logout.ts).
 */
import test from 'ava'
import { createLocalJWKSet, exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose'
import { verifyLogoutToken } from '../../../../../../actors/identity/sign-in/ways/federated/logout-token.js'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const ISSUER = 'https://id.example'
const NOW_SECS = 1_800_000_000
const [own, foreign] = [await generateKeyPair('ES256'), await generateKeyPair('ES256')]
const keys = createLocalJWKSet({ keys: [{ ...(await exportJWK(own.publicKey)), kid: 'k1' }] })

type Json = Readonly<Record<string, unknown>>
const VALID: Json = {
  iss: ISSUER,
  aud: 'rp',
  sub: 'mallory',
  jti: 'once',
  iat: NOW_SECS,
  exp: NOW_SECS + 120,
  events: { [EVENT]: {} },
}
const claimsOf = (changed: Json) =>
  Object.fromEntries(
    Object.entries({ ...VALID, ...changed }).filter(([, value]) => value !== undefined),
  )
const signed = (changed: Json = {}, header: Json = {}, key = own.privateKey) =>
  new SignJWT(claimsOf(changed))
    .setProtectedHeader({ alg: 'ES256', kid: 'k1', typ: 'logout+jwt', ...header })
    .sign(key)

/** What the token names, its fault, or the code with which jose refuses it. */
async function verdictOf(token: string): Promise<unknown> {
  try {
    return await verifyLogoutToken(token, keys, {
      issuer: ISSUER,
      clientId: 'rp',
      algorithms: ['ES256'],
      now: new Date(NOW_SECS * 1000),
    })
  } catch (error) {
    return (error as { code?: unknown }).code
  }
}

type Row = readonly [what: string, verdict: unknown, token: () => string | Promise<string>]
const names = (sub: string | null, sid: string | null) => ({
  issuer: ISSUER,
  tokenId: 'once',
  subject: sub,
  sid,
})
const ROWS: readonly Row[] = [
  ['sub', names('mallory', null), () => signed()],
  ['sid', names(null, 's'), () => signed({ sub: undefined, sid: 's' })],
  ['sub and sid', names('mallory', 's'), () => signed({ sid: 's' })],
  ['no type', names('mallory', null), () => signed({}, { typ: undefined })],
  ['the type JWT', names('mallory', null), () => signed({}, { typ: 'JWT' })],
  ['the full type', names('mallory', null), () => signed({}, { typ: 'application/logout+jwt' })],
  ['several audiences', names('mallory', null), () => signed({ aud: ['other', 'rp'] })],
  ['no exp', names('mallory', null), () => signed({ exp: undefined })],
  ['an iat of 290 s ago', names('mallory', null), () => signed({ iat: NOW_SECS - 290 })],
  ['the type of an access token', 'typ is not logout+jwt', () => signed({}, { typ: 'at+jwt' })],
  ['no issuer', `iss is not ${ISSUER}`, () => signed({ iss: undefined })],
  ['another issuer', `iss is not ${ISSUER}`, () => signed({ iss: `${ISSUER}/` })],
  ['no audience', 'aud is not rp', () => signed({ aud: undefined })],
  ['another audience', 'aud is not rp', () => signed({ aud: ['x'] })],
  ['no event', 'events has no logout event', () => signed({ events: undefined })],
  ['another event', 'events has no logout event', () => signed({ events: { [`${EVENT}s`]: {} } })],
  ['a list as event', 'events has no logout event', () => signed({ events: { [EVENT]: [] } })],
  ['a nonce', 'nonce is forbidden', () => signed({ nonce: 'n' })],
  ['no jti', 'jti is not a text', () => signed({ jti: undefined })],
  ['a number as jti', 'jti is not a text', () => signed({ jti: 1 })],
  ['neither sub nor sid', 'sub and sid are missing', () => signed({ sub: undefined })],
  ['a number as sub', 'sub is not a text', () => signed({ sub: 1 })],
  ['an object as sid', 'sid is not a text', () => signed({ sid: {} })],
  ['no iat', 'ERR_JWT_CLAIM_VALIDATION_FAILED', () => signed({ iat: undefined })],
  ['an iat of six minutes ago', 'ERR_JWT_EXPIRED', () => signed({ iat: NOW_SECS - 360 })],
  [
    'an iat in two minutes',
    'ERR_JWT_CLAIM_VALIDATION_FAILED',
    () => signed({ iat: NOW_SECS + 120 }),
  ],
  ['a past exp', 'ERR_JWT_EXPIRED', () => signed({ exp: NOW_SECS - 60 })],
  [
    'another key',
    'ERR_JWS_SIGNATURE_VERIFICATION_FAILED',
    () => signed({}, {}, foreign.privateKey),
  ],
  [
    'no signature',
    'it is not a well-formed signed JWT',
    () => new UnsecuredJWT(claimsOf({})).encode(),
  ],
  [
    'a symmetric signature',
    'ERR_JOSE_ALG_NOT_ALLOWED',
    () =>
      new SignJWT(claimsOf({}))
        .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
        .sign(new TextEncoder().encode('the client secret of the relying party')),
  ],
]

for (const [what, verdict, token] of ROWS)
  test(`a logout token with ${what}`, async (t) => {
    t.deepEqual(await verdictOf(await token()), verdict)
  })
