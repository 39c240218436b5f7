/** GET /metrics with a token of an application created by `svc operator app create`. */
import test from 'ava'
import { Command } from 'commander'
import { openDatabaseTools } from '../../../runtime/cli/key-tools.js'
import { operatorCommand } from '../../../runtime/cli/operator.js'
import type { Json } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { sharedApi } from '../../support/service.js'

const { api, running } = await sharedApi('plain')

/** Runs `svc operator app create ...` while the service is running. */
async function createApp(...words: string[]) {
  const outcome = { out: '', err: '', code: 0 }
  const program = new Command().exitOverride()
  operatorCommand(program, {
    open: () => openDatabaseTools({ environment: { DATABASE_URL: running.db.url }, cwd: '/' }),
    out: (text) => (outcome.out += text),
    err: (text) => (outcome.err += text),
    exitWith: (code) => (outcome.code = code),
  })
  await program.parseAsync(['node', 'svc', 'operator', 'app', 'create', ...words])
  return outcome
}

async function tokenOf(app: Json, more: Record<string, string> = {}) {
  const answer = await api.form('/oauth/token', {
    grant_type: 'client_credentials',
    client_id: String(app['client_id']),
    client_secret: String(app['client_secret']),
    ...more,
  })
  return String(answer.body['access_token'] ?? answer.body['error'])
}

test('an operator creates an application, and its token reads the metrics', async (t) => {
  const { out, err, code } = await createApp(
    '--name',
    'Collector',
    '--scope',
    'metrics:read',
    '--json',
  )
  t.is(code, 0, err)
  const app = JSON.parse(out) as Json
  t.deepEqual(Object.keys(app), ['client_id', 'client_secret', 'scopes'])
  t.deepEqual(app['scopes'], ['metrics:read'])

  const [row] = await sql<{ controlPlane: boolean; name: string }>(running)`
    select t.control_plane as "controlPlane", a.name from applications a
    join tenants t on t.id = a.tenant_id where a.id = ${app['client_id']}`
  t.deepEqual(row, { controlPlane: true, name: 'Collector' })
  const audit = await sql<{ type: string }>(running)`
    select type from audit_events where resource ->> 'id' = ${app['client_id']}`
  t.deepEqual(audit, [{ type: 'admin.application.created' }])

  const token = await tokenOf(app)
  const read = await fetch(`${running.baseUrl}/metrics`, {
    headers: { authorization: `Bearer ${token}` },
  })
  t.is(read.status, 200)
  t.regex(await read.text(), /svc_http_requests_total\{method="POST",route="\/oauth\/token"/)
  // The token allows nothing else.
  t.is((await api.get('/api/v1/applications', token)).status, 403)
})

test('without the scope or a token the metrics are refused', async (t) => {
  const bare = await api.get('/metrics').gives(401)
  t.regex(bare.headers['www-authenticate'] ?? '', /^Bearer .*scope="metrics:read"$/)
  const workspace = await api.workspace()
  for (const token of [
    workspace.token,
    workspace.operator,
    await tokenOf(workspace.body, { scope: 'users:read' }),
  ]) {
    const refused = await api.get('/metrics', token).gives(403)
    if (token === workspace.operator) {
      t.like(refused.body, { error: 'forbidden', reason: 'control_plane_token' })
      continue
    }
    t.is(refused.body['error'], 'insufficient_scope')
    t.regex(refused.headers['www-authenticate'] ?? '', /scope="metrics:read"/)
  }
  // A tenant cannot grant the scope to itself.
  const draft = { name: 'M', grant_types: ['client_credentials'], scopes: ['metrics:read'] }
  t.is((await api.post('/api/v1/applications', workspace.token, draft)).status, 403)
})

test('the command refuses other scopes and names', async (t) => {
  const beyond = await createApp('--name', 'X', '--scope', 'metrics:read users:manage', '--json')
  t.is(beyond.code, 1)
  t.regex(beyond.err, /users:manage is not a scope/)
  t.is((await createApp('--name', 'a\u0007b', '--scope', 'metrics:read')).code, 1)
  const plain = await createApp('--name', 'Collector 2', '--scope', 'metrics:read')
  t.regex(plain.out, /client_secret {2}svcs_/)
})
