/** The agent client: command line, and the examples of docs/guides/agents/agent-client.md. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { Command } from 'commander'
import { agentCommand } from '../../../runtime/cli/agent/agent.js'
import { agentSession } from '../../../runtime/clients/client/session.js'
import { createWorkspace } from '../../../runtime/clients/client/registration.js'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { httpClient } from '../../../runtime/clients/client/http.js'
import { readIdentity, writeIdentity } from '../../../runtime/clients/client/identity-file.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { claimsOf, type Json, type Workspace } from '../../support/api.js'
import { decide, fixtureOf, type Person, present } from '../../support/agents/delegation.js'
import { docsPage, testCommands } from '../../support/pages/docs-page.js'
import { sharedApi } from '../../support/service.js'

const MAIN = fileURLToPath(new URL('../../../runtime/main.js', import.meta.url))
const { api, running } = await sharedApi('clients', { transport: 'plain_http' })

function folderOf(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-agent-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

type Outcome = { out: string; err: string; code: number }
type Cli = ((...words: string[]) => Promise<Outcome>) & { file: string; begun: Outcome[] }

/** `svc agent` with its own identity file. */
function cliOf(t: ExecutionContext, clock = systemClock): Cli {
  const file = join(folderOf(t), 'kept', 'agent.json')
  const begun: Outcome[] = []
  const run = async (...words: string[]) => {
    const outcome: Outcome = { out: '', err: '', code: 0 }
    begun.push(outcome)
    const program = new Command().exitOverride()
    agentCommand(program, {
      baseUrl: () => running.baseUrl,
      file,
      out: (text) => void (outcome.out += text),
      err: (text) => void (outcome.err += text),
      terminal: false,
      exitWith: (code) => (outcome.code = code),
      clock,
      signal: new AbortController().signal,
    })
    await program.parseAsync(['node', 'svc', 'agent', ...words])
    return outcome
  }
  return Object.assign(run, { file, begun })
}

const json = ({ out }: Outcome) => JSON.parse(out) as Json

/** A person of the new workspace. */
async function personOf(body: Json): Promise<Person> {
  const person = await present(api, fixtureOf({ body } as Workspace))
  return person
}

