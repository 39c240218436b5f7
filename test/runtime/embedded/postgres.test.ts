import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { isAlive } from '../../../runtime/embedded/claim.js'
import { startEmbeddedPostgres } from '../../../runtime/embedded/postgres.js'
import { createLogger, silentLogger } from '../../../runtime/kernel/log.js'
import { IS_LONG } from '../../support/runs.js'

const SERVICE = new URL('./service.js', import.meta.url)
const asRoot = process.getuid?.() === 0
const NOBODY = 65_534

async function temporaryFolder(t: ExecutionContext, below = tmpdir()): Promise<string> {
  const folder = await realpath(await mkdtemp(join(below, 'svc-embedded-')))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  // Root's server runs as another user, who must be able to enter the folder.
  await chmod(folder, 0o711)
  return folder
}

interface Report {
  readonly url: string
  readonly pid: number
  readonly adopted: boolean
  readonly error?: string
}

interface Service {
  readonly process: ChildProcess
  readonly report: Report
}

/** Starts a service in a separate process. Its server does not outlive the test. */
async function startService(t: ExecutionContext, dataDir: string, uid?: number): Promise<Service> {
  const child = spawn(process.execPath, [SERVICE.pathname, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: '/',
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
    if (report.pid && isAlive(report.pid)) process.kill(report.pid, 'SIGKILL')
  })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const report = JSON.parse(line) as Report
  return { process: child, report }
}

async function end(service: Service, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const gone = once(service.process, 'exit')
  service.process.kill(signal)
  await gone
}

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  for (let i = 0; i < 600; i += 1) {
    if (await holds()) return
    await sleep(50)
  }
  throw new Error('it never came to hold')
}

/** Clusters in unusual places and states: `npm run test:long`. */
const longTest = IS_LONG ? test : undefined

test('a first start creates a database, a second one keeps its data', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const first = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
  const [about] = await ask(
    first.url,
    `select current_database() as database, current_user as role, rolsuper or rolbypassrls as free,
            current_setting('listen_addresses') as addresses, version() like 'PostgreSQL 18%' as real
     from pg_roles where rolname = current_user`,
  )
  t.deepEqual(about, { database: 'svc', role: 'svc', free: false, addresses: '', real: true })
  await ask(first.url, 'create table kept as select 42 as answer')
  await first.stop()
  t.false(isAlive(first.pid), 'nothing is left running')

  const second = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
  t.deepEqual(await ask(second.url, 'select answer from kept'), [{ answer: 42 }])
  t.false(second.adopted)
  await second.stop()
})

test('writes are durable unless a test turns that off', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const show = `select current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
                       current_setting('synchronous_commit') as commits`
  const safe = await startEmbeddedPostgres({ dataDir, log: silentLogger })
  t.deepEqual(await ask(safe.url, show), [{ fsync: 'on', pages: 'on', commits: 'on' }])
  await safe.stop()
  const quick = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
  t.deepEqual(await ask(quick.url, show), [{ fsync: 'off', pages: 'off', commits: 'off' }])
  await quick.stop()
})

test('other users cannot read secrets and data', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const server = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
  const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)
  t.is(await mode(join(dataDir, 'postgres-passwords.json')), '600')
  t.is(await mode(join(dataDir, 'postgres.log')), '600')
  const socketFolder = new URL(server.url).searchParams.get('host')!
  t.is(await mode(socketFolder), '700')
  const wrong = new URL(server.url)
  wrong.password = 'wrong'
  await t.throwsAsync(ask(wrong.href, 'select 1'), { message: /password authentication failed/ })
  await server.stop()
})

test('a second service on the same directory is refused while the first one lives', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const first = await startService(t, dataDir)
  const second = await startService(t, dataDir)
  t.regex(second.report.error ?? '', /in use by another svc \(process \d+\)/)
  t.true(second.report.error?.includes(String(first.process.pid)))
  t.deepEqual(await ask(first.report.url, 'select 1 as one'), [{ one: 1 }], 'the first serves on')
  await end(first, 'SIGTERM')
  t.false(isAlive(first.report.pid))
})

