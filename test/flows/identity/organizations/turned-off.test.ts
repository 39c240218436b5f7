/** A deployment without the console, whose operators alone create organizations, and which has a default tenant. */
import test from 'ava'
import { operatorOfDeployment } from '../../../support/oauth/operator.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sharedApi } from '../../../support/service.js'

const CONTROL = '/api/v1/control-plane/organizations'
const { api, running } = await sharedApi('single')

test('with console.enabled = false there is no console and no client', async (t) => {
  const browser = openBrowser(running)
  t.is((await browser.get('/console')).status, 404)
  const { tenantId } = await api.workspace()
  const query = new URLSearchParams({
    client_id: 'svc_console',
    tenant_id: tenantId,
    response_type: 'code',
    redirect_uri: `${running.issuer}/console/callback`,
    code_challenge: 'A'.repeat(43),
    code_challenge_method: 'S256',
  })
  t.is((await browser.get(`/oauth/authorize?${query.toString()}`)).status, 400)
  const { capabilities } = (await api.get('/api/v1/capabilities')).body
  t.false((capabilities as string[]).includes('console'))
  const token = await api.form('/oauth/token', {
    grant_type: 'refresh_token',
    refresh_token: 'none',
    client_id: 'svc_console',
  })
  t.is(token.body['error'], 'invalid_client')
})

test('organizations.enabled = false leaves creation to operators of the deployment', async (t) => {
  const workspace = await api.workspace()
  const { operator, organizationId } = workspace
  const json = { email: 'ada@harbour.test', role: 'member' }
  for (const answer of [
    await api.post(CONTROL, operator, { name: 'Second' }),
    await api.post(`${CONTROL}/${organizationId}/tenants`, operator, { name: 'Second' }),
    await api.post(`/api/v1/organizations/${organizationId}/members`, operator, json),
  ]) {
    t.like(answer, { status: 403, body: { error: 'policy_denied' } })
  }
  const deployment = await operatorOfDeployment(api)
  t.is(
    (await api.post(`/api/v1/organizations/${organizationId}/members`, deployment.token, json))
      .status,
    201,
  )
  const { body } = await api.get('/api/v1/capabilities')
  t.false((body['capabilities'] as string[]).includes('organizations'))
})

test('the start page of a deployment with a default tenant asks for no workspace', async (t) => {
  const text = await (await fetch(running.baseUrl)).text()
  t.true(text.includes('href="/auth/account"'))
  t.false(text.includes('tenant_slug'))
})
