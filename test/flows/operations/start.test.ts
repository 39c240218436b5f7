/** The one command as an operator uses it: start, stop, restart, kill, start twice. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../support/api.js'
import { freshDatabase } from '../../support/storage/database.js'
import { openBrowser } from '../../support/pages/browser.js'
import { testCommands } from '../../support/pages/docs-page.js'
import { freePort, TEST_DEFAULTS, type TestService, twoFreePorts } from '../../support/service.js'
import { asOrdinaryUser, giveAway, isRoot, processesOf, shown, svc } from '../vault/command.js'

const LOG_LINES_MAX = 15

/** A new data directory. Processes that a failed test left in it are ended. */
function dataDirectory(t: { teardown(end: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-start-'))
  chmodSync(folder, 0o711)
  t.teardown(() => {
    for (const line of processesOf(folder)) process.kill(Number.parseInt(line, 10), 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

async function local(folder: string, more: Record<string, string> = {}) {
  const port = await freePort()
  const environment = { SVC_DATA_DIR: folder, SVC_SERVER__PORT: String(port), ...more }
  return { environment, url: `http://localhost:${environment.SVC_SERVER__PORT}` }
}

const MAIN = fileURLToPath(new URL('../../../runtime/main.js', import.meta.url))

/** A command of the clone, run from the compiled files. */
const withoutNpm = (command: string) =>
  command
    .replace(/^npm run --silent svc -- /, `${process.execPath} ${MAIN} `)
    .replace(/^npm run tour -- /, `${process.execPath} ${MAIN} tour `)

/** The log of a start. A person reads it. */
function beforeReady(t: ExecutionContext, output: string): string {
  const [before = ''] = output.split('svc is ready')
  // The last one is the empty line of the banner.
  t.true(before.trimEnd().split('\n').length <= LOG_LINES_MAX, before)
  return before
}

const jwks = async (url: string) => (await fetch(`${url}/.well-known/jwks.json`)).text()

/** Ended processes disappear from the process table with a delay. */
async function gone(folder: string): Promise<string[]> {
  for (let tries = 0; tries < 100 && processesOf(folder).length > 0; tries += 1) await sleep(50)
  return processesOf(folder)
}

test('a first start prints its address, and a second one keeps the data, also after kill -9', async (t) => {
  const folder = dataDirectory(t)
  // The embedded database is reached without them.
  const { environment, url } = await local(folder, {
    SVC_SERVER__PORT: String(await twoFreePorts()),
    PGSSLMODE: 'verify-full',
    PGPORT: '1',
    PGHOST: 'db',
  })
  const first = svc(t, { args: ['serve', '--egress-beside'], environment })
  await first.ready()
  t.is(shown(first.output(), 'base URL'), url)
  const egress = new URL(url)
  egress.port = String(Number(egress.port) + 1)
  t.is(shown(first.output(), 'egress'), egress.origin, 'as npm start does')
  t.is((await fetch(`${egress.origin}/health/ready`)).status, 200)
  t.is((await fetch(shown(first.output(), 'docs'))).status, 200)
  t.is((await fetch(shown(first.output(), 'discovery'))).status, 200)
  t.is(shown(first.output(), 'data'), folder)
  t.regex(first.output(), /^ {2}off +\d+ features, .*commerce.*wallet.*scim/m)
  const before = beforeReady(t, first.output())
  // On a busy machine the first check of the database can take longer than its limit.
  const lines = before
    .split('\n')
    .filter((line) => !line.includes('"faults":["database unavailable"]'))
  t.notRegex(lines.join('\n'), /"level":(?:40|50)/, 'a start is no fault')
  t.regex(before, /"msg":"created the schema"/)
  const report = first
    .output()
    .split('\n')
    .find((line) => line.includes('"msg":"settings"'))
  const { set, defaults } = JSON.parse(report!) as {
    set: Record<string, unknown>
    defaults: number
  }
  const port = { value: Number(new URL(url).port), source: 'SVC_SERVER__PORT' }
  t.deepEqual(set['server.port'], port, 'the log names what is no default, and its source')
  t.true(defaults > 100)
  // A second terminal does not have the settings above.
  const [, words = ''] = /npm run tour -- (--url \S+)/.exec(first.output()) ?? []
  const tour = svc(t, { args: ['tour', ...words.split(' ')] })
  t.is(await tour.ended(), 0, tour.output())
  const keys = svc(t, { args: ['keys', 'list'], environment })
  t.is(await keys.ended(), 0, keys.output())
  const target = new RegExp(`deployment ${url} \\(from [^)]+\\), data directory ${folder} \\(`)
  t.regex(keys.output(), target)
  const tenant = shown(first.output(), 'control-plane tenant')
  t.regex(tenant, /^[0-9a-f-]{36}$/)
  const published = await jwks(url)
  const signIn = await (await fetch(`${url}/auth/login`)).text()
  t.regex(first.output(), new RegExp(`npm run tour -- --url ${url}\\b`), 'it works off 8080 too')
  for (const offered of [/Forgot your password/, /Sign in with a passkey/, /Email me a code/]) {
    t.regex(signIn, offered, 'a local run offers every way in that needs no provider')
  }
  // Ctrl-C signals the whole process group, as a terminal does.
  process.kill(-first.child.pid!, 'SIGINT')
  t.is(await first.ended(), 0)
  t.regex(first.output(), /"msg":"stopping"}\n(.*\n)*.*"msg":"stopped"}/)
  t.deepEqual(await gone(folder), [], 'nothing is left running')

  const second = svc(t, { environment })
  await second.ready()
  beforeReady(t, second.output())
  t.is(shown(second.output(), 'control-plane tenant'), tenant)
  t.is(await jwks(url), published, 'the signing keys are the same')
  const intruder = svc(t, { environment: (await local(folder)).environment })
  t.is(await intruder.ended(), 1)
  t.true(intruder.output().includes(folder), 'the directory in use is named')
  second.child.kill('SIGKILL')
  t.is(await second.ended(), 'SIGKILL')

  const third = svc(t, { environment })
  await third.ready()
  t.is(await jwks(url), published)
  // As a closed terminal does.
  third.child.kill('SIGHUP')
  t.is(await third.ended(), 'SIGHUP')
  t.deepEqual(await gone(folder), [], 'the database of the killed one is stopped too')
  t.false(existsSync(join(folder, 'svc.lock')))
})

testCommands('what a start prints as next steps works as it is printed', async (t) => {
  const folder = dataDirectory(t)
  // The other tests run as root where this one does not.
  if (isRoot()) giveAway(folder)
  const { environment, url } = await local(folder, {
    SVC_CHALLENGE__POW_DIFFICULTY_BITS: TEST_DEFAULTS.SVC_CHALLENGE__POW_DIFFICULTY_BITS,
    SVC_CHALLENGE__POW_MIN_DURATION_SECS: TEST_DEFAULTS.SVC_CHALLENGE__POW_MIN_DURATION_SECS,
  })
  const service = svc(t, { environment, wrapper: isRoot() ? asOrdinaryUser() : [] })
  await service.ready()
  t.is((await fetch(shown(service.output(), 'mail'))).status, 200)
  const steps = [...service.output().matchAll(/^ {4}# .+\n {4}(.+)$/gm)].map(([, step]) => step!)
  t.is(steps.length, 3, service.output())
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    scripts: Record<string, string>
  }
  const work = mkdtempSync(join(tmpdir(), 'svc-next-'))
  t.teardown(() => rmSync(work, { recursive: true, force: true }))
  // The second terminal has none of the settings. npm would compile the tree while other tests run from it.
  const run = (step: string) =>
    execFileSync('sh', ['-euc', withoutNpm(step)], {
      cwd: work,
      env: { PATH: process.env['PATH'], HOME: work },
      encoding: 'utf8',
    })
  const [capabilities, create, tour] = steps as [string, string, string]
  t.is((JSON.parse(run(capabilities)) as { issuer: string }).issuer, url)
  for (const name of ['svc', 'tour']) t.truthy(scripts[name])

  const made = run(create)
  t.is(run(create), made, 'a second run creates nothing')
  const value = (name: string) => new RegExp(`^${name} +(.+)$`, 'm').exec(made)![1]!
  const [email = '', password = ''] = value('test login').split(' ')
  const browser = openBrowser({ baseUrl: url, ca: undefined })
  const { pathname, search } = new URL(value('sign in at'))
  const signedIn = await browser.submit(await browser.get(pathname + search), { email, password })
  t.is(signedIn.location, '/auth/account', signedIn.html)
  const [invite = ''] = value('administrator').split(' ')
  t.is((await fetch(invite)).status, 200)
  const token = await fetch(`${url}/oauth/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${btoa(`${value('client id')}:${value('client secret')}`)}`,
    },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  t.is(token.status, 200, await token.text())

  const toured = run(tour)
  t.regex(toured, /all as documented\./)
  t.true(toured.includes(`${url}/   the start page`), toured.slice(-300))
  t.true(toured.trimEnd().endsWith(`${url}/console   the console`), toured.slice(-300))
  service.child.kill('SIGTERM')
  t.is(await service.ended(), 0)
  t.deepEqual(await gone(folder), [])
})

test('a port in use is named, and nothing is left running', async (t) => {
  const folder = dataDirectory(t)
  const { environment } = await local(folder)
  const port = Number(environment.SVC_SERVER__PORT)
  const holder = createServer().listen(port, '127.0.0.1')
  t.teardown(() => holder.close())
  const refused = svc(t, { environment })
  t.is(await refused.ended(), 1)
  t.regex(refused.output(), new RegExp(`${port}`))
  t.regex(refused.output(), /taken/)
  t.notRegex(refused.output(), /\bat .*\.js:\d+/, 'no stack for an operator')
  t.deepEqual(await gone(folder), [])
  t.deepEqual(readdirSync(folder), [], 'the error precedes the creation of a database')
  t.notRegex(refused.output(), /migration/)
})

test('an unknown argument is reported in a few lines', async (t) => {
  const refused = svc(t, { args: ['keys', 'list', '--jsn'] })
  t.is(await refused.ended(), 1)
  t.regex(refused.output(), /^error: unknown option '--jsn'/)
  t.true(refused.output().trim().split('\n').length <= 4, refused.output())
})

test('a migration without database connection names address and setting, and no password', async (t) => {
  const url = 'postgresql://svc:canary-of-a-password@127.0.0.1:1/svc'
  const refused = svc(t, {
    args: ['migrate'],
    environment: { MIGRATION_DATABASE_URL: url, DATABASE_URL: url },
  })
  t.is(await refused.ended(), 1)
  t.regex(
    refused.output(),
    /^svc: cannot reach PostgreSQL at 127\.0\.0\.1:1, from \w*DATABASE_URL: /m,
  )
  t.notRegex(refused.output(), /canary-of/)
})

test('an external database with DATABASE_URL alone: start, use, kill, start, stop', async (t) => {
  const folder = dataDirectory(t)
  const { url: databaseUrl } = await freshDatabase(t)
  const { environment, url } = await local(folder, {
    ...TEST_DEFAULTS,
    DATABASE_URL: databaseUrl,
  })
  const first = svc(t, { environment })
  await first.ready()
  t.is(shown(first.output(), 'data'), folder, 'the start names where the keys are')
  t.regex(first.output(), /master keys are kept in the data directory/)
  const tenant = shown(first.output(), 'control-plane tenant')
  const published = await jwks(url)
  const speaking = apiOf({ baseUrl: url, ca: undefined } as TestService)
  const workspace = await speaking.workspace()
  // Another process of the same deployment, with the same keys.
  const peer = await local(folder, { ...TEST_DEFAULTS, DATABASE_URL: databaseUrl })
  const sibling = svc(t, { environment: { ...peer.environment, SVC_OIDC__ISSUER_URL: url } })
  await sibling.ready()
  t.is(await jwks(peer.url), published)
  sibling.child.kill('SIGTERM')
  t.is(await sibling.ended(), 0)
  first.child.kill('SIGKILL')
  t.is(await first.ended(), 'SIGKILL')

  const second = svc(t, { environment })
  await second.ready()
  t.is(shown(second.output(), 'control-plane tenant'), tenant)
  t.is(await jwks(url), published, 'the signing keys are the same')
  const login = await speaking.login(workspace.key, {
    agent_id: workspace.agentId,
    tenant_id: workspace.tenantId,
  })
  t.is(login.status, 200, 'the sealed signing key opens, and signs')
  second.child.kill('SIGTERM')
  t.is(await second.ended(), 0)
  t.deepEqual(await gone(folder), [])
})

test('a refused configuration lists every failure and starts nothing', async (t) => {
  const folder = dataDirectory(t)
  const { environment } = await local(folder, {
    SVC_SERVER__PROT: '1',
    SVC_JWT__KEY_ROTATION_DAYS: '0',
    SVC_VAULT__MASTER_KEY: 'x',
  })
  const refused = svc(t, { environment })
  t.is(await refused.ended(), 78)
  for (const expected of [
    /SVC_SERVER__PROT/,
    /SVC_SERVER__PORT/,
    /key_rotation_days/,
    /MASTER_KEY/,
  ]) {
    t.regex(refused.output(), expected)
  }
  t.deepEqual(processesOf(folder), [])
})

/** `npm start` runs a shell, which would keep the signal to itself and leave the service behind. */
test('a SIGTERM to npm reaches the service', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-npm-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    scripts: Record<string, string>
  }
  mkdirSync(join(folder, 'runtime'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts }))
  writeFileSync(join(folder, 'runtime', 'thread-pool.cjs'), '')
  // Replaces the launcher: reports its start and how it ended.
  writeFileSync(
    join(folder, 'runtime', 'launch.mjs'),
    `import { writeFileSync } from 'node:fs'
     setTimeout(() => process.exit(1), 60_000)
     process.on('SIGTERM', () => {
       writeFileSync('ended', process.argv[2])
       process.exit(0)
     })
     writeFileSync('pid', String(process.pid))`,
  )
  for (const [args, command] of [
    [['start'], 'serve'],
    [['run', 'svc', '--', 'serve'], 'svc'],
  ] as const) {
    const npm = spawn('npm', args, { cwd: folder, stdio: 'ignore' })
    const file = async (name: string) => {
      const at = join(folder, name)
      const written = () => existsSync(at) && statSync(at).size > 0
      for (let turn = 0; turn < 600 && !written(); turn += 1) await sleep(50)
      const text = readFileSync(at, 'utf8')
      rmSync(at)
      return text
    }
    await file('pid')
    npm.kill('SIGTERM')
    t.is(await file('ended'), command)
  }
})

test('an unreachable database is reported with the driver error', async (t) => {
  const folder = dataDirectory(t)
  const { environment } = await local(folder, {
    DATABASE_URL: 'postgresql://svc:canary-of-a-password@127.0.0.1:1/svc',
  })
  const refused = svc(t, { environment })
  t.is(await refused.ended(), 1)
  t.regex(
    refused.output(),
    /^svc: cannot reach PostgreSQL at 127\.0\.0\.1:1, from DATABASE_URL: connect ECONNREFUSED 127\.0\.0\.1:1$/m,
  )
  t.notRegex(refused.output(), /canary-of/)
})

test('an unreachable coordination backend is reported with the driver error', async (t) => {
  const folder = dataDirectory(t)
  const { environment } = await local(folder, {
    SVC_DEPLOYMENT__COORDINATION_BACKEND: 'redis',
    SVC_REDIS__URL: 'redis://:canary-of-a-password@127.0.0.1:1',
  })
  const refused = svc(t, { environment })
  t.is(await refused.ended(), 1)
  const told =
    /^svc: the coordination backend redis is unavailable: connect ECONNREFUSED 127\.0\.0\.1:1$/m
  t.regex(refused.output(), told)
  t.notRegex(refused.output(), /canary-of|the start failed/)
})

test('an unreadable CA file is reported by the tour in one line', async (t) => {
  const refused = svc(t, { args: ['tour', '--ca-file', '/nonexistent.pem'] })
  t.is(await refused.ended(), 1)
  t.regex(refused.output(), /^svc: deployment .*\nsvc tour: ENOENT: .*nonexistent\.pem'\n$/)
})

test('svc migrate reports a timeout of an unresponsive server', async (t) => {
  const silent = createServer().listen(0, '127.0.0.1')
  t.teardown(() => silent.close())
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const environment = {
    DATABASE_URL: `postgres://svc:canary-of-a-password@127.0.0.1:${port}/svc`,
    SVC_DATABASE__CONNECT_TIMEOUT_SECS: '1',
  }
  const refused = svc(t, { args: ['migrate'], environment })
  t.is(await refused.ended(), 1)
  t.regex(
    refused.output(),
    /^svc: cannot reach PostgreSQL at 127\.0\.0\.1:\d+, from DATABASE_URL: timeout expired$/m,
  )
  t.notRegex(refused.output(), /canary-of/)
})
