/** The Go and Python programs of docs/examples, run unchanged where their language is installed. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { docsPage } from '../../../support/pages/docs-page.js'
import { loopbackPort } from '../../../support/oauth/mcp-example.js'
import { SAMPLES, type SampleRequest } from '../../../../gateway/apps/openapi/samples.js'
import { deliveredTo, protectedApi } from '../../../support/service/example-api.js'
import { startProgram } from '../../../support/service/example-program.js'
import { program, testWithProgram } from '../../../support/service/programs.js'
import { CREDENTIALS, egressHouse, SECRET, UPSTREAM_NAME } from '../../../support/vault/egress.js'

const house = await egressHouse()
const { api, running, upstream } = house
test.after.always(() => api.close())
const root = new URL('../../../../../', import.meta.url).pathname
const PYTHON = '/usr/bin/python3'

/** A copy of a folder of docs/examples, in which programs may write. */
function copyOf(t: ExecutionContext, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-example-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  cpSync(join(root, 'docs/examples', name), folder, { recursive: true })
  return folder
}

/** True if Debian's Python has these packages. */
function hasModules(...names: readonly string[]): boolean {
  if (program('python3') === undefined) return false
  try {
    execFileSync(PYTHON, ['-c', `import ${names.join(', ')}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function testWithModules(
  title: string,
  modules: readonly string[],
  body: (t: ExecutionContext) => Promise<void>,
): void {
  // Not while Go compiles, which takes all processors.
  if (hasModules(...modules)) test.serial(title, body)
  else test.skip(`${title} (skipped: Python lacks ${modules.join(', ')})`, () => undefined)
}

testWithProgram('go', 'the Go API accepts tokens for itself', async (t, go) => {
  const own = await protectedApi(api)
  const cwd = copyOf(t, 'go')
  execFileSync(go, ['vet', './...'], { cwd, stdio: 'pipe' })
  execFileSync(go, ['build', '-o', 'api', '.'], { cwd, stdio: 'pipe' })
  const port = await loopbackPort()
  const env = { ...own.environment, PORT: String(port) }
  const served = startProgram(t, join(cwd, 'api'), [], { cwd, env })
  await served.line('ready')
  await own.check(t, `http://127.0.0.1:${port}/me`)
})

testWithModules(
  'the FastAPI application accepts tokens for itself and authentic webhooks',
  ['fastapi', 'uvicorn', 'cryptography'],
  async (t) => {
    const own = await protectedApi(api)
    const port = await loopbackPort()
    const served = startProgram(
      t,
      PYTHON,
      ['-u', '-m', 'uvicorn', 'app:app', '--port', String(port), '--log-level', 'warning'],
      {
        cwd: copyOf(t, 'fastapi'),
        env: { ...own.environment, PYTHONPATH: copyOf(t, 'clients/python') },
      },
    )
    const base = `http://127.0.0.1:${port}`
    await listening(`${base}/openapi.json`)
    await own.check(t, `${base}/me`)
    await deliveredTo(t, own, `${base}/webhooks`, () => served.line('event'))
  },
)

/** Waits until a server answers. */
async function listening(url: string): Promise<void> {
  for (;;) {
    try {
      await fetch(url)
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

const CALLS = [
  ['sh', 'bash', ['-euo', 'pipefail', 'list-applications.sh']],
  ['py', 'python3', ['list-applications.py']],
  ['go', 'go', []],
] as const

for (const [ending, command, words] of CALLS)
  testWithProgram(command, `the call of the guide, in ${ending}`, async (t, path) => {
    const { body } = await api.workspace()
    const env = {
      BASE: running.baseUrl,
      CLIENT_ID: String(body['client_id']),
      CLIENT_SECRET: String(body['client_secret']),
    }
    const cwd = copyOf(t, 'calls')
    if (ending === 'go')
      execFileSync(path, ['build', '-o', 'call', 'list-applications.go'], { cwd })
    const program = ending === 'go' ? join(cwd, 'call') : path
    const said = await startProgram(t, program, words, { cwd, env }).ended
    t.is(said.trim().split('\n').length, 1)
  })

test('the call of the guide, in TypeScript', async (t) => {
  const { body } = await api.workspace()
  const page = docsPage(t, 'guides/operations/clients')
  const source = readFileSync(join(root, 'docs/examples/calls/list-applications.ts'), 'utf8')
  const said = await page.runSource('ts', source, {
    BASE: running.baseUrl,
    CLIENT_ID: String(body['client_id']),
    CLIENT_SECRET: String(body['client_secret']),
  })
  t.is(said.split('\n').length, 1)
})

test('the samples of the API reference run in each language', async (t) => {
  t.timeout(300_000)
  const { token, body } = await api.workspace()
  const env = {
    TOKEN: token,
    CLIENT_ID: String(body['client_id']),
    CLIENT_SECRET: String(body['client_secret']),
  }
  const json = 'application/json'
  const form = 'application/x-www-form-urlencoded'
  const requests: readonly SampleRequest[] = [
    {
      method: 'GET',
      url: '/api/v1/tenant-users?limit=1',
      access: 'bearer',
      type: undefined,
      example: undefined,
    },
    {
      method: 'POST',
      url: '/api/v1/applications',
      access: 'bearer',
      type: json,
      example: { name: "A 'quoted' \\ `name`" },
    },
    {
      method: 'POST',
      url: '/oauth/token',
      access: 'basic',
      type: form,
      example: { grant_type: 'client_credentials', scope: 'applications:read' },
    },
  ]
  const page = docsPage(t, 'guides/operations/clients')
  const folder = copyOf(t, 'calls')
  const go = program('go')
  for (const { url, ...request } of requests)
    for (const { title, write } of SAMPLES) {
      const source = write({ ...request, url: `${running.baseUrl}${url}` })
      let said = ''
      if (title === 'curl') said = await page.runSource('sh', source, env)
      if (title === 'TypeScript') said = await page.runSource('ts', source, env)
      if (title === 'Python')
        said = await startProgram(t, PYTHON, ['-c', source], { cwd: folder, env }).ended
      if (title === 'Go' && go === undefined) continue
      if (title === 'Go') {
        writeFileSync(join(folder, 'sample.go'), source)
        execFileSync(go!, ['build', '-o', 'sample', 'sample.go'], { cwd: folder, stdio: 'pipe' })
        said = await startProgram(t, join(folder, 'sample'), [], { cwd: folder, env }).ended
      }
      t.regex(
        said,
        title === 'curl' ? /"(?:id|access_token)":/ : /^20[01] .*"(?:id|access_token)":/s,
        title,
      )
    }
})

const REGISTER = `
import os
from svc_client import AgentKey, AgentSession, create_workspace, register_agent
base, tenant = os.environ["BASE"], os.environ["TENANT_ID"]
key = AgentKey.create()
with open("key.pem", "wb") as file:
    file.write(key.to_pem())
agent = register_agent(base, key, "Python agent", tenant)
me = AgentSession(base, key, tenant).request("GET", "/api/v1/agents/me")
assert me["id"] == agent["agent_id"], me
workspace = create_workspace(base, AgentKey.create(), "Another agent", "Python")
assert workspace["organization_id"]
print(me["id"])
`

const CALL = `
import os
from svc_client import AgentKey, AgentSession, Egress, ServiceRefusal
base, tenant = os.environ["BASE"], os.environ["TENANT_ID"]
with open("key.pem", "rb") as file:
    key = AgentKey.from_pem(file.read())
session = AgentSession(base, key, tenant, scope="vault:read")
egress = Egress(base, os.environ["CREDENTIAL_ID"], session.token)
answer = egress.request("GET", os.environ["API_URL"], {"Accept": "application/json"})
print("answer", answer.status, answer.body.decode())
try:
    egress.request("GET", "https://other.example.com/")
except ServiceRefusal as refusal:
    print("refused", refusal.status)
`

testWithModules('the Python client is an agent', ['cryptography'], async (t) => {
  const { token: operator, tenantId } = await api.workspace()
  const cwd = copyOf(t, 'clients/python')
  const env = { BASE: running.baseUrl, TENANT_ID: tenantId }
  const agentId = await startProgram(t, PYTHON, ['-c', REGISTER], { cwd, env }).ended
  const made = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Key',
    auth_scheme: 'bearer',
    allowed_hosts: [UPSTREAM_NAME],
    secret: SECRET,
  })
  t.is(made.status, 201)
  const id = String(made.body['id'])
  const grant = { grantee_type: 'agent', grantee_id: agentId.trim() }
  await api.post(`${CREDENTIALS}/${id}/grants`, operator, grant).gives(201)
  const more = { CREDENTIAL_ID: id, API_URL: `${upstream.origin}/headers` }
  const called = startProgram(t, PYTHON, ['-c', CALL], { cwd, env: { ...env, ...more } })
  const output = await called.ended
  t.regex(output, /answer 200 /)
  t.notRegex(output, new RegExp(SECRET.slice(0, 16)))
  t.regex(output, /refused 403/)
})