/** Waits until a command prints a matching line. */
async function printed(outcome: () => Outcome | undefined, pattern: RegExp): Promise<string> {
  for (;;) {
    const found = pattern.exec(outcome()?.out ?? '')
    if (found) return found[1] ?? found[0]
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('an agent creates a workspace, gets a delegation, and renews its tokens', async (t) => {
  let aheadSecs = 0
  const clock = { ...systemClock, nowSecs: () => systemClock.nowSecs() + aheadSecs }
  const cli = cliOf(t, clock)
  const made = await cli('workspace', 'create', '--organization', 'Client Works', '--json')
  t.is(made.code, 0, made.err)
  const workspace = json(made)
  t.is(statSync(cli.file).mode & 0o777, 0o600)
  t.is(statSync(join(cli.file, '..')).mode & 0o777, 0o700)

  const me = json(await cli('whoami', '--json'))
  t.is(me['id'], (workspace['agent'] as Json)['id'])
  const token = await cli('token')
  t.is((await cli('token')).out, token.out, 'a valid token is kept')
  t.is(claimsOf(token.out.trim())['tenant_id'], workspace['tenant_id'])
  const narrow = json(await cli('token', '--scope', 'vault:list', '--json'))
  t.is(narrow['scope'], 'vault:list')
  aheadSecs += 280
  t.not((await cli('token')).out, token.out, 'an expiring token is renewed')

  const person = await personOf(workspace)
  const asking = cli('delegate', '--scope', 'openid vault:list', '--json')
  const userCode = await printed(() => cli.begun.at(-1), /"user_code":"([A-Z-]+)"/)
  await decide(person, { userCode: userCode.replace('-', '') })
  const result = await asking
  t.is(result.code, 0, result.err)
  const [pending, approved] = result.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Json)
  t.like(pending, { status: 'pending' })
  t.like(approved, { status: 'approved', scope: 'openid vault:list' })

  const delegated = json(await cli('token', '--delegation', '--json'))
  t.is(delegated['delegation_id'], approved?.['delegation_id'])
  const list = '/api/v1/vault/credentials'
  t.is((await api.get(list, String(delegated['access_token']))).status, 200)
  // One of several concurrent scripts renews the refresh token, the others get its result.
  aheadSecs += 280
  const renewed = await Promise.all(Array.from({ length: 4 }, () => cli('token', '--delegation')))
  t.deepEqual(new Set(renewed.map(({ code }) => code)), new Set([0]))
  t.is(new Set(renewed.map(({ out }) => out)).size, 1)
  t.not(renewed[0]?.out.trim(), delegated['access_token'])
  t.is((await api.get(list, renewed[0]!.out.trim())).status, 200)
  const byId = await cli('token', '--delegation', String(approved?.['delegation_id']))
  t.is(byId.out, String(renewed[0]?.out))
  t.regex((await cli('token', '--delegation', 'another')).err, /no such delegation/)

  // After a revocation the next renewal fails and the file forgets the delegation.
  const refresh_token = String((await readIdentity(cli.file))?.delegations[0]?.refresh_token)
  t.is(
    (await api.form('/oauth/revoke', { token: refresh_token, client_id: String(me['id']) })).status,
    200,
  )
  aheadSecs += 280
  const ended = await cli('token', '--delegation', '--json')
  t.is(ended.code, 1)
  t.like(JSON.parse(ended.err), { error: 'invalid_grant', status: 400 })
  t.deepEqual((await readIdentity(cli.file))?.delegations, [])
})

test('delegate in the control plane fails, because no person can approve there', async (t) => {
  const cli = cliOf(t)
  t.is((await cli('register')).code, 0)
  const result = await cli('delegate', '--scope', 'openid', '--json')
  t.is(result.code, 1)
  t.is(result.out, '')
  t.regex(String((JSON.parse(result.err) as Json)['detail']), /--tenant-id/)
})

test('a revoked token is not printed', async (t) => {
  const { tenantId, token: owner } = await api.workspace()
  const cli = cliOf(t)
  const { code, err } = await cli('register', '--tenant-id', tenantId)
  t.is(code, 0, err)
  const before = (await cli('token')).out.trim()
  const agent = `/api/v1/agents/${String(json(await cli('whoami', '--json'))['id'])}`
  t.is((await api.post(`${agent}/suspend`, owner)).status, 200)
  const suspended = await cli('token', '--json')
  t.is(suspended.code, 1)
  t.is(suspended.out, '')
  t.is((JSON.parse(suspended.err) as Json)['error'], 'bad_request')
  t.is((await api.post(`${agent}/activate`, owner)).status, 200)
  const after = (await cli('token')).out.trim()
  t.not(after, before)
  t.is((await api.get('/api/v1/agents/me', after)).status, 200)
})

test('a denial ends the wait with access_denied', async (t) => {
  const cli = cliOf(t)
  const workspace = json(await cli('workspace', 'create', '--organization', 'No', '--json'))
  const person = await personOf(workspace)
  const asking = cli('delegate', '--scope', 'openid')
  const userCode = await printed(() => cli.begun.at(-1), /code ([A-Z]{4}-[A-Z]{4})/)
  await decide(person, { userCode: userCode.replace('-', '') }, 'deny')
  const result = await asking
  t.is(result.code, 1)
  t.regex(result.err, /access_denied/)
  t.regex(result.err, /The user denied the request/)
})

test('an agent with an es256 key registers in a tenant; a second time is refused', async (t) => {
  const { tenantId } = await api.workspace()
  const cli = cliOf(t)
  const made = await cli('register', '--tenant-id', tenantId, '--algorithm', 'es256', '--json')
  t.is(made.code, 0, made.err)
  t.is(json(made)['tenant_id'], tenantId)
  t.is((json(made)['key'] as Json)['algorithm'], 'es256')
  t.regex((await cli('login')).out, /Logged in/)
  t.regex((await cli('register')).err, /another --agent-file/)
})

test('a registration with a lost response continues with the same key', async (t) => {
  const cli = cliOf(t)
  await cli('register', '--json')
  const known = (await readIdentity(cli.file))!
  await writeIdentity(cli.file, { ...known, agent_id: null, tenant_id: null, home_tenant_id: null })
  const again = await cli('register')
  t.is(again.code, 1)
  t.regex(again.err, /409 conflict/)
  t.regex(again.err, /log in with it/)
  t.is(json(await cli('login', '--json'))['agent_id'], known.agent_id)
})

test('errors have a hint', async (t) => {
  const { tenantId, token } = await api.workspace()
  const closed = { admit_agents: false }
  await api.patch('/api/v1/tenant/settings', token, closed)
  const refused = await cliOf(t)('register', '--tenant-id', tenantId)
  t.regex(refused.err, /policy_denied[^]*admit_agents[^]*request /)
  const direct = await cliOf(t)('register', '--tenant-id', tenantId, '--direct', '--json')
  t.like(JSON.parse(direct.err), { error: 'policy_denied', status: 403 })
  const cli = cliOf(t)
  t.regex((await cli('whoami')).err, /svc agent register/)
  await cli('register')
  t.regex((await cli('token', '--scope', 'users:manage')).err, /invalid_scope/)
  const nowhere = await cliOf(t)('register', '--base-url', 'http://127.0.0.1:1')
  t.regex(nowhere.err, /does not answer/)
})

test('a file that others may read, or that is a link, is not used', async (t) => {
  const cli = cliOf(t)
  await cli('register')
  chmodSync(cli.file, 0o640)
  t.regex((await cli('whoami')).err, /other users can read it: run chmod 600/)
  chmodSync(cli.file, 0o600)
  chmodSync(join(cli.file, '..'), 0o777)
  t.regex((await cli('whoami')).err, /other users can write to .*: run chmod 700/)
  chmodSync(join(cli.file, '..'), 0o700)
  const link = join(cli.file, '..', 'link.json')
  symlinkSync(cli.file, link)
  t.regex((await cli('whoami', '--file', link)).err, /is a symbolic link/)
  writeFileSync(join(cli.file, '..', 'other.json'), '{}', { mode: 0o600 })
  t.regex(
    (await cli('whoami', '--file', join(cli.file, '..', 'other.json'))).err,
    /not an identity file of/,
  )
  // The lock of a process that died.
  writeFileSync(`${cli.file}.lock`, '999999999')
  t.is((await cli('whoami')).code, 0)
})

test('a session renews a token that the service refuses, and signs nothing for another issuer', async (t) => {
  const http = httpClient(running.baseUrl)
  t.teardown(() => http.close())
  const key = createAgentKey()
  const made = await createWorkspace({ http, key, name: 'S', organizationName: 'Session' })
  const { issuer, agentId, tenantId } = made
  const session = agentSession({ http, key, issuer, agentId, tenantId })
  const me = () => session.request({ method: 'GET', path: '/api/v1/agents/me' })
  t.is((await me()).status, 200)
  const { accessToken: token } = await session.token()
  t.is((await api.form('/oauth/revoke', { token, client_id: agentId })).status, 200)
  t.is((await me()).status, 200)
  t.not((await session.token()).accessToken, token)

  const misled = agentSession({ http, key, issuer: 'https://elsewhere.example', agentId })
  await t.throwsAsync(misled.token(), { message: /is not signed: it names the issuer/ })
})

testCommands('the commands of docs/guides/agents/agent-client.md run unchanged', async (t) => {
  const page = docsPage(t, 'guides/agents/agent-client')
  const HOME = folderOf(t)
  const env = { BASE: running.baseUrl, SVC: `${process.execPath} ${MAIN}`, HOME }
  const first = await page.run('sh', 0, env)
  t.regex(first, /^SVC_CLIENT_SECRET=svcs_/m)
  t.regex(first, /^status +active$/m)
  t.regex(first, /"scope":"vault:list"/)
  const [, email, password] = /^Test user (\S+), password (\S+)$/m.exec(first) ?? []
  const slug = /^SVC_TENANT_SLUG=(\S+)$/m.exec(first)?.[1]
  const person = await present(api, {
    tenantSlug: String(slug),
    email: String(email),
    password: String(password),
  })
  const asking = page.begin('sh', 1, env)
  await asking.line()
  const code = /the code ([A-Z-]{9})/.exec(await asking.line())?.[1] ?? ''
  await decide(person, { userCode: code.replace('-', '') })
  const said = await asking.ended
  t.regex(said, /^Delegation [0-9a-f-]{36}: openid vault:list vault:read$/m)
  t.true(said.endsWith('[]'))
})

test('the program of docs/guides/agents/agent-client.md compiles and runs unchanged', async (t) => {
  const page = docsPage(t, 'guides/agents/agent-client')
  const program = page.begin('ts', 0, { BASE: running.baseUrl })
  t.is(await program.line(), '200 Build agent')
  const [userCode = '', url = ''] = (await program.line()).split(' ')
  t.true(url.startsWith(`${running.baseUrl}/device/delegation/`))
  t.is(url.includes(userCode.replace('-', '')), true)
})

test('help names every command', (t) => {
  const help = execFileSync(process.execPath, [MAIN, 'agent', '--help'], { encoding: 'utf8' })
  for (const name of ['register', 'workspace', 'login', 'whoami', 'token', 'delegate']) {
    t.regex(help, new RegExp(`^ +${name} `, 'm'))
  }
})

test('invalid arguments are reported in JSON with --json', (t) => {
  const lines: readonly (readonly [words: string[], said: RegExp])[] = [
    [['agent', 'workspace', 'create', '--json'], /--organization/],
    [['agent', 'delegate', '--json'], /--scope/],
    [['agent', 'token', '--json', '--nonsense'], /--nonsense/],
    [['agent', 'register', '--json', '--base-url', 'nonsense'], /an address like .* not nonsense/],
  ]
  const env = { PATH: process.env['PATH'], HOME: folderOf(t) }
  for (const [words, said] of lines) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...words], { env })
    t.is(status, 1, words.join(' '))
    t.is(stdout.toString(), '')
    const { error, detail } = JSON.parse(stderr.toString()) as Json
    t.is(error, 'failed')
    t.regex(String(detail), said)
  }
  const words = ['agent', 'delegate']
  const plain = spawnSync(process.execPath, [MAIN, ...words], { env })
  t.regex(plain.stderr.toString(), /error: required option '--scope <scopes>'[^]*--help/)
})
