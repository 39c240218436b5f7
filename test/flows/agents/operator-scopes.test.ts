/** No agent and no client asks a person for a scope of operators that it does not hold itself. */
import test from 'ava'
import { DEVICE } from '../../support/agents/delegation.js'
import { CIBA_GRANT } from '../../support/oauth/ciba.js'
import { loginAtControlPlane, operatorOfDeployment } from '../../support/oauth/operator.js'
import { CALLBACK, pathOf, relyingParty } from '../../support/oauth/relying-party.js'
import { sharedApi } from '../../support/service.js'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const OPERATORS = ['deployment:manage', 'signing_keys:manage', 'metrics:read']

const { api, running } = await sharedApi('plain')

test('an agent that registered itself at the control plane requests no scope of operators', async (t) => {
  const workspace = await api.workspace()
  const stranger = await api.register(workspace.controlPlane)
  const { token } = await loginAtControlPlane(api, { ...workspace, ...stranger })
  for (const mine of [token, workspace.token, workspace.operator])
    for (const scope of OPERATORS)
      for (const requested of [scope, `openid ${scope}`]) {
        const { status, body } = await api.post(DEVICE, mine, { scope: requested })
        t.deepEqual([status, body['error']], [400, 'invalid_scope'], JSON.stringify(body))
        t.true(String(body['detail']).includes(scope), String(body['detail']))
      }
  t.is((await api.post(DEVICE, token, { scope: 'openid vault:read' })).status, 200)
})

test('an agent of operators requests the scopes that it holds, and no others of operators', async (t) => {
  const { token } = await operatorOfDeployment(api)
  t.is((await api.post(DEVICE, token, { scope: 'openid deployment:manage' })).status, 200)
  const { status, body } = await api.post(DEVICE, token, { scope: 'signing_keys:manage' })
  t.deepEqual([status, body['error']], [400, 'invalid_scope'])
})

test('a client requests no scope of operators that it does not have', async (t) => {
  const workspace = await api.workspace()
  const grantTypes = ['authorization_code', DEVICE_GRANT, CIBA_GRANT]
  const party = await relyingParty(running, workspace, { grantTypes })
  const secret = Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')
  const send = (path: string, fields: Record<string, string>) =>
    api.form(path, fields, { authorization: `Basic ${secret}` })
  for (const operators of OPERATORS) {
    const scope = `openid ${operators}`
    const pushed = { response_type: 'code', redirect_uri: CALLBACK, scope }
    const code_challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    for (const [path, fields] of [
      ['/oauth/device/code', { scope }],
      ['/bc-authorize', { scope, login_hint: 'ada@example.com' }],
      ['/oauth/par', { ...pushed, code_challenge, code_challenge_method: 'S256' }],
    ] as const) {
      const { status, body } = await send(path, fields)
      t.deepEqual([status, body['error']], [400, 'invalid_scope'], path)
    }
    const { headers } = await api.get(pathOf((await party.journey({ scope })).url))
    const back = new URL(headers['location'] ?? 'none:')
    t.is(back.searchParams.get('error'), 'invalid_scope', back.href)
  }
})