test('a guest uses the server of a service and leaves it running', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const service = await startService(t, dataDir)
  const options = { dataDir, log: silentLogger, durable: false, claim: false }
  const guest = await startEmbeddedPostgres(options)
  t.true(guest.adopted)
  t.deepEqual(await ask(guest.url, 'select 1 as one'), [{ one: 1 }])
  await guest.stop()
  t.deepEqual(await ask(service.report.url, 'select 1 as one'), [{ one: 1 }], 'it serves on')

  const another = await startEmbeddedPostgres(options)
  await end(service, 'SIGTERM')
  t.false(isAlive(service.report.pid))
  // Longer than a service needs to notice that its server is dead.
  await sleep(2_500)
  t.false(existsSync(join(another.folder, 'postmaster.pid')), 'it is not started again')
  await another.stop()

  const own = await startEmbeddedPostgres(options)
  t.false(own.adopted)
  await own.stop()
  t.false(isAlive(own.pid), 'what a guest had to start is its own')
})

longTest?.('two data directories run side by side', async (t) => {
  const folder = await temporaryFolder(t)
  const [a, b] = await Promise.all(
    ['a', 'b'].map((name) =>
      startEmbeddedPostgres({ dataDir: join(folder, name), log: silentLogger, durable: false }),
    ),
  )
  await ask(a!.url, 'create table mine (id integer)')
  t.deepEqual(await ask(b!.url, `select to_regclass('mine') as mine`), [{ mine: null }])
  await Promise.all([a!.stop(), b!.stop()])
})

test('after kill -9 of the service its server is adopted with its data, and stopped at the end', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const killed = await startService(t, dataDir)
  await ask(killed.report.url, 'create table kept as select 1 as one')
  await end(killed, 'SIGKILL')
  t.true(isAlive(killed.report.pid), 'the server outlived its service')
  const next = await startService(t, dataDir)
  t.true(next.report.adopted)
  t.is(next.report.pid, killed.report.pid)
  t.deepEqual(await ask(next.report.url, 'select one from kept'), [{ one: 1 }])
  await end(next, 'SIGTERM')
  await until(() => !isAlive(killed.report.pid))
  t.false(isAlive(killed.report.pid))
})

test('after kill -9 of service and server the data is recovered', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const killed = await startService(t, dataDir)
  await ask(killed.report.url, 'create table kept as select 1 as one')
  await end(killed, 'SIGKILL')
  process.kill(killed.report.pid, 'SIGKILL')
  await until(() => !isAlive(killed.report.pid))
  const next = await startService(t, dataDir)
  t.is(next.report.error, undefined)
  t.false(next.report.adopted)
  t.deepEqual(await ask(next.report.url, 'select one from kept'), [{ one: 1 }])
  await end(next, 'SIGTERM')
})

test('a pid file that names a process which is not the server is seen through', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const first = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
  const cluster = new URL(first.url).searchParams.get('host')!
  const pidFile = await readFile(join(cluster, 'postmaster.pid'), 'utf8')
  await first.stop()
  // A living process with the pid of the dead server.
  await writeFile(join(cluster, 'postmaster.pid'), pidFile.replace(/^\d+/, `${process.pid}`))
  const second = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
  t.not(second.pid, process.pid)
  t.deepEqual(await ask(second.url, 'select 1 as one'), [{ one: 1 }])
  await second.stop()
})

test('a server that dies under a living service is started again', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const server = await startEmbeddedPostgres({ dataDir, log: silentLogger })
  await ask(server.url, 'create table kept as select 1 as one')
  process.kill(server.pid, 'SIGKILL')
  await until(() =>
    ask(server.url, 'select one from kept').then(
      () => true,
      () => false,
    ),
  )
  await server.stop()
  await t.throwsAsync(ask(server.url, 'select 1'))
})

longTest?.(
  'a server that cannot start again immediately, as on a full disk, is started later',
  async (t) => {
    const dataDir = join(await temporaryFolder(t), 'state')
    const refused: string[] = []
    const log = createLogger({
      level: 'error',
      destination: { write: (line) => void refused.push(...(line.match(/does not start/) ?? [])) },
    })
    const server = await startEmbeddedPostgres({ dataDir, log })
    t.teardown(() => server.stop())
    await ask(server.url, 'create table kept as select 1 as one')
    const version = join(server.folder, 'PG_VERSION')
    const original = await readFile(version)
    await writeFile(version, '9\n')
    process.kill(server.pid, 'SIGKILL')
    await until(() => refused.length >= 4)
    await writeFile(version, original)
    await until(() =>
      ask(server.url, 'select one from kept').then(
        () => true,
        () => false,
      ),
    )
    t.true(refused.length >= 4)
  },
)

