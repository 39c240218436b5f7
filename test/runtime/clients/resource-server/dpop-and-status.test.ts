/** The resource-server kit: DPoP proofs (RFC 9449) and status lists (draft-ietf-oauth-status-list). */
import { randomUUID } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { StatusList } from '@sd-jwt/jwt-status-list'
import test, { type ExecutionContext } from 'ava'
import {
  createResourceServer,
  type Refusal,
  type ResourceServerOptions,
} from '../../../../runtime/clients/resource-server/exports.js'
import { heldClock } from '../../../support/held-clock.js'
import { dpopProof, localIssuer, signed, testKey } from '../../../support/oauth/local-issuer.js'

const RESOURCE = 'https://files.example.com/mcp'
const NOW = new Date('2026-03-01T12:00:00Z')
const nowSecs = NOW.getTime() / 1000
type Claims = Readonly<Record<string, unknown>>

async function setUp(t: ExecutionContext, more: Partial<ResourceServerOptions> = {}) {
  const as = await localIssuer()
  t.teardown(() => as.close())
  const key = await testKey('ES256', 'first')
  as.setKeys(key)
  const clock = heldClock(NOW)
  const { issuer } = as
  const options = { issuer, resource: RESOURCE, scopes: ['files:read'], clock, ...more }
  const server = createResourceServer(options)
  const tokenOf = (claims: Claims = {}) =>
    signed(key, {
      iss: issuer,
      aud: RESOURCE,
      sub: 'ada',
      client_id: 'app',
      jti: randomUUID(),
      iat: nowSecs,
      exp: nowSecs + 100_000,
      scope: 'files:read',
      ...claims,
    })
  const send = (headers: Record<string, string>, url = RESOURCE) =>
    server.authenticate(new Request(url, { method: 'POST', headers }))
  return { as, key, clock, server, tokenOf, send }
}

const proofClaims = () => ({ jti: randomUUID(), htm: 'POST', htu: RESOURCE, iat: nowSecs })
const challengeOf = (outcome: { tag: string }) =>
  (outcome as Refusal).headers?.['www-authenticate'] ?? outcome.tag

for (const alg of ['ES256', 'EdDSA'] as const) {
  test(`a bound token works with a proof of its key, once, and not as a bearer token (${alg})`, async (t) => {
    const { tokenOf, send } = await setUp(t)
    const own = await testKey(alg)
    const token = await tokenOf({ cnf: { jkt: own.jkt } })
    const proof = () => dpopProof(own, token, proofClaims(), { alg })
    const first = await proof()
    const authorization = `dPoP ${token}`
    const outcome = await send({ authorization, dpop: first }, `${RESOURCE}?page=2`)
    t.like(outcome, { tag: 'authenticated', token: { jkt: own.jkt } })
    const replayed = await Promise.all(
      Array.from({ length: 10 }, () => send({ authorization, dpop: first })),
    )
    for (const one of replayed)
      t.regex(challengeOf(one), /^DPoP error="invalid_dpop_proof".*used before/)
    const racers = await proof()
    const raced = await Promise.all(
      Array.from({ length: 10 }, () => send({ authorization, dpop: racers })),
    )
    t.is(raced.filter(({ tag }) => tag === 'authenticated').length, 1)

    const bearer = await send({ authorization: `Bearer ${token}`, dpop: await proof() })
    t.regex(challengeOf(bearer), /^DPoP error="invalid_token".*algs="ES256 EdDSA Ed25519"/)
    const free = await send({ authorization: `DPoP ${await tokenOf()}`, dpop: await proof() })
    t.regex(challengeOf(free), /error="invalid_token".*not bound/)
  })
}

