import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { type LocalKms, startLocalKms } from '../../../runtime/process/embedded-kms.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { openKms } from '../../../storage/platform/kms/client.js'
import { KmsUnavailable } from '../../../storage/platform/kms/kms.js'

const log = silentLogger
const secret = new Uint8Array(32).fill(5)
const dist = fileURLToPath(new URL('../../..', import.meta.url))

async function folder(t: ExecutionContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'svc-local-'))
  t.teardown(() => rm(path, { recursive: true, force: true }))
  return path
}

async function start(t: ExecutionContext, dataDir: string): Promise<LocalKms> {
  const local = await startLocalKms({ dataDir, log })
  t.teardown(() => local.stop())
  return local
}

async function clientOf(t: ExecutionContext, { settings }: LocalKms) {
  const kms = await openKms({
    socketPath: settings.socket_path,
    serverPublicKeyPath: settings.server_public_key_path,
    clientPrivateKeyPath: settings.client_private_key_path,
    log,
    clock: systemClock,
  })
  t.teardown(() => kms.close())
  return kms
}

test('a local kms keeps its keys across a restart, and stop leaves no process running', async (t) => {
  const dataDir = await folder(t)
  const first = await start(t, dataDir)
  const wrapped = await (await clientOf(t, first)).wrap('a', secret)
  const pid = first.pid()!
  t.true(isAlive(pid))
  t.is((await stat(join(dataDir, 'kms'))).mode & 0o777, 0o700)
  await first.stop()
  t.false(isAlive(pid))
  const second = await start(t, dataDir)
  t.deepEqual(await (await clientOf(t, second)).unwrap('a', wrapped), secret)
})

test('a killed local kms is started again, and the client recovers', async (t) => {
  const local = await start(t, await folder(t))
  const kms = await clientOf(t, local)
  const wrapped = await kms.wrap('a', secret)
  const pid = local.pid()!
  process.kill(pid, 'SIGKILL')
  await eventually(() => !isAlive(pid))
  await eventually(async () => (await kms.health()).state === 'up')
  t.not(local.pid(), pid)
  t.deepEqual(await kms.unwrap('a', wrapped), secret)
  await local.stop()
  await t.throwsAsync(kms.wrap('a', secret), { instanceOf: KmsUnavailable })
})

test('stopping during a restart leaves no process running', async (t) => {
  const local = await start(t, await folder(t))
  const pid = local.pid()!
  process.kill(pid, 'SIGKILL')
  await eventually(() => local.pid() !== pid)
  await local.stop()
  t.is(local.pid(), undefined)
})

test('a kms ends with its killed service, and the next start gets the same keys', async (t) => {
  const dataDir = await folder(t)
  const script = `
    import { startLocalKms } from ${JSON.stringify(join(dist, 'runtime/process/embedded-kms.js'))}
    import { silentLogger } from ${JSON.stringify(join(dist, 'runtime/kernel/log.js'))}
    const local = await startLocalKms({ dataDir: ${JSON.stringify(dataDir)}, log: silentLogger })
    process.stdout.write(String(local.pid()))
    setInterval(() => {}, 1000)
  `
  const service = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => service.kill('SIGKILL'))
  const [chunk] = await once(service.stdout, 'data')
  const pid = Number(String(chunk))
  t.true(isAlive(pid))
  const keyPath = join(dataDir, 'kms', 'keys', 'server.public')
  const key = await readFile(keyPath, 'utf8')
  service.kill('SIGKILL')
  // Not awaited: a new start replaces the remains of the old kms.
  const local = await start(t, dataDir)
  t.is((await (await clientOf(t, local)).health()).state, 'up')
  t.is(await readFile(keyPath, 'utf8'), key)
  await eventually(() => !isAlive(pid))
  t.is((await (await clientOf(t, local)).health()).state, 'up', 'the old one takes nothing along')
})