test('half a cluster, left by a kill during the first start, is not taken for a database', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const child = spawn(process.execPath, [SERVICE.pathname, dataDir], { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  await until(() =>
    stat(join(dataDir, 'postgres-passwords.json')).then(
      () => true,
      () => false,
    ),
  )
  await sleep(100)
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
  const next = await startService(t, dataDir)
  t.is(next.report.error, undefined)
  t.deepEqual(await ask(next.report.url, 'select 1 as one'), [{ one: 1 }])
  await end(next, 'SIGTERM')
})

longTest?.(
  'a path too long for a socket gets its socket in a closed temporary folder',
  async (t) => {
    const dataDir = join(await temporaryFolder(t), 'long-'.repeat(20), 'state')
    const server = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
    const socketFolder = new URL(server.url).searchParams.get('host')!
    t.teardown(() => rm(socketFolder, { recursive: true, force: true }))
    t.true(socketFolder.length < 90)
    t.is((await stat(socketFolder)).mode & 0o777, 0o700)
    t.deepEqual(await ask(server.url, 'select 1 as one'), [{ one: 1 }])
    await server.stop()
  },
)

longTest?.('a path with spaces and signs that mean something in a URL works', async (t) => {
  const dataDir = join(await temporaryFolder(t), "it's a & b?c#d%20 ü")
  const server = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
  t.deepEqual(await ask(server.url, 'select 1 as one'), [{ one: 1 }])
  await server.stop()
})

const rootTest = asRoot ? test : test.skip
const rootNote = asRoot ? '' : ' (skipped: not root)'

rootTest(
  `below a folder that is closed to others the cluster lies elsewhere, and is found again${rootNote}`,
  async (t) => {
    const closed = await temporaryFolder(t)
    await chmod(closed, 0o700)
    const dataDir = join(closed, 'state')
    const first = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
    await ask(first.url, 'create table kept as select 1 as one')
    await first.stop()
    const place = (await readFile(join(dataDir, 'postgres-location'), 'utf8')).trim()
    t.teardown(() => rm(place, { recursive: true, force: true }))
    t.regex(place, /^\/var\/lib\/svc-postgres\/[0-9a-f]{16}$/)
    // The folder is open again: the start must not treat the data as missing.
    await chmod(closed, 0o711)
    const second = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
    t.deepEqual(await ask(second.url, 'select one from kept'), [{ one: 1 }])
    await second.stop()
  },
)

rootTest(
  `an ordinary user runs the server himself, and root can go on with it${rootNote}`,
  async (t) => {
    const folder = await temporaryFolder(t)
    await chmod(folder, 0o777)
    const dataDir = join(folder, 'state')
    const service = await startService(t, dataDir, NOBODY)
    t.is(service.report.error, undefined)
    await ask(service.report.url, 'create table kept as select 1 as one')
    t.is((await stat(join(dataDir, 'postgres'))).uid, NOBODY)
    await end(service, 'SIGTERM')
    await chmod(dataDir, 0o711)
    const root = await startEmbeddedPostgres({ dataDir, log: silentLogger })
    t.deepEqual(await ask(root.url, 'select one from kept'), [{ one: 1 }])
    await root.stop()
  },
)

test('a cluster that cannot start says why, in the words of the server', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'state')
  const server = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
  const cluster = new URL(server.url).searchParams.get('host')!
  await server.stop()
  await writeFile(join(cluster, 'PG_VERSION'), '9\n')
  await t.throwsAsync(startEmbeddedPostgres({ dataDir, log: silentLogger }), {
    message: /not compatible with this version/,
  })
  await writeFile(join(cluster, 'PG_VERSION'), '18\n')
  const again = await startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false })
  await again.stop()
  t.pass('the failed start let go of the directory')
})

test('a data directory that is a file is an error that names it', async (t) => {
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'x'))
  await writeFile(join(folder, 'x', 'state'), '')
  await t.throwsAsync(
    startEmbeddedPostgres({ dataDir: join(folder, 'x', 'state'), log: silentLogger }),
    { message: /x\/state/ },
  )
})