test('proofs that do not belong to the request are refused', async (t) => {
  const { tokenOf, send, key } = await setUp(t)
  const own = await testKey()
  const token = await tokenOf({ cnf: { jkt: own.jkt } })
  const other = await testKey()
  const make = (claims: Claims, header: Claims = {}, by = own) =>
    dpopProof(by, token, { ...proofClaims(), ...claims }, header)
  const { kid: _kid, alg: _alg, ...publicJwk } = own.jwk
  const wrong: Record<string, string> = {
    method: await make({ htm: 'GET' }),
    path: await make({ htu: `${RESOURCE}/x` }),
    host: await make({ htu: 'https://files.example.org/mcp' }),
    'no htu': await make({ htu: undefined }),
    'hash of another token': await make({ ath: 'AAAA' }),
    'no hash': await make({ ath: undefined }),
    old: await make({ iat: nowSecs - 61 }),
    future: await make({ iat: nowSecs + 11 }),
    'no time': await make({ iat: undefined }),
    'no id': await make({ jti: undefined }),
    'a long id': await make({ jti: 'x'.repeat(257) }),
    type: await make({}, { typ: 'JWT' }),
    'another key': await make({}, {}, other),
    'the public key of another': await make({}, { jwk: publicJwk }, other),
    'no key': await make({}, { jwk: undefined }),
    'a private key': await make({}, { jwk: { ...publicJwk, d: 'AAAA' } }),
    'the key of the issuer': await make({}, {}, key),
    'not a JWT': 'AAAA',
    long: `${await make({})}${'A'.repeat(9000)}`,
    two: `${await make({})}, ${await make({})}`,
  }
  for (const [what, dpop] of Object.entries(wrong)) {
    const outcome = await send({ authorization: `DPoP ${token}`, dpop })
    t.is(outcome.tag, 'refused', what)
    t.like(outcome, { status: 401, error: 'invalid_dpop_proof' }, what)
  }
  const none = await send({ authorization: `DPoP ${token}` })
  t.regex(challengeOf(none), /invalid_dpop_proof.*One DPoP header/)
  for (const iat of [nowSecs - 10, nowSecs + 10, nowSecs - 60]) {
    const outcome = await send({ authorization: `DPoP ${token}`, dpop: await make({ iat }) })
    t.is(outcome.tag, 'authenticated', String(iat - nowSecs))
  }
})

test('nonces are demanded, work in all processes with the secret, and expire', async (t) => {
  const dpop = { nonces: true, required: true, nonceSecret: new Uint8Array(32).fill(7) }
  const one = await setUp(t, { dpop })
  const own = await testKey()
  const token = await one.tokenOf({ cnf: { jkt: own.jkt } })
  const authorization = `DPoP ${token}`
  const proof = async (claims: Claims) => dpopProof(own, token, { ...proofClaims(), ...claims })
  const asked = await one.send({ authorization, dpop: await proof({}) })
  t.regex(challengeOf(asked), /^DPoP error="use_dpop_nonce"/)
  const nonce = (asked as Refusal).headers['dpop-nonce']!
  t.is((await one.send({ authorization, dpop: await proof({ nonce }) })).tag, 'authenticated')
  const { issuer } = one.as
  const two = createResourceServer({
    issuer,
    resource: RESOURCE,
    scopes: [],
    dpop,
    clock: one.clock,
  })
  const there = { method: 'POST', headers: { authorization, dpop: await proof({ nonce }) } }
  t.is((await two.authenticate(new Request(RESOURCE, there))).tag, 'authenticated')
  for (const wrong of ['AAAA', nonce.replace(/^./, nonce.startsWith('A') ? 'B' : 'A'), 7])
    t.like(await one.send({ authorization, dpop: await proof({ nonce: wrong }) }), {
      error: 'use_dpop_nonce',
    })
  one.clock.advance(241_000)
  const late = await proof({ nonce, iat: one.clock.nowSecs() })
  t.like(await one.send({ authorization, dpop: late }), { error: 'use_dpop_nonce' })

  const plain = await one.send({ authorization: `Bearer ${await one.tokenOf()}` })
  t.regex(challengeOf(plain), /^DPoP error="invalid_token".*must be bound/)
  t.true(one.server.protectedResourceMetadata()['dpop_bound_access_tokens_required'])
})

test('a replay store that fails refuses the request with 503', async (t) => {
  const replayStore = { once: () => Promise.reject(new Error('redis://secret is away')) }
  const { tokenOf, send } = await setUp(t, { dpop: { replayStore } })
  const own = await testKey()
  const token = await tokenOf({ cnf: { jkt: own.jkt } })
  const dpop = await dpopProof(own, token, proofClaims())
  const outcome = await send({ authorization: `DPoP ${token}`, dpop })
  t.like(outcome, { status: 503, error: 'temporarily_unavailable' })
  t.false(JSON.stringify(outcome).includes('secret'))
})

/** A service with a status list, and what it answers for tokens with these indices. */
async function withList(t: ExecutionContext) {
  const own = await setUp(t)
  const uri = `${own.as.issuer}/status-lists/1`
  const publish = async (list: object, claims: Claims = {}, header: Claims = {}, key = own.key) => {
    const now = own.clock.nowSecs()
    const payload = {
      sub: uri,
      iss: own.as.issuer,
      iat: now,
      exp: now + 120,
      ttl: 60,
      status_list: list,
      ...claims,
    }
    const body = await signed(key, payload, { typ: 'statuslist+jwt', ...header })
    own.as.pages.set('/status-lists/1', {
      headers: { 'content-type': 'application/statuslist+jwt' },
      body,
    })
  }
  const at = async (idx: number, of = uri) => {
    const token = await own.tokenOf({ status: { status_list: { idx, uri: of } } })
    return own.send({ authorization: `Bearer ${token}` })
  }
  const fetches = () => own.as.requests.filter(({ path }) => path === '/status-lists/1').length
  return { ...own, uri, publish, at, fetches }
}

