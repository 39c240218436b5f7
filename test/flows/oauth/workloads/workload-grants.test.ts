/** A workload that authenticates as its application gets nothing beyond its rule, by whatever grant. */
import test from 'ava'
import { GRANT_TYPES } from '../../../../actors/domain/oauth/grant-types.js'
import { fixtureOf } from '../../../support/agents/delegation.js'
import { type Answer, claimsOf } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { tokenSource } from '../../../support/oauth/token-source.js'
import { sharedApi } from '../../../support/service.js'

const PRE_AUTHORIZED = 'urn:ietf:params:oauth:grant-type:pre-authorized_code'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
const LEFT_SECS = 100
const BEYOND = { status: 403, body: { error: 'unauthorized_client' } }

type Fields = Readonly<Record<string, string>>

const { api, running } = await sharedApi('hosts')
const here = await api.workspace()
const human = fixtureOf(here)
const browser = openBrowser(running)
const files = await resource()
const others = await resource()
const application = {
  grantTypes: ['authorization_code', 'refresh_token', 'client_credentials', EXCHANGE, DEVICE],
  scopes: ['openid', 'profile', 'vault:list', 'files:read', 'files:write'],
  authorizationDetailsTypes: ['payment'],
}
const party = await relyingParty(running, here, application)
const stranger = await relyingParty(running, here, application)
const source = await tokenSource(running.issuer)
await ruled()

/** Trusts the source: its token `job` may have openid and files:read, at one resource. */
async function ruled() {
  const issuer = { name: 'Source', issuer: source.issuer, purposes: ['workload'] }
  const { body } = await api.post('/api/v1/trusted-issuers', here.token, issuer).gives(201)
  const rule = {
    name: 'Job',
    target: { client_id: party.clientId },
    conditions: [{ claim: 'sub', op: 'eq', value: 'job' }],
    scopes: ['openid', 'files:read'],
    resources: [files],
  }
  const rules = `/api/v1/trusted-issuers/${String(body['id'])}/rules`
  await api.post(rules, here.token, rule).gives(201)
}

async function resource(): Promise<string> {
  const uri = `https://${crypto.randomUUID()}.files.test/mcp`
  const scopes = ['files:read', 'files:write'].map((name) => ({
    name,
    description: name,
    kind: 'read',
  }))
  const draft = { resource: uri, name: 'Files', scopes }
  await api.post('/api/v1/api-resources', here.token, draft).gives(201)
  return uri
}

const bySecret = (fields: Fields, of: RelyingParty = party, path = '/oauth/token') =>
  api.form(path, fields, {
    authorization: `Basic ${Buffer.from(`${of.clientId}:${of.secret}`).toString('base64')}`,
  })
const byWorkload = async (fields: Fields, path = '/oauth/token') =>
  api.form(path, {
    tenant_id: here.tenantId,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: await source.sign({
      sub: 'job',
      exp: Math.floor(Date.now() / 1000) + LEFT_SECS,
    }),
    ...fields,
  })
const tokenOf = ({ body }: Answer) => String(body['access_token'])

/** The redemption of a code that the person granted. */
async function granted(parameters: Fields, resources: readonly string[] = [], of = party) {
  const { url, verifier } = await of.journey(parameters)
  for (const uri of resources) url.searchParams.append('resource', uri)
  const code = callbackOf(await authorized(browser, human, url)).searchParams.get('code')!
  const redirect = { code, code_verifier: verifier, redirect_uri: CALLBACK }
  return { grant_type: 'authorization_code', ...redirect }
}
const ALL = { scope: 'openid profile vault:list' }
const FILES = { scope: 'openid files:read files:write' }

test.serial('a code gives the scopes of the rule, for as long as the assertion', async (t) => {
  const issued = await byWorkload(await granted(ALL))
  t.like(issued, { status: 200, body: { scope: 'openid' } }, JSON.stringify(issued.body))
  t.true(Number(issued.body['expires_in']) <= LEFT_SECS)
})

test.serial('a code gives the resources of the rule, with its scopes', async (t) => {
  const issued = await byWorkload(await granted(FILES, [files, others]))
  t.is(issued.body['scope'], 'openid files:read', JSON.stringify(issued.body))
  t.is(claimsOf(tokenOf(issued))['aud'], files)
  const code = await granted(FILES, [others])
  t.like(await byWorkload(code), { status: 400, body: { error: 'invalid_target' } })
  t.is((await bySecret(code)).status, 200, 'the code stays valid')
})

