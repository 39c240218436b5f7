/** Errors name the failed check to the client that owns the code, token or assertion, in ASCII. */
import test from 'ava'
import { exportJWK, SignJWT } from 'jose'
import { freshKeyPair } from '../../../runtime/kernel/key-pair.js'
import type { Answer } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { sql } from '../../support/storage/sql.js'
import { bootstrapped } from '../../support/identity/person.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  relyingParty,
} from '../../support/oauth/relying-party.js'
import { sharedApi } from '../../support/service.js'

const { api, running } = await sharedApi('plain')
const person = await bootstrapped(running)
const party = await relyingParty(running, person)
const other = await relyingParty(running, person)
const browser = openBrowser(running)

type Fields = Readonly<Record<string, string>>
const token = (fields: Fields, { clientId, secret } = party) =>
  api.form('/oauth/token', fields, {
    authorization: `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`,
  })
const reasonOf = ({ body }: Answer) => String(body['error_description'])

async function allowed() {
  const { url, verifier } = await party.journey()
  const code = callbackOf(await authorized(browser, person, url)).searchParams.get('code')!
  return {
    grant_type: 'authorization_code',
    code,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
  }
}

test.serial('a code: mismatches, and why it is no longer valid', async (t) => {
  const right = await allowed()
  for (const [change, reason] of [
    [{ redirect_uri: `${CALLBACK}/` }, /^redirect_uri is not the one/],
    [{ code_verifier: '' }, /^code_verifier is missing/],
    [{ code_verifier: 'short' }, /^code_verifier must be 43/],
    [{ code_verifier: 'x'.repeat(43) }, /^code_verifier does not match/],
    [{ code: 'unknown' }, /^the code is unknown/],
  ] as const) {
    const answer = await token({ ...right, ...change })
    t.is(answer.body['error'], 'invalid_grant')
    t.regex(reasonOf(answer), reason)
  }
  // Another client gets the same error as for an unknown code.
  t.regex(reasonOf(await token(right, other)), /^the code is unknown/)
  t.is((await token(right)).status, 200)
  t.regex(reasonOf(await token(right)), /^the code was used before/)

  const late = await allowed()
  await sql(running)`
    update authorization_codes set expires_at = created_at where tenant_id = ${person.tenantId}`
  t.regex(reasonOf(await token(late)), /^the code has expired/)
})

test.serial('a refresh token: used before, revoked, expired', async (t) => {
  const issued = async () => String((await token(await allowed())).body['refresh_token'])
  const refresh = (refresh_token: string, by = party) =>
    token({ grant_type: 'refresh_token', refresh_token }, by)
  t.regex(reasonOf(await refresh('unknown')), /^the refresh token is unknown/)

  const stolen = await issued()
  const next = String((await refresh(stolen)).body['refresh_token'])
  t.regex(reasonOf(await refresh(next, other)), /^the refresh token is unknown/)
  t.is((await refresh(next)).status, 200)
  t.regex(reasonOf(await refresh(stolen)), /used before: its family is revoked/)
  t.regex(reasonOf(await refresh(next)), /was revoked/)

  const old = await issued()
  await sql(running)`
    update refresh_families set expires_at = now() where tenant_id = ${person.tenantId}`
  t.regex(reasonOf(await refresh(old)), /has expired/)
})

test.serial('an assertion: its own faults, and nothing about the client', async (t) => {
  const { publicKey, privateKey } = freshKeyPair('P-256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' }
  const machine = await relyingParty(running, person, {
    tokenEndpointAuthMethod: 'private_key_jwt',
    grantTypes: ['client_credentials'],
    jwks: { keys: [jwk] },
    secretSha256: null,
  })
  const nowSecs = Math.floor(Date.now() / 1000)
  const claims = {
    iss: machine.clientId,
    sub: machine.clientId,
    aud: running.issuer,
    exp: nowSecs + 60,
  }
  const asked = async (change: Readonly<Record<string, unknown>>) => {
    const jti = crypto.randomUUID()
    const assertion = await new SignJWT({ ...claims, jti, ...change })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .sign(privateKey)
    return api.form('/oauth/token', {
      grant_type: 'client_credentials',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: assertion,
    })
  }
  t.is((await asked({})).status, 200)
  for (const [change, reason] of [
    [{ aud: `${running.issuer}/oauth/token` }, `aud must be ${running.issuer}, as a single string`],
    [{ aud: [running.issuer] }, 'aud must be'],
    [{ sub: 'another-client' }, 'iss and sub must both be the client_id'],
    [{ exp: nowSecs - 1 }, 'it has expired'],
    [{ exp: nowSecs + 7200 }, 'ahead'],
    [{ jti: '' }, 'jti must be'],
    [{ nbf: nowSecs + 300 }, 'iat and nbf'],
  ] as const) {
    const answer = await asked(change)
    t.like(answer, { status: 401, body: { error: 'invalid_client' } })
    t.true(reasonOf(answer).includes(reason), reasonOf(answer))
  }
  const stranger = crypto.randomUUID()
  const unknown = await asked({ iss: stranger, sub: stranger })
  t.is(reasonOf(unknown), 'client authentication failed')
})