test('a kms that hangs on the socket is replaced', async (t) => {
  const dataDir = await folder(t)
  const hung = await startLocalKms({ dataDir, log })
  const pid = hung.pid()!
  process.kill(pid, 'SIGSTOP')
  t.teardown(async () => {
    process.kill(pid, 'SIGKILL')
    await hung.stop()
  })
  const local = await start(t, dataDir)
  t.is((await (await clientOf(t, local)).health()).state, 'up')
})

test('stop ends a kms that no longer listens', async (t) => {
  const local = await start(t, await folder(t))
  const pid = local.pid()!
  process.kill(pid, 'SIGSTOP')
  await local.stop()
  t.false(isAlive(pid))
})

test('a data directory with a path too long for a socket works', async (t) => {
  const local = await start(t, join(await folder(t), 'd'.repeat(100)))
  t.is((await (await clientOf(t, local)).health()).state, 'up')
  t.true(local.settings.socket_path.length < 100)
  const parent = join(local.settings.socket_path, '..')
  t.is((await stat(parent)).mode & 0o777, 0o700)
  t.teardown(() => rm(parent, { recursive: true, force: true }))
})

/** Runs `svc kms` like an operator. */
function svcKms(...words: string[]): ChildProcess {
  return spawn(process.execPath, [join(dist, 'runtime/cli/kms-process.js'), 'kms', ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
async function ended(child: ChildProcess): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', '']
  child.stdout?.on('data', (chunk) => {
    out += chunk
  })
  child.stderr?.on('data', (chunk) => {
    err += chunk
  })
  const [code] = await once(child, 'close')
  return { code, out, err }
}

test('svc kms keygen, rotate and serve work from the command line', async (t) => {
  const keys = join(await folder(t), 'keys')
  const made = await ended(svcKms('keygen', '--dir', keys))
  t.is(made.code, 0, made.err)
  t.true(made.out.includes('client_private_key_path'))
  const again = await ended(svcKms('keygen', '--dir', keys))
  t.is(again.code, 1)
  t.regex(again.err, /not empty: keys are never overwritten/)
  const rotated = await ended(svcKms('rotate', '--keys', keys))
  t.regex(rotated.out, /Master key 2-[0-9a-f]{16}/)
  const socket = join(keys, '..', 's')
  const serving = svcKms('serve', '--socket', socket, '--keys', keys, '--log-level', 'silent')
  const outcome = ended(serving)
  await once(serving.stdout!, 'data')
  t.is((await stat(socket)).mode & 0o777, 0o600)
  const second = await ended(svcKms('serve', '--socket', socket, '--keys', keys))
  t.is(second.code, 1)
  t.regex(second.err, /another kms is serving/)
  serving.kill('SIGTERM')
  t.is((await outcome).code, 0)
  await t.throwsAsync(stat(socket), { code: 'ENOENT' })
})

test('svc kms serve writes lines for people on a terminal, and JSON elsewhere', async (t) => {
  const dir = await folder(t)
  const keys = join(dir, 'keys')
  t.is((await ended(svcKms('keygen', '--dir', keys))).code, 0)
  const socket = join(dir, 's')
  const command = `'${process.execPath}' '${join(dist, 'runtime/cli/kms-process.js')}' kms serve --socket '${socket}' --keys '${keys}'`
  for (const [argv, isText] of [
    [['script', '-qefc', command, '/dev/null'], true],
    [['sh', '-c', `exec ${command} 2>&1`], false],
  ] as const) {
    const serving = spawn(argv[0], argv.slice(1), { stdio: ['pipe', 'pipe', 'pipe'] })
    let out = ''
    serving.stdout.on('data', (chunk) => (out += String(chunk)))
    await eventually(() => out.includes('serving') && out.includes('kms '))
    t.is(!out.includes('{"level"'), isText, out)
    serving.kill('SIGTERM')
    await once(serving, 'exit')
  }
})

test('svc kms serve without keys names the command that creates them', async (t) => {
  const keys = join(await folder(t), 'none')
  const { code, err } = await ended(svcKms('serve', '--socket', `${keys}.s`, '--keys', keys))
  t.is(code, 1)
  t.regex(err, /run svc kms keygen --dir/)
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 20_000
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error('it did not come about')
    await sleep(20)
  }
}