test.serial('authorization_details are beyond a rule, and the code stays valid', async (t) => {
  const authorization_details = JSON.stringify([{ type: 'payment', amount: '1.00' }])
  const code = await granted({ ...ALL, authorization_details })
  t.like(await byWorkload(code), BEYOND)
  t.is((await bySecret(code)).status, 200)
})

test.serial('a refresh gives the scopes of the rule, and no answer of another', async (t) => {
  const refresh = ({ body }: Answer) => ({
    grant_type: 'refresh_token',
    refresh_token: String(body['refresh_token']),
  })
  const first = await bySecret(await granted(ALL))
  const second = await bySecret(refresh(first))
  t.is(second.body['scope'], ALL.scope)
  t.like(await byWorkload(refresh(first)), { status: 400, body: { error: 'invalid_grant' } })
  t.is(tokenOf(await bySecret(refresh(first))), tokenOf(second), 'the answer was lost')
  const third = await byWorkload(refresh(second))
  t.is(third.body['scope'], 'openid', JSON.stringify(third.body))
  t.is(tokenOf(await byWorkload(refresh(second))), tokenOf(third))
})

test.serial('an exchange gives the scopes and resources of the rule', async (t) => {
  const exchange = (subject: Answer, more: Fields = {}) =>
    byWorkload({
      grant_type: EXCHANGE,
      subject_token: tokenOf(subject),
      subject_token_type: ACCESS,
      ...more,
    })
  const plain = await bySecret(await granted(ALL))
  const issued = await exchange(plain)
  t.is(issued.body['scope'], 'openid', JSON.stringify(issued.body))
  t.true(Number(issued.body['expires_in']) <= LEFT_SECS)
  t.is((await exchange(plain, { scope: 'vault:list' })).body['error'], 'invalid_scope')
  t.is((await exchange(plain, { resource: others })).body['error'], 'invalid_target')
  const atFiles = await bySecret(await granted(FILES, [files]))
  const kept = await exchange(atFiles)
  t.is(kept.body['scope'], 'openid files:read', JSON.stringify(kept.body))
  const atOthers = await bySecret(await granted(FILES, [others]))
  t.is((await exchange(atOthers)).body['error'], 'invalid_target')
  const own = await byWorkload({ grant_type: 'client_credentials', scope: 'files:read' })
  t.is(own.body['scope'], 'files:read', JSON.stringify(own.body))
  t.is((await exchange(own, { resource: others })).body['error'], 'invalid_target')
})

test.serial('a device that a person connects gives the scopes of the rule', async (t) => {
  const asked = await bySecret(ALL, party, '/oauth/device/code')
  const typed = { user_code: String(asked.body['user_code']) }
  const page = await browser.follow(
    await browser.submit(await browser.get('/oauth/device/verify'), typed),
  )
  await browser.submit(page, { action: 'approve' })
  const device_code = String(asked.body['device_code'])
  const issued = await byWorkload({ grant_type: DEVICE, device_code })
  t.is(issued.body['scope'], 'openid', JSON.stringify(issued.body))
})

test.serial('no grant gives a workload a token without the consent of a person', async (t) => {
  for (const grant_type of GRANT_TYPES) {
    const answer = await byWorkload({ grant_type, scope: 'vault:list', code: 'x' })
    t.not(answer.status, 200, `${grant_type}: ${JSON.stringify(answer.body)}`)
  }
  const wallet = { grant_type: PRE_AUTHORIZED, 'pre-authorized_code': 'x' }
  t.like(await byWorkload(wallet), BEYOND)
})

test.serial('introspection and revocation are for tokens of the application alone', async (t) => {
  const isActive = async (token: string) =>
    (await byWorkload({ token }, '/oauth/introspect')).body['active']
  const own = tokenOf(await bySecret(await granted(ALL)))
  const theirs = tokenOf(await bySecret(await granted(ALL, [], stranger), stranger))
  t.true(await isActive(own))
  t.false(await isActive(theirs))
  const refused = await byWorkload({ token: theirs }, '/oauth/revoke')
  t.like(refused, { status: 400, body: { error: 'invalid_grant' } })
  const shown = await bySecret({ token: theirs }, stranger, '/oauth/introspect')
  t.true(shown.body['active'])
  t.is((await byWorkload({ token: own }, '/oauth/revoke')).status, 200)
  t.false(await isActive(own))
})
