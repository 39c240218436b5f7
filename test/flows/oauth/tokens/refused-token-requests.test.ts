/** The log entry and the body of a refused token request, and what they must not contain. */
import test from 'ava'
import { bootstrapped } from '../../../support/identity/person.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { testService } from '../../../support/service.js'
import { until } from '../../../support/service/watch.js'

const LOGGED_WITHIN_MS = 5_000

type Line = Readonly<Record<string, unknown>>

test('a refused token request is logged with error, client, tenant and grant', async (t) => {
  const lines: Line[] = []
  const running = await testService({
    onLog: (line) => void lines.push(JSON.parse(line) as Line),
  })
  t.teardown(() => running.end())
  const { tenantId } = await bootstrapped(running)
  const { clientId, secret } = await relyingParty(
    running,
    { tenantId },
    {
      grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
    },
  )
  const ask = async (fields: Record<string, string>) => {
    const body = new URLSearchParams(fields)
    const answer = await fetch(`${running.baseUrl}/oauth/token`, { method: 'POST', body })
    const told = (await answer.json()) as Line
    const id = answer.headers.get('x-request-id')
    t.is(told['request_id'], id, 'the body has it too')
    const entry = () => lines.find((line) => line['request_id'] === id && line['msg'] === 'request')
    await until('the log entry', LOGGED_WITHIN_MS, () => entry() !== undefined)
    const access = entry()!
    t.like(access, { status: answer.status, error: told['error'], level: 40 })
    const {
      error,
      client_id: clientId = null,
      tenant_id: tenantOfClient = null,
      grant_type: grant = null,
    } = access
    return { error, clientId, tenantId: tenantOfClient, grant }
  }
  const client = { client_id: clientId, client_secret: secret }
  const planted = 'a-code-never-issued-0123456789'
  t.like(await ask({ ...client, grant_type: 'authorization_code', code: planted }), {
    error: 'invalid_grant',
    clientId,
    tenantId,
    grant: 'authorization_code',
  })
  t.like(await ask({ ...client, grant_type: 'client_credentials', scope: 'fly' }), {
    error: 'invalid_scope',
    clientId,
    tenantId,
    grant: 'client_credentials',
  })
  // A client may name its own tenant only.
  const service = { ...client, grant_type: 'client_credentials', scope: 'openid' }
  t.like(await ask({ ...service, tenant_id: crypto.randomUUID() }), { error: 'invalid_request' })
  t.like(await ask({ ...service, tenant_id: 'another' }), { error: 'invalid_request' })
  // Without client authentication the tenant is not logged, and an id that is not a UUID is not repeated.
  const wrong = { ...client, client_secret: 'a-wrong-secret-0123456789' }
  const grant = { grant_type: 'refresh_token', refresh_token: planted }
  t.like(await ask({ ...wrong, ...grant }), {
    error: 'invalid_client',
    clientId,
    tenantId: null,
    grant: 'refresh_token',
  })
  t.like(await ask({ ...wrong, ...grant, client_id: 'no id\nat all' }), { clientId: null })
  t.like(await ask({ ...client, grant_type: 'x\ny' }), {
    error: 'unsupported_grant_type',
    grant: null,
  })
  const log = JSON.stringify(lines)
  for (const text of [secret, planted, wrong.client_secret]) t.false(log.includes(text))
})
