/** MCP servers of a tenant over HTTP. */
import test from 'ava'
import { fixtureOf, ownToken, present } from '../../../support/agents/delegation.js'
import type { Json } from '../../../support/api.js'
import { sql } from '../../../support/storage/sql.js'
import { egressHouse } from '../../../support/vault/egress.js'

const { api, running, upstream } = await egressHouse()
const SERVERS = '/api/v1/mcp-servers'
const server: Json = { slug: 'issues', name: 'Issues', url: `${upstream.origin}/mcp` }

const credential = async (token: string, hosts: readonly string[]) =>
  String(
    (
      await api
        .post('/api/v1/vault/credentials', token, {
          provider: 'upstream',
          credential_type: 'api_key',
          label: 'Key',
          auth_scheme: 'bearer',
          allowed_hosts: hosts,
          secret: 'the secret of the server',
        })
        .gives(201)
    ).body['id'],
  )

test('a server is registered, read, changed, listed and deleted', async (t) => {
  const { token } = await api.workspace()
  const made = await api.post(SERVERS, token, server).gives(201)
  const at = `${SERVERS}/${String(made.body['id'])}`
  t.is(made.headers['location'], at)
  t.like(made.body, { ...server, allow_private: false })
  t.false('credential_id' in made.body)
  t.deepEqual((await api.get(at, token).gives(200)).body, made.body)
  const changed = await api.patch(at, token, { name: 'Tracker' }).gives(200)
  t.like(changed.body, { ...server, name: 'Tracker' })
  t.is((await api.list(SERVERS, token)).rows.length, 1)
  await api.delete(at, token).gives(204)
  await api.get(at, token).gives(404)
})

test('slugs are unique in the tenant, and other tenants do not see the server', async (t) => {
  const [mine, theirs] = [await api.workspace(), await api.workspace()]
  const { body } = await api.post(SERVERS, mine.token, server).gives(201)
  await api.post(SERVERS, mine.token, server).gives(409)
  await api.post(SERVERS, theirs.token, server).gives(201)
  const at = `${SERVERS}/${String(body['id'])}`
  for (const refused of [
    api.get(at, theirs.token),
    api.patch(at, theirs.token, { name: 'Mine now' }),
    api.delete(at, theirs.token),
  ])
    await refused.gives(404)
  t.is((await api.list(SERVERS, theirs.token)).rows.length, 1)
  t.deepEqual((await api.get(at, mine.token).gives(200)).body, body)
})

test('slugs, URLs and names that cannot be used are refused', async (t) => {
  const { token } = await api.workspace()
  for (const slug of ['', 'A', 'a_b', '-a', 'a-', 'a/b', 'a'.repeat(64)])
    await api.post(SERVERS, token, { ...server, slug }).gives(400)
  for (const url of ['http://a.example/mcp', 'https://u:p@a.example/', 'https://a.example/#x', 'x'])
    await api.post(SERVERS, token, { ...server, url }).gives(400)
  t.is((await api.list(SERVERS, token)).rows.length, 0)
})

test('a credential of the tenant is set only for its hosts, and by who may grant it', async (t) => {
  const workspace = await api.workspace()
  const { token } = workspace
  const host = new URL(upstream.origin).hostname
  const [right, wrong] = [await credential(token, [host]), await credential(token, ['a.example'])]
  const { body } = await api.post(SERVERS, token, { ...server, credential_id: right }).gives(201)
  t.is(body['credential_id'], right)
  const at = `${SERVERS}/${String(body['id'])}`
  await api.patch(at, token, { credential_id: wrong }).gives(400)
  await api.patch(at, token, { url: 'https://a.example/mcp' }).gives(400)
  const foreign = await credential((await api.workspace()).token, [host])
  const refusals = []
  for (const credential_id of [foreign, crypto.randomUUID()])
    refusals.push((await api.patch(at, token, { credential_id }).gives(400)).body['detail'])
  t.is(refusals[0], refusals[1])

  const person = await present(api, fixtureOf(workspace))
  await sql(running)`
    update tenant_users set roles = '{admin}' where tenant_id = ${workspace.tenantId}`
  const manager = await ownToken(api, workspace, person, 'openid vault:manage')
  const other = { ...server, slug: 'other' }
  const refused = await api.post(SERVERS, manager, { ...other, credential_id: right })
  t.is(refused.status, 403)
  t.is(refused.body['error'], 'policy_denied')
  await api.patch(at, manager, { url: `${upstream.origin}/elsewhere` }).gives(403)
  await api.patch(at, manager, { name: 'A name alone' }).gives(200)
  await api.patch(at, token, { credential_id: null }).gives(200)
  await api.patch(at, manager, { url: `${upstream.origin}/elsewhere` }).gives(200)
})
