/** A tenant's host serves only the applications of that tenant. */
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { CIBA_GRANT } from '../../../support/oauth/ciba.js'
import { CALLBACK, relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

test("an application is refused at another tenant's host, and served at all other hosts", async (t) => {
  const running = await sharedService('hosts', { transport: 'plain_http' })
  const api = apiOf(running)
  t.teardown(() => api.end())
  const [workspace, other] = [await api.workspace('Here'), await api.workspace('There')]
  const { clientId, secret } = await relyingParty(running, workspace, {
    grantTypes: ['authorization_code', 'client_credentials', DEVICE_GRANT, CIBA_GRANT],
  })
  const [own, foreign] = [workspace, other].map(
    ({ body }) => `${String(body['tenant_slug'])}.svc.example`,
  ) as [string, string]
  const authorization = `Basic ${btoa(`${clientId}:${secret}`)}`
  const request = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: CALLBACK,
    scope: 'openid',
    prompt: 'none',
  }
  const authorize = `/oauth/authorize?${new URLSearchParams(request).toString()}`
  const posted = (path: string, fields: Record<string, string>) => (host: Record<string, string>) =>
    api.form(path, fields, { authorization, ...host })
  const pushed = await api.form('/oauth/par', request, { authorization })
  const request_uri = String(pushed.body['request_uri'])
  const open = new URLSearchParams({ client_id: clientId, request_uri })

  for (const [name, served, error, ask] of [
    ['authorize', 302, 'invalid_client', (headers) => api.call('GET', authorize, { headers })],
    ['a form', 302, 'invalid_client', posted('/oauth/authorize', request)],
    [
      'a pushed request',
      302,
      'invalid_client',
      (headers) => api.call('GET', `/oauth/authorize?${open.toString()}`, { headers }),
    ],
    ['par', 201, 'invalid_request', posted('/oauth/par', request)],
    ['device', 200, 'invalid_request', posted('/oauth/device/code', { scope: 'openid' })],
    [
      'ciba',
      200,
      'invalid_request',
      posted('/bc-authorize', { scope: 'openid', login_hint: 'ada@harbour.works' }),
    ],
  ] as readonly [
    string,
    number,
    string,
    (headers: Record<string, string>) => ReturnType<typeof api.form>,
  ][]) {
    for (const host of [own, `${own}:8443`, 'svc.example', 'unknown.svc.example', undefined]) {
      const { status, body } = await ask(host === undefined ? {} : { host })
      t.is(status, served, `${name} at ${host ?? 'the address'}: ${JSON.stringify(body)}`)
    }
    for (const host of [foreign, foreign.toUpperCase()]) {
      const { status, headers, body } = await ask({ host })
      t.is(status, 400, `${name} at ${host}`)
      t.like(
        body,
        { error, error_description: 'the application does not belong to this tenant' },
        name,
      )
      t.is(headers['location'], undefined, name)
    }
  }
  // The endpoints of the issuer serve all tenants.
  const fields = { grant_type: 'client_credentials' }
  t.is((await posted('/oauth/token', fields)({ host: foreign })).status, 200)
})
