/** Own service: it stops its database, kms and mail server. */
/**
 * PostgreSQL, the kms and the mail server are stopped (SIGSTOP), not killed: they accept connections and bytes, and
 * answer nothing. Every request is answered within 5 s. frozen-coordination.test.ts stops Redis and memcached.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { generateKeyDirectory } from '../../../storage/platform/kms/key-directory.js'
import { keyPaths } from '../../../storage/platform/kms/key-files.js'
import {
  type Answer,
  bootstrap,
  type Caller,
  callerOf,
  clientToken,
  demand,
  login,
} from '../../support/agents/journey.js'
import { ownService } from '../../support/service/own-service.js'
import { freePort } from '../../support/service.js'
import { isReady, until } from '../../support/service/watch.js'
import { ownPostgres } from '../../support/storage/outage.js'

const MAIN = new URL('../../../runtime/main.js', import.meta.url).pathname
const CREDENTIALS = '/api/v1/vault/credentials'

/** Requests in parallel and one after another, while a dependency answers nothing: each has its own answer. */
async function allAnswer(
  t: ExecutionContext,
  status: number,
  asks: readonly (() => Promise<Answer>)[],
): Promise<void> {
  const one = async (ask: () => Promise<Answer>) => {
    const answer = await ask()
    t.is(answer.status, status, answer.text)
    if (status === 503) t.truthy(answer.headers.get('retry-after'))
  }
  await Promise.all(asks.map(one))
  for (const ask of asks) await one(ask)
}

const create = (http: Caller, token: string, label: string) =>
  http.post(
    CREDENTIALS,
    {
      provider: 'p',
      credential_type: 'api_key',
      label,
      auth_scheme: 'bearer',
      allowed_hosts: ['api.example'],
      secret: 'kept',
    },
    { authorization: `Bearer ${token}` },
  )

test.serial('a stopped PostgreSQL', async (t) => {
  t.timeout(120_000)
  const postgres = await ownPostgres()
  const running = await ownService({ environment: { DATABASE_URL: postgres.url } })
  t.teardown(async () => {
    await running.end()
    await postgres.end()
  })
  const http = callerOf(running.baseUrl)
  const space = await bootstrap(http)
  demand(await clientToken(http, space), 200)
  const authorization = `Bearer ${space.accessToken}`
  const asks = [
    () => clientToken(http, space),
    () => http.post('/api/v1/agents/auth/challenge', { agent_id: space.agentId }),
    () => http.call('/api/v1/applications', { headers: { authorization } }),
  ]
  for (const ask of asks) demand(await ask(), 200)
  const thaw = await postgres.freeze()
  try {
    await allAnswer(t, 503, asks)
    demand(await http.call('/health/live'), 200)
  } finally {
    thaw()
  }
  await until('ready again', () => isReady(http))
  for (const ask of asks) demand(await ask(), 200)
})

test.serial('a stopped kms', async (t) => {
  t.timeout(120_000)
  const folder = mkdtempSync(join(tmpdir(), 'svc-frozen-'))
  const keys = join(folder, 'keys')
  const socket = join(folder, 'kms.sock')
  await generateKeyDirectory(keys, systemRandom(systemClock))
  const child = spawn(
    process.execPath,
    [MAIN, 'kms', 'serve', '--socket', socket, '--keys', keys],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  )
  t.teardown(() => ended(child, folder))
  await once(child.stdout!, 'data')
  const paths = keyPaths(keys)
  const running = await ownService({
    environment: {
      SVC_KMS__SOCKET_PATH: socket,
      SVC_KMS__SERVER_PUBLIC_KEY_PATH: paths.serverPublic,
      SVC_KMS__CLIENT_PRIVATE_KEY_PATH: paths.clientPrivate,
    },
  })
  t.teardown(() => running.end())
  const http = callerOf(running.baseUrl)
  // Their tenants have no data key in memory: the first secret of each needs the kms.
  const spaces = [await bootstrap(http), await bootstrap(http)]
  child.kill('SIGSTOP')
  const tokens = spaces.map(({ accessToken }) => accessToken)
  const asks = tokens.map((token) => () => create(http, token, 'frozen'))
  await allAnswer(t, 503, asks)
  // Keys in memory work on.
  demand(await clientToken(http, spaces[0]!), 200)
  demand(await login(http, spaces[0]!), 200)
  child.kill('SIGCONT')
  await until('secrets are sealed again', async () => {
    const { status } = await create(http, tokens[0]!, 'thawed')
    t.true(status === 201 || status === 503)
    return status === 201
  })
})

test.serial('a stopped mail server delays no request', async (t) => {
  t.timeout(120_000)
  const port = await freePort()
  const child = spawn(
    process.execPath,
    [
      '-e',
      `require('net').createServer((s) => s.write('220 x\\r\\n')).listen(${port}, '127.0.0.1', () => process.stdout.write('up'))`,
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  )
  t.teardown(() => ended(child))
  await once(child.stdout!, 'data')
  const running = await ownService({
    environment: {
      SVC_EMAIL__PROVIDER: 'smtp',
      SVC_EMAIL__SMTP_HOST: '127.0.0.1',
      SVC_EMAIL__SMTP_PORT: String(port),
      SVC_EMAIL__SMTP_STARTTLS: 'false',
      SVC_EMAIL__SMTP_CATCHER: 'true',
      SVC_EMAIL__SMTP_TIMEOUT_SECS: '5',
      SVC_EMAIL__FROM: 'svc <no-reply@example.com>',
      SVC_INVITATIONS__ENABLED: 'true',
    },
  })
  t.teardown(() => running.end())
  const http = callerOf(running.baseUrl)
  const space = await bootstrap(http)
  child.kill('SIGSTOP')
  let people = 0
  const invite = () => {
    people += 1
    return http.post(
      '/api/v1/tenant-users',
      { email: `person${people}@example.com` },
      { authorization: `Bearer ${space.accessToken}` },
    )
  }
  await allAnswer(t, 201, [invite, invite, invite])
})

async function ended(child: ChildProcess, folder?: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
}
