/** Write scopes of a delegation are approved by a passkey that signs the approval itself. */
import { createHash } from 'node:crypto'
import { verifyAuthenticationResponse } from '@simplewebauthn/server'
import test from 'ava'
import { apiOf, type Workspace } from '../../support/api.js'
import {
  type Asked,
  ask,
  decide,
  newFixture,
  ownToken,
  type Person,
  poll,
  present,
} from '../../support/agents/delegation.js'
import { type SoftAuthenticator, softAuthenticator } from '../../support/identity/authenticator.js'
import { ADD, optionsOf } from '../../support/identity/passkeys.js'
import { dataIn } from '../../support/pages/browser.js'
import { RACERS } from '../../support/racers.js'
import { sharedService } from '../../support/service.js'
import { sql } from '../../support/storage/sql.js'

const api = apiOf(await sharedService('people'))
const WRITES = { scope: 'openid vault:list vault:sign' }

/** A person with an authenticator app and a passkey. */
async function withKey(here: Workspace): Promise<Person & { readonly key: SoftAuthenticator }> {
  const person = await present(api, await newFixture(api, here))
  const page = await person.browser.get(`${ADD}/new`)
  const key = softAuthenticator({ origin: api.at.baseUrl })
  const credential = key.create(await optionsOf(person.browser, page, ADD))
  await person.browser.submit(page, { credential, name: 'Key' }, ADD).gives(303)
  return { ...person, key }
}

const pathOf = ({ userCode }: Asked) => `/device/delegation/${userCode}`

/** The page of a request, with the options of its assertion. */
async function asked({ browser }: Person, request: Asked) {
  const page = await browser.get(pathOf(request)).gives(200)
  const [options] = dataIn(page.html, 'request')
  return { page, options: JSON.parse(options ?? 'null') as { challenge: string } | null }
}

const isPending = async (here: Workspace, request: Asked) => {
  const { body } = await poll(api, here.token, request)
  return body['error'] === 'authorization_pending' || body['error'] === 'slow_down'
}

test('a passkey signs the approval of write scopes, and the record verifies later', async (t) => {
  const here = await api.workspace()
  const person = await withKey(here)
  const purpose = 'Signs the releases'
  const request = await ask(api, here.token, { ...WRITES, purpose })
  const { page, options } = await asked(person, request)
  const policy = page.headers['content-security-policy']!
  t.regex(policy, /script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'/)
  t.regex(page.html, /data-passkey-missing/, 'without script the page says what is missing')
  const approve = `${pathOf(request)}/approve`
  const { fields } = page.forms.find(({ action }) => action === approve)!
  const send = (credential: string) => person.browser.post(approve, { ...fields, credential })
  const credential = person.key.get(options!)
  const answers = await Promise.all(Array.from({ length: RACERS }, () => send(credential)))
  t.true(answers.some(({ status }) => status === 303))
  const shown = await person.browser.get(pathOf(request)).gives(200)
  t.regex(shown.html, /data-decision="approved"/)
  await poll(api, here.token, request).gives(200)

  const token = await ownToken(api, here, person)
  const { rows } = await api.list('/api/v1/delegations', token)
  t.is(rows.length, 1)
  const read = await api.get(`/api/v1/delegations/${String(rows[0]!['id'])}`, token)
  const approval = read.body['approval'] as Record<string, string>
  const statement = JSON.parse(approval['statement']!) as Record<string, unknown>
  t.deepEqual(statement, {
    agent_id: here.agentId,
    audience: api.at.issuer,
    delegation_id: rows[0]!['id'],
    match_value: request.userCode,
    purpose,
    scopes: ['openid', 'vault:list', 'vault:sign'],
    subject: rows[0]!['subject'],
  })
  const challenge = createHash('sha256').update(approval['statement']!).digest('base64url')
  t.is(options!.challenge, challenge)
  const id = approval['credential_id']!
  t.is(id, person.key.credentialId)
  const { verified } = await verifyAuthenticationResponse({
    response: {
      id,
      rawId: id,
      type: 'public-key',
      clientExtensionResults: {},
      response: {
        clientDataJSON: approval['client_data_json']!,
        authenticatorData: approval['authenticator_data']!,
        signature: approval['signature']!,
      },
    },
    expectedChallenge: challenge,
    expectedOrigin: api.at.baseUrl,
    expectedRPID: 'localhost',
    requireUserVerification: true,
    credential: {
      id,
      publicKey: new Uint8Array(Buffer.from(approval['public_key']!, 'base64url')),
      counter: 0,
    },
  })
  t.true(verified)
})

test('without an assertion, with a foreign one or one over another approval the request stays pending', async (t) => {
  const here = await api.workspace()
  const person = await withKey(here)
  const other = await withKey(here)
  const request = await ask(api, here.token, WRITES)
  const another = await ask(api, here.token, WRITES)
  const { page, options } = await asked(person, request)
  const elsewhere = await asked(person, another)
  const approve = `${pathOf(request)}/approve`
  const { key } = person
  // Each with a counter above the last one, so that the counter refuses the last response alone.
  const refusals = [
    () => '',
    () => '{}',
    () => key.get(options!, { userVerified: false }),
    () => key.get(options!, { userPresent: false }),
    () => key.get(options!, { origin: 'https://evil.example' }),
    () => key.get(options!, { challenge: 'A'.repeat(43) }),
    () => key.get(elsewhere.options!),
    () => other.key.get(options!),
    () => key.get(options!, { counter: 1 }),
  ]
  await person.browser
    .submit(
      elsewhere.page,
      { credential: key.get(elsewhere.options!) },
      `${pathOf(another)}/approve`,
    )
    .gives(303)
  for (const [at, refusal] of refusals.entries()) {
    const refused = await person.browser.submit(page, { credential: refusal() }, approve)
    t.is(refused.status, 403, `${at}`)
    t.regex(refused.html, /could not be used/)
  }
  t.true(await isPending(here, request))
  const denied = await person.browser.submit(page, {}, `${pathOf(request)}/deny`)
  t.is(denied.status, 303, 'denying needs no passkey')
})

test('reading needs no passkey, nor does a person without one', async (t) => {
  const here = await api.workspace()
  const person = await withKey(here)
  const reads = await ask(api, here.token, { scope: 'openid vault:list vault:read' })
  t.is((await asked(person, reads)).options, null)
  t.is((await decide(person, reads)).status, 303)

  const bare = await present(api, await newFixture(api, here))
  const request = await ask(api, here.token, WRITES)
  t.is((await asked(bare, request)).options, null)
  t.is((await decide(bare, request)).status, 303)
  const token = await ownToken(api, here, bare)
  const { rows } = await api.list('/api/v1/delegations', token)
  const read = await api.get(`/api/v1/delegations/${String(rows[0]!['id'])}`, token)
  t.is(read.body['approval'], null)
})

test('a passkey that never proved user verification does not sign approvals', async (t) => {
  const here = await api.workspace()
  const person = await withKey(here)
  await sql(api.at)`
    update passkeys set user_verified = false
    where credential_id = ${Buffer.from(person.key.credentialId, 'base64url')}`
  const request = await ask(api, here.token, WRITES)
  t.is((await asked(person, request)).options, null)
})
