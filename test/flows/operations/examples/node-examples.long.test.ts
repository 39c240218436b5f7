/** The programs of docs/examples for Node, run unchanged with the package `@svc/client`. */
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { CREDENTIALS, egressHouse, SECRET, UPSTREAM_NAME } from '../../../support/vault/egress.js'
import { loopbackPort } from '../../../support/oauth/mcp-example.js'
import { installClientPackage } from '../../../support/service/client-package.js'
import { startProgram } from '../../../support/service/example-program.js'
import { deliveredTo, protectedApi } from '../../../support/service/example-api.js'

const client = await installClientPackage()
const root = new URL('../../../../../', import.meta.url).pathname
symlinkSync(join(root, 'node_modules/express'), join(client.folder, 'node_modules/express'))
const house = await egressHouse()
const { api, running, upstream } = house
test.after.always(async () => {
  client.remove()
})

test('the Express API accepts tokens for itself and authentic webhooks', async (t) => {
  const own = await protectedApi(api)
  const port = await loopbackPort()
  const program = startProgram(t, process.execPath, ['server.mjs'], {
    cwd: client.example('express'),
    env: { ...own.environment, PORT: String(port) },
  })
  await program.line('ready')
  const base = `http://127.0.0.1:${port}`
  await own.check(t, `${base}/me`)
  await deliveredTo(t, own, `${base}/webhooks`, () => program.line('event'))
})

test('the agent registers and calls an API with a credential that it does not see', async (t) => {
  const { token: operator, tenantId } = await api.workspace()
  const cwd = client.example('agent')
  const env = { BASE: running.baseUrl, TENANT_ID: tenantId }
  const registered = startProgram(t, process.execPath, ['agent.mjs', 'register'], { cwd, env })
  const agentId = (await registered.ended).trim()
  const made = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Key',
    auth_scheme: 'bearer',
    allowed_hosts: [UPSTREAM_NAME],
    secret: SECRET,
  })
  const id = String(made.body['id'])
  const grant = { grantee_type: 'agent', grantee_id: agentId }
  t.is((await api.post(`${CREDENTIALS}/${id}/grants`, operator, grant)).status, 201)
  const called = startProgram(t, process.execPath, ['agent.mjs', 'call'], {
    cwd,
    env: { ...env, CREDENTIAL_ID: id, API_URL: `${upstream.origin}/headers` },
  })
  const output = await called.ended
  t.regex(output, /^200 /)
  t.notRegex(output, new RegExp(SECRET.slice(0, 16)))
})