test('a revoked token is refused offline, with lists of the vectors of the draft', async (t) => {
  const { publish, at, fetches, clock, as } = await withList(t)
  await publish({ bits: 1, lst: 'eNrbuRgAAhcBXQ' })
  const ones = [0, 3, 4, 5, 7, 8, 9, 13, 15]
  for (let idx = 0; idx < 16; idx += 1) {
    const outcome = await at(idx)
    t.is(outcome.tag, ones.includes(idx) ? 'refused' : 'authenticated', String(idx))
    if (outcome.tag === 'refused') t.like(outcome, { status: 401, error: 'invalid_token' })
  }
  t.is(fetches(), 1)
  t.is(as.requests.at(-1)!.headers.accept, 'application/statuslist+jwt')
  t.like(
    await at(16),
    { status: 401, description: 'The access token was revoked.' },
    'beyond the end',
  )

  clock.advance(60_000)
  await publish({ bits: 2, lst: 'eNo76fITAAPfAgc' })
  const twos = [1, 2, 0, 3, 0, 1, 0, 1, 1, 2, 3, 3]
  for (const [idx, status] of twos.entries())
    t.is((await at(idx)).tag, status === 0 ? 'authenticated' : 'refused', String(idx))
  t.is(fetches(), 2)
})

test('a list of a million entries agrees with another implementation', async (t) => {
  const { publish, at } = await withList(t)
  const ones = [0, 1993, 25460, 159495, 495669, 554353, 645645, 723232, 854545, 934534, 1000345]
  const entries = Array.from({ length: 2 ** 20 }, () => 0)
  for (const idx of ones) entries[idx] = 1
  await publish({ bits: 1, lst: new StatusList(entries, 1).compressStatusList() })
  for (const idx of ones) {
    t.is((await at(idx)).tag, 'refused', String(idx))
    t.is((await at(idx + 1)).tag, 'authenticated', String(idx + 1))
  }
})

test('a list that cannot be verified lets no token through', async (t) => {
  const { publish, at, key, as, clock, uri } = await withList(t)
  const list = { bits: 1, lst: 'eNrbuRgAAhcBXQ' }
  const bomb = deflateSync(Buffer.alloc(64 * 1024 * 1024)).toString('base64url')
  const stranger = await testKey('ES256', 'first')
  const wrong: Record<string, () => Promise<void>> = {
    'no list': async () => void as.pages.delete('/status-lists/1'),
    'another sub': () => publish(list, { sub: `${uri}/` }),
    'another issuer': () => publish(list, { iss: 'https://evil.example' }),
    expired: () => publish(list, { exp: clock.nowSecs() - 1 }),
    'no iat': () => publish(list, { iat: undefined }),
    'another type': () => publish(list, {}, { typ: 'JWT' }),
    'another key': () => publish(list, {}, {}, stranger),
    'three bits': () => publish({ ...list, bits: 3 }),
    'not compressed': () => publish({ bits: 1, lst: 'AAAA' }),
    'an inflate bomb': () => publish({ bits: 1, lst: bomb }),
    'the wrong media type': async () => {
      await publish(list)
      const { body } = as.pages.get('/status-lists/1')!
      as.pages.set('/status-lists/1', { body })
    },
  }
  for (const [what, publishWrong] of Object.entries(wrong)) {
    await publishWrong()
    clock.advance(2_000)
    const outcome = await at(1)
    t.like(outcome, { tag: 'refused', status: 503 }, what)
    t.is(challengeOf(outcome), 'refused', 'no challenge')
  }
  const elsewhere = await localIssuer()
  t.teardown(() => elsewhere.close())
  t.like(await at(1, `${elsewhere.issuer}/status-lists/1`), { status: 503 })
  t.is(elsewhere.requests.length, 0, 'no request to an address of the token')

  clock.advance(2_000)
  await publish(list)
  t.is((await at(1)).tag, 'authenticated')
  // While the list is away, the last one counts until it expires.
  as.pages.delete('/status-lists/1')
  clock.advance(90_000)
  t.is((await at(1)).tag, 'authenticated')
  t.is((await at(0)).tag, 'refused')
  clock.advance(40_000)
  t.like(await at(1), { status: 503 })
  t.is(key.jwk.kid, 'first')
})
