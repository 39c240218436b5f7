/** Where the console is off. */
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { testService } from '../../../support/service.js'

test('with console.enabled = false there is no console and no client', async (t) => {
  const running = await testService({ environment: { SVC_CONSOLE__ENABLED: 'false' } })
  t.teardown(() => running.end())
  const api = apiOf(running)
  t.teardown(() => api.close())
  const browser = openBrowser(running)
  t.teardown(() => browser.close())
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
