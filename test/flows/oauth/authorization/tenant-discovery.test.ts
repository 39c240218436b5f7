/** Discovery metadata of one tenant (RFC 9396 section 10). */
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { apiOf, type Json } from '../../../support/api.js'
import { onlyTenant } from '../../../support/identity/only-tenant.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedApi, sharedService } from '../../../support/service.js'

const DOCUMENTS = ['openid-configuration', 'oauth-authorization-server'] as const
const MEMBER = 'authorization_details_types_supported'
// The test sets the Host header, which a client cannot do over HTTP/2.
const { api } = await sharedApi('hosts', { transport: 'plain_http' })

const told = async (name: string, host?: string, at = api): Promise<Json> => {
  const headers: Record<string, string> = host === undefined ? {} : { host }
  const answer = await at.call('GET', `/.well-known/${name}`, { headers })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return answer.body
}
/** The first document with these types. Each process learns of them within a second. */
async function soon(
  t: ExecutionContext,
  host: string | undefined,
  expected: readonly string[],
  name: string = DOCUMENTS[0],
  at = api,
): Promise<Json> {
  let document: Json = {}
  for (let n = 0; n < 100; n += 1) {
    document = await told(name, host, at)
    if (JSON.stringify(document[MEMBER]) === JSON.stringify(expected)) break
    await sleep(100)
  }
  t.deepEqual(document[MEMBER], expected)
  return document
}

test('a tenant’s types of authorization_details are published at its host only', async (t) => {
  t.timeout(60_000)
  const [here, there] = [await api.workspace('Here'), await api.workspace('There')]
  const hostOf = ({ body }: typeof here) => `${String(body['tenant_slug'])}.svc.example`
  const application = async (types: readonly string[], of = here) => {
    const json = { name: 'A', redirect_uris: [], authorization_details_types: types }
    const made = await api.call('POST', '/api/v1/applications', { token: of.token, json })
    t.is(made.status, 201, JSON.stringify(made.body))
    return String(made.body['id'])
  }
  await soon(t, hostOf(here), [])
  const first = await application(['payment', 'account'])
  await application(['payment', 'https://schema.example/lease'])
  await application(['secret_of_there'], there)
  const all = ['account', 'https://schema.example/lease', 'payment']
  await soon(t, hostOf(here), all)
  await soon(t, `${hostOf(here).toUpperCase()}:8080`, all)
  await soon(t, hostOf(there), ['secret_of_there'])
  for (const name of DOCUMENTS) {
    const { [MEMBER]: _, ...rest } = await soon(t, hostOf(here), all, name)
    const common = await told(name)
    t.deepEqual(common[MEMBER], ['openid_credential'], 'of no application')
    t.deepEqual(
      { ...rest, [MEMBER]: common[MEMBER] },
      common,
      'the rest is the same everywhere, the issuer too',
    )
    for (const host of ['svc.example', 'unknown.svc.example', 'a.b.svc.example'])
      t.deepEqual(await told(name, host), common)
  }
  // A type that the application removes is not published any more.
  await api.delete(`/api/v1/applications/${first}`, here.token)
  await soon(t, hostOf(here), ['https://schema.example/lease', 'payment'])
})

test('with a single tenant they are published on every host', async (t) => {
  t.timeout(60_000)
  const single = await sharedService('single', { transport: 'plain_http' })
  const only = apiOf(single)
  t.teardown(() => only.end())
  const types = { authorizationDetailsTypes: ['payment'] }
  await relyingParty(single, await onlyTenant(single), types)
  for (const name of DOCUMENTS)
    for (const host of [undefined, 'svc.example', 'unknown.svc.example'])
      await soon(t, host, ['payment'], name, only)
})
