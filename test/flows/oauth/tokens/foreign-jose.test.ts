/** JWTs as other libraries write them: header members that the service does not know, and times with fractions. */
import test from 'ava'
import {
  exportJWK,
  generateKeyPair,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose'
import { bootstrapped } from '../../../support/identity/person.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const [own, foreign] = [await generateKeyPair('ES256'), await generateKeyPair('ES256')]
const foreignJwk = { ...(await exportJWK(foreign.publicKey)) }
const running = await sharedService('plain')
const party = await relyingParty(running, await bootstrapped(running), {
  tokenEndpointAuthMethod: 'private_key_jwt',
  secretSha256: null,
  jwks: { keys: [{ ...(await exportJWK(own.publicKey)) }] },
  grantTypes: ['client_credentials'],
  scopes: ['applications:read'],
})
const clientId = party.clientId

const now = () => Date.now() / 1000

/** The status of a token request with an assertion. */
async function ask(
  header: Record<string, unknown>,
  times: JWTPayload = {},
  { key = own.privateKey, proof }: { key?: typeof own.privateKey; proof?: string } = {},
): Promise<number> {
  const claims = { iss: clientId, sub: clientId, aud: running.baseUrl, jti: crypto.randomUUID() }
  const assertion = await new SignJWT({ ...claims, exp: Math.floor(now()) + 60, ...times })
    .setProtectedHeader({ alg: 'ES256', ...header } as JWTHeaderParameters)
    .sign(key, { crit: { extra: true } })
  const answer = await fetch(`${running.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: proof === undefined ? {} : { dpop: proof },
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: assertion,
    }),
  })
  await answer.text()
  return answer.status
}

for (const header of [
  { 'x5t#S256': 'bWFkZSB1cCBkaWdlc3Qgb2YgYSBjZXJ0aWZpY2F0ZSE' },
  { x5t: 'bWFkZSB1cA' },
  { cty: 'JWT' },
  { x5c: ['MIIB'] },
  { x5u: 'https://keys.example/c.pem' },
  { jku: 'https://keys.example/jwks.json' },
  { jwk: foreignJwk },
  { ver: 1, extra: { deep: [null] } },
])
  test(`an assertion with ${Object.keys(header).join(' and ')} in its header`, async (t) => {
    t.is(await ask(header), 200)
    t.is(await ask(header, {}, { key: foreign.privateKey }), 401, 'only the registered key counts')
  })

test('an assertion with crit is refused', async (t) => {
  t.is(await ask({ crit: ['extra'], extra: 1 }), 401)
})

for (const [title, times, status] of [
  ['fractions', () => ({ iat: now(), nbf: now() - 0.5, exp: now() + 59.75 }), 200],
  ['an exp of a second and a half ago', () => ({ exp: now() - 1.5 }), 401],
  ['an iat too far ahead', () => ({ iat: now() + 65.5 }), 401],
  ['a negative iat', () => ({ iat: -0.5 }), 401],
] as const)
  test(`an assertion with ${title}: ${status}`, async (t) => t.is(await ask({}, times()), status))

test('a DPoP proof with a fraction and unknown header members is accepted, if its key may verify', async (t) => {
  const proofOf = (iat: number, uses = {}) =>
    new SignJWT({
      jti: crypto.randomUUID(),
      htm: 'POST',
      htu: `${running.baseUrl}/oauth/token`,
      iat,
    })
      .setProtectedHeader({
        alg: 'ES256',
        typ: 'dpop+jwt',
        jwk: { ...foreignJwk, ...uses },
        cty: 'none',
        kid: 'k-1',
      })
      .sign(foreign.privateKey)
  t.is(await ask({}, {}, { proof: await proofOf(now()) }), 200)
  t.not(await ask({}, {}, { proof: await proofOf(now() - 400.5) }), 200)
  t.is(await ask({}, {}, { proof: await proofOf(now(), { key_ops: ['verify'] }) }), 200)
  t.is(await ask({}, {}, { proof: await proofOf(now(), { key_ops: ['encrypt'] }) }), 401)
})
