/** A misspelt member of a body is ignored, and a sandbox tenant's response names it. */
import test from 'ava'
import { callerOf } from '../../support/agents/journey.js'
import { sharedApi } from '../../support/service.js'

const { api, running } = await sharedApi('plain')
const http = callerOf(running.baseUrl)

test('a sandbox tenant names unknown members, even in refusals', async (t) => {
  const { token } = await api.workspace('Misspelt')
  const create = (body: Record<string, unknown>) =>
    http.post('/api/v1/applications', body, { authorization: `Bearer ${token}` })
  const good = { name: 'App', redirect_uris: ['https://app.example/cb'] }

  const silent = await create(good)
  t.is(silent.status, 201, silent.text)
  t.is(silent.headers.get('svc-warnings'), null)

  const made = await create({ ...good, redirect_urls: ['x'], 'a"b': 1 })
  t.is(made.status, 201, made.text)
  t.is(
    made.headers.get('svc-warnings'),
    'unknown-member;pointer="#/redirect_urls", unknown-member;pointer="#/a?b"',
  )
  const refused = await create({ ...good, name: 7, redirect_urls: ['x'] })
  t.is(refused.status, 400)
  t.is(refused.headers.get('svc-warnings'), 'unknown-member;pointer="#/redirect_urls"')
})

test('other tenants name no unknown members', async (t) => {
  const { body } = await api.workspace('Control')
  const authorization = `Bearer ${String(body['control_plane_access_token'])}`
  const { status, headers } = await http.post(
    '/api/v1/organizations',
    { name: 'Another', surprise: true },
    { authorization },
  )
  t.true(status < 500)
  t.is(headers.get('svc-warnings'), null)
})
