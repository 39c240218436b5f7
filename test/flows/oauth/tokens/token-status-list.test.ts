/** Access tokens of an API resource in a status list (draft-ietf-oauth-status-list). */
import test, { type ExecutionContext } from 'ava'
import { getListFromStatusListJWT } from '@sd-jwt/jwt-status-list'
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import { allocateStatus, statusListUri } from '../../../../storage/oauth/status-lists.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { apiOf } from '../../../support/api.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { until } from '../../../support/service/watch.js'
import { sharedService } from '../../../support/service.js'

const GRANTS = ['authorization_code', 'refresh_token', 'client_credentials']
const running = await sharedService('plain')
const person = await bootstrapped(running)
const api = apiOf(running)

const issued = async (fields: Record<string, string>) =>
  String((await api.form('/oauth/token', fields).gives(200)).body['access_token'])

async function resourceOf(clientId: string, more: object = {}): Promise<string> {
  const resource = `https://${crypto.randomUUID()}.files.test/mcp`
  const token = await adminToken()
  const json = {
    resource,
    name: 'Files',
    scopes: [{ name: 'files:read', description: 'Read your files', kind: 'read' }],
    client_ids: [clientId],
    ...more,
  }
  await api.post('/api/v1/api-resources', token, json).gives(201)
  return resource
}

const adminToken = () =>
  issued({
    grant_type: 'client_credentials',
    client_id: person.clientId,
    client_secret: person.clientSecret,
    scope: 'applications:manage applications:read',
  })

type Entry = { readonly idx: number; readonly uri: string }

const entryOf = (token: string) =>
  (decodeJwt(token)['status'] as { status_list: Entry } | undefined)?.status_list

/** The list token, verified with the keys of its issuer. */
async function listAt(t: ExecutionContext, uri: string): Promise<string> {
  const answer = await fetch(uri, { headers: { accept: 'application/statuslist+jwt' } })
  t.is(answer.status, 200)
  t.is(answer.headers.get('content-type'), 'application/statuslist+jwt')
  const token = await answer.text()
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', running.baseUrl))
  const { payload } = await jwtVerify(token, keys, { issuer: running.baseUrl })
  t.is(payload.sub, uri)
  t.is(decodeProtectedHeader(token).typ, 'statuslist+jwt')
  t.is(payload['ttl'], 60)
  return token
}

const statusOf = async (t: ExecutionContext, { idx, uri }: Entry) =>
  getListFromStatusListJWT(await listAt(t, uri)).getStatus(idx)

test('a revoked token is invalid in the list, and others stay valid', async (t) => {
  const client = await relyingParty(running, person, { grantTypes: GRANTS })
  const resource = await resourceOf(client.clientId, { token_status_list: true })
  const credentials = { client_id: client.clientId, client_secret: client.secret }
  const issue = () => issued({ grant_type: 'client_credentials', resource, ...credentials })
  const [first, second] = [await issue(), await issue()]
  const [entry, other] = [entryOf(first)!, entryOf(second)!]
  t.is(entry.uri, other.uri)
  t.not(entry.idx, other.idx)
  t.is(await statusOf(t, entry), 0)
  await api.form('/oauth/revoke', { token: first, ...credentials }).gives(200)
  await until('the list shows it', async () => (await statusOf(t, entry)) === 1)
  t.is(await statusOf(t, other), 0)
})

test('the end of a grant ends its tokens in the list', async (t) => {
  const client = await relyingParty(running, person, { grantTypes: GRANTS })
  const resource = await resourceOf(client.clientId, { token_status_list: true })
  const { tokens } = await client.signedIn(person, {
    scope: 'openid offline_access files:read',
    resource,
  })
  const entry = entryOf(tokens.access_token)!
  t.is(await statusOf(t, entry), 0)
  const credentials = { client_id: client.clientId, client_secret: client.secret }
  await api.form('/oauth/revoke', { token: tokens.refresh_token!, ...credentials }).gives(200)
  await until('the list shows it', async () => (await statusOf(t, entry)) === 1)
})

test('a token of another resource has no entry', async (t) => {
  const client = await relyingParty(running, person, { grantTypes: GRANTS })
  const resource = await resourceOf(client.clientId)
  const credentials = { client_id: client.clientId, client_secret: client.secret }
  const token = await issued({ grant_type: 'client_credentials', resource, ...credentials })
  t.is(entryOf(token), undefined)
})

test('an entry is valid while its token is being issued, and invalid if its grant is never stored', async (t) => {
  const { tenantId } = person
  const { database } = running.db
  const allocate = (ageMs: number) => {
    const now = new Date(Date.now() - ageMs)
    const random = systemRandom({ ...systemClock, now: () => now })
    const tokenId = random.uuid()
    return database.tenant(tenantId, (tx) =>
      allocateStatus(tx, random, {
        tenantId,
        purpose: 'access_token',
        issuer: running.issuer,
        ref: tokenId,
        now,
        expiresAt: new Date(Date.now() + 600_000),
        query: {
          tenantId,
          sessionId: random.uuid(),
          agentIds: [],
          applicationId: null,
          tokenId,
          grantId: random.uuid(),
          personSub: null,
          delegationId: null,
          organizationId: null,
          resourceIds: null,
          clientId: person.clientId,
        },
      }),
    )
  }
  const [fresh, abandoned] = [await allocate(0), await allocate(120_000)]
  const uri = statusListUri(running.issuer, fresh.listId)
  t.is(abandoned.listId, fresh.listId)
  await until('the list shows it', async () => {
    return (await statusOf(t, { idx: abandoned.idx, uri })) === 1
  })
  t.is(await statusOf(t, { idx: fresh.idx, uri }), 0)
})
