/**
 * Managing applications: the audit entries, and the scopes of an application's own token
 * that is requested without `scope`.
 */
import test from 'ava'
import { known } from '../../../support/fleet/through.js'
import type { Json, Workspace } from '../../../support/api.js'
import { sharedApi } from '../../../support/service.js'

const PATH = '/api/v1/applications'
const { api } = await sharedApi('plain')

const put = (at: string, token: string, json: Json) => api.put(at, token, json)

/** The scopes of the application's own token, in order. By default without `scope`. */
async function ownScopes(app: Json, fields: Record<string, string> = {}) {
  const answer = await api.form('/oauth/token', {
    grant_type: 'client_credentials',
    client_id: String(app['client_id']),
    client_secret: String(app['client_secret']),
    ...fields,
  })
  return answer.status === 200 ? answer.body['scope'] : answer.body['error']
}

/** Audit records of applications in the tenant, the oldest first. */
async function records({ token }: Workspace) {
  const { rows } = await api.list('/api/v1/audit-events?limit=200', token)
  return rows
    .filter(({ type }) => String(type).startsWith('admin.application.'))
    .toReversed()
    .map(({ type, resource, subject, data, outcome }) => ({
      type,
      resource,
      subject,
      data,
      outcome,
    }))
}

test('create, replace, rotate-secret and delete are in the audit log, without secrets', async (t) => {
  const workspace = await api.workspace()
  const { token, agentId } = workspace
  const draft = {
    name: 'CheckoutFixture',
    grant_types: ['client_credentials'],
    scopes: ['users:read'],
  }
  const idempotency = { 'idempotency-key': crypto.randomUUID() }
  const created = await api.call('POST', PATH, { token, json: draft, headers: idempotency })
  t.is(created.status, 201)
  // A replay is not recorded again.
  await api.call('POST', PATH, { token, json: draft, headers: idempotency }).gives(201)
  const at = `${PATH}/${String(created.body['id'])}`
  const scopes = ['users:read', 'users:manage']
  await put(at, token, {
    ...draft,
    name: 'CheckoutFixture 2',
    scopes,
    status: 'disabled',
  }).gives(200)
  await api.post(`${at}/rotate-secret`, token, { overlap_secs: 60 }).gives(200)
  // A refused request changes nothing and is not recorded.
  t.is((await put(at, token, { ...draft, scopes: ['fly'] })).status, 400)
  const stranger = await api.workspace()
  t.is((await api.delete(at, stranger.token)).status, 404)
  t.is((await api.delete(at, token)).status, 204)
  t.is((await api.delete(at, token)).status, 404)

  const resource = { type: 'application', id: created.body['id'] }
  const by = { resource, subject: { sub: agentId, subject_type: 'agent' }, outcome: 'success' }
  const powers = {
    name: 'CheckoutFixture',
    status: 'active',
    client_type: 'confidential',
    grant_types: ['client_credentials'],
    scopes: ['users:read'],
  }
  t.deepEqual(await records(workspace), [
    { type: 'admin.application.created', ...by, data: powers },
    {
      type: 'admin.application.updated',
      ...by,
      data: {
        ...powers,
        changed: ['name', 'status', 'scopes'],
        name: 'CheckoutFixture 2',
        status: 'disabled',
        scopes,
      },
    },
    { type: 'admin.application.secret_rotated', ...by, data: { overlap_secs: 60 } },
    { type: 'admin.application.deleted', ...by, data: { name: 'CheckoutFixture 2' } },
  ])
  t.deepEqual(await records(stranger), [])
  const exported = await api.get('/api/v1/audit-events/verify', token)
  t.is(exported.body['valid'], true)
})

test('client_credentials without scope has no management, vault or user scopes', async (t) => {
  const workspace = await api.workspace()
  const starter = workspace.body
  t.is(await ownScopes(starter), 'org:read applications:read users:read webhooks:read')
  // Scopes that are requested by name are granted as before.
  for (const scope of ['users:manage', 'vault:read openid'])
    t.is(await ownScopes(starter, { scope }), scope)

  const draft = { name: 'Worker', grant_types: ['client_credentials'] }
  const scopes = ['openid', 'vault:read', 'users:read', 'users:manage']
  const { body: made } = await api.post(PATH, workspace.token, { ...draft, scopes })
  t.false('default_scopes' in made)
  t.is(await ownScopes(made), 'users:read')
  const { body: bare } = await api.post(PATH, workspace.token, { ...draft, scopes: ['openid'] })
  t.is(await ownScopes(bare), '')
})

test('a request without scope gets exactly default_scopes', async (t) => {
  const { token } = await api.workspace()
  const draft = {
    name: 'Vault worker',
    grant_types: ['client_credentials'],
    scopes: ['vault:read', 'users:read', 'users:manage'],
  }
  const created = await api.post(PATH, token, { ...draft, default_scopes: ['vault:read'] })
  t.is(created.status, 201)
  t.deepEqual(created.body['default_scopes'], ['vault:read'])
  t.is(await ownScopes(created.body), 'vault:read')
  t.is(await ownScopes(created.body, { scope: 'users:read' }), 'users:read')
  const at = `${PATH}/${String(created.body['id'])}`
  t.deepEqual((await api.get(at, token)).body['default_scopes'], ['vault:read'])

  const app = { ...created.body }
  t.is((await put(at, token, { ...draft, default_scopes: [] })).status, 200)
  const becomes = (scopes: string) =>
    known(`default scopes ${scopes}`, async () => (await ownScopes(app)) === scopes)
  await becomes('')
  t.is((await put(at, token, { ...draft, default_scopes: draft.scopes })).status, 200)
  await becomes(draft.scopes.join(' '))
  // A replacement without the member restores the default of the service.
  t.false('default_scopes' in (await put(at, token, draft)).body)
  await becomes('users:read')

  const beyond = await put(at, token, { ...draft, default_scopes: ['vault:read', 'vault:list'] })
  t.like(beyond, { status: 400, body: { error: 'invalid_scope' } })
  t.like((beyond.body['errors'] as Json[])[0], { pointer: '#/default_scopes/1' })
})
