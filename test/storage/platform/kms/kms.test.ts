import { statSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { Registry } from 'prom-client'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import { type OpenKms, openKms } from '../../../../storage/platform/kms/client.js'
import {
  decodeReply,
  encodeRequest,
  FrameReader,
  frame,
  type Operation,
} from '../../../../storage/platform/kms/frames.js'
import {
  generateKeyDirectory,
  rotateMasterKey,
} from '../../../../storage/platform/kms/key-directory.js'
import { keyPaths, readKeyFile, writeKeyFile } from '../../../../storage/platform/kms/key-files.js'
import { KmsRefused, KmsUnavailable } from '../../../../storage/platform/kms/kms.js'
import { generateKeyPair, initiate, keyPairOf } from '../../../../storage/platform/kms/noise.js'
import { listenPrivately, serveKms } from '../../../../storage/platform/kms/server.js'

const random = systemRandom(systemClock)
const log = silentLogger
const secret = new Uint8Array(32).fill(9)

/** A real kms on a separate socket, in the test process. */
async function kmsOn(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-kms-'))
  const keysDirectory = join(folder, 'keys')
  const socketPath = join(folder, 's')
  await generateKeyDirectory(keysDirectory, random)
  const paths = keyPaths(keysDirectory)
  const serve = () => serveKms({ socketPath, keysDirectory, random, log })
  let server = await serve()
  const client = async (changes: Partial<OpenKms> = {}) => {
    const kms = await openKms({
      socketPath,
      serverPublicKeyPath: paths.serverPublic,
      clientPrivateKeyPath: paths.clientPrivate,
      log,
      clock: systemClock,
      ...changes,
    })
    t.teardown(() => kms.close())
    return kms
  }
  t.teardown(async () => {
    await server.close()
    await rm(folder, { recursive: true, force: true })
  })
  const restart = async () => {
    server = await serve()
  }
  return { folder, keysDirectory, socketPath, paths, client, restart, stop: () => server.close() }
}

test('what was wrapped opens with its own context and no other', async (t) => {
  const { client } = await kmsOn(t)
  const kms = await client()
  const wrapped = await kms.wrap('data_key:a:1', secret)
  t.deepEqual(await kms.unwrap('data_key:a:1', wrapped), secret)
  const moved = await t.throwsAsync(kms.unwrap('data_key:b:1', wrapped), { instanceOf: KmsRefused })
  t.is(moved.reason, 'does_not_open')
  for (const at of [1, 6, 14, wrapped.length - 1]) {
    const changed = wrapped.slice()
    changed[at]! ^= 1
    await t.throwsAsync(kms.unwrap('data_key:a:1', changed), { instanceOf: KmsRefused })
  }
  await t.throwsAsync(kms.unwrap('data_key:a:1', wrapped.slice(0, 20)), { message: /malformed/ })
  t.deepEqual(await kms.unwrap('data_key:a:1', wrapped), secret, 'refusals cost no connection')
})

test('the bounds of context and payload are exact', async (t) => {
  const { client } = await kmsOn(t)
  const kms = await client()
  const largest = new Uint8Array(4_096).fill(1)
  const wrapped = await kms.wrap('c'.repeat(512), largest)
  t.deepEqual(await kms.unwrap('c'.repeat(512), wrapped), largest)
  await t.throwsAsync(kms.wrap('c'.repeat(513), secret), { instanceOf: RangeError })
  await t.throwsAsync(kms.wrap('é'.repeat(257), secret), { instanceOf: RangeError })
  await t.throwsAsync(kms.wrap('c', new Uint8Array(4_097)), { instanceOf: RangeError })
})

test('concurrent requests share one connection, and too many are refused without waiting', async (t) => {
  const { client } = await kmsOn(t)
  const registry = new Registry()
  const kms = await client({ registry })
  const asked = Array.from({ length: 256 }, (_, index) => kms.wrap(`c${index}`, secret))
  await t.throwsAsync(kms.wrap('one more', secret), { message: /too many/ })
  const wrapped = await Promise.all(asked)
  const opened = await Promise.all(wrapped.map((each, index) => kms.unwrap(`c${index}`, each)))
  t.true(opened.every((each) => Buffer.from(each).equals(secret)))
  const metrics = await registry.metrics()
  t.regex(metrics, /svc_kms_requests_total\{operation="wrap",outcome="ok"\} 256/)
  t.regex(metrics, /svc_kms_requests_total\{operation="wrap",outcome="unavailable"\} 1/)
  t.regex(metrics, /svc_kms_connected 1/)
})

test('the socket is never open to other users while it is made, whatever the umask', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kms-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await chmod(folder, 0o777)
  const server = createServer()
  t.teardown(() => server.close())
  const around: number[] = []
  const listen = server.listen.bind(server)
  server.listen = ((path: string, listening: () => void) => {
    around.push(statSync(dirname(path)).mode & 0o777)
    return listen(path, listening)
  }) as typeof server.listen
  await listenPrivately(server, join(folder, 's'), undefined)
  t.deepEqual(around, [0o700])
  t.deepEqual(await readdir(folder), ['s'], 'no draft is left')
  t.is((await stat(join(folder, 's'))).mode & 0o777, 0o600)
})

test('the socket is closed to other users', async (t) => {
  const { socketPath } = await kmsOn(t)
  t.is((await stat(socketPath)).mode & 0o777, 0o600)
})

test('a group may connect, and no other user', async (t) => {
  const { folder, keysDirectory } = await kmsOn(t)
  const groupId = process.getgid?.() ?? 0
  const socketPath = join(folder, 'g')
  const server = await serveKms({ socketPath, keysDirectory, random, log, groupId })
  t.teardown(() => server.close())
  const { mode, gid } = await stat(socketPath)
  t.is(mode & 0o777, 0o660)
  t.is(gid, groupId)
})

test('a client that expects another server key gets no answer', async (t) => {
  const { client, folder } = await kmsOn(t)
  const serverPublicKeyPath = join(folder, 'other.public')
  await writeKeyFile('public', serverPublicKeyPath, generateKeyPair().publicKey)
  const kms = await client({ serverPublicKeyPath })
  await t.throwsAsync(kms.wrap('a', secret), { instanceOf: KmsUnavailable })
  t.is((await kms.health()).state, 'down')
})

test('a client whose key is not in the directory is not admitted', async (t) => {
  const { client, folder, paths } = await kmsOn(t)
  const stranger = generateKeyPair()
  const clientPrivateKeyPath = join(folder, 'stranger.private')
  await writeKeyFile('private', clientPrivateKeyPath, stranger.secretKey)
  const kms = await client({ clientPrivateKeyPath })
  await t.throwsAsync(kms.wrap('a', secret), { instanceOf: KmsUnavailable })
  await writeKeyFile('public', join(paths.clients, 'stranger.public'), stranger.publicKey)
  await eventually(async () => (await kms.health()).state === 'up')
  t.deepEqual(await kms.unwrap('a', await kms.wrap('a', secret)), secret)
  await rm(join(paths.clients, 'stranger.public'))
  await eventually(async () => (await kms.health()).state === 'down')
  t.pass('and it is cut off when its key is taken away')
})

test('a false server that replays an earlier conversation does not pass', async (t) => {
  const { client, folder, socketPath } = await kmsOn(t)
  // A relay that records the responses of the server.
  const recorded: Buffer[] = []
  const tap = join(folder, 'tap')
  const relay = createServer((near) => {
    const far = connect(socketPath)
    near.pipe(far)
    far.on('data', (chunk) => {
      recorded.push(chunk)
      near.write(chunk)
    })
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  })
  await listen(t, relay, tap)
  const honest = await client({ socketPath: tap })
  await honest.wrap('a', secret)
  t.true(recorded.length > 0)
  const falsePath = join(folder, 'false')
  const parrot = createServer((near) => {
    near.on('error', () => near.destroy())
    near.write(Buffer.concat(recorded))
  })
  await listen(t, parrot, falsePath)
  const deceived = await client({ socketPath: falsePath })
  await t.throwsAsync(deceived.wrap('a', secret), { instanceOf: KmsUnavailable })
})

/** A client that can violate the protocol. */
async function rawClient(t: ExecutionContext, kms: Awaited<ReturnType<typeof kmsOn>>) {
  const own = keyPairOf(await readKeyFile('private', kms.paths.clientPrivate))
  const initiator = initiate(own, await readKeyFile('public', kms.paths.serverPublic))
  const socket = connect(kms.socketPath)
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  const reader = new FrameReader()
  const inbox: Buffer[] = []
  socket.on('data', (chunk) => inbox.push(...reader.push(chunk)))
  const next = async () => {
    await eventually(async () => inbox.length > 0)
    return inbox.shift()!
  }
  socket.write(frame(initiator.hello))
  const channel = initiator.finish(await next())
  const request = (
    id: number,
    operation: Operation = 'status',
    payload: Uint8Array = new Uint8Array(),
  ) => frame(channel.seal(encodeRequest({ id, operation, context: '', payload })))
  const reply = async () => decodeReply(channel.open(await next()))
  return { socket, request, reply, hello: initiator.hello, isQuiet: () => inbox.length === 0 }
}

for (const [title, breakIt] of [
  ['a replayed frame', (first: Buffer, _second: Buffer) => [first, first]],
  ['reordered frames', (first: Buffer, second: Buffer) => [second, first]],
  ['a frame with one bit changed', (first: Buffer) => [flipped(first)]],
  ['a length above the maximum', () => [Buffer.from([0xff, 0xff])]],
  ['a length below the minimum', () => [Buffer.from([0, 1, 0])]],
] as const) {
  test(`${title} closes the connection`, async (t) => {
    const kms = await kmsOn(t)
    const raw = await rawClient(t, kms)
    raw.socket.write(raw.request(1))
    t.is((await raw.reply()).id, 1, 'in order it is served')
    const [first, second] = [raw.request(2), raw.request(3)]
    raw.socket.write(Buffer.concat([...breakIt(first, second)]))
    await closed(raw.socket)
    t.deepEqual(
      await (await kms.client()).health().then(({ state }) => state),
      'up',
      'others are served on',
    )
  })
}

test('a frame that is cut short is not answered, and its client does not block others', async (t) => {
  const kms = await kmsOn(t)
  const raw = await rawClient(t, kms)
  raw.socket.write(raw.request(1).subarray(0, 20))
  const other = await kms.client()
  t.deepEqual(await other.unwrap('a', await other.wrap('a', secret)), secret)
  t.true(raw.isQuiet())
})

test('a replayed first message wins nothing but an answer that cannot be read', async (t) => {
  const kms = await kmsOn(t)
  const raw = await rawClient(t, kms)
  const recordedRequest = raw.request(1)
  const replayer = connect(kms.socketPath)
  replayer.on('error', () => undefined)
  replayer.write(Buffer.concat([frame(raw.hello), recordedRequest]))
  await closed(replayer)
  // The answer to a first message, and none to the recorded request.
  t.is(replayer.bytesRead, raw.socket.bytesRead)
})

test('a client that does not read its answers is not read from either', async (t) => {
  const kms = await kmsOn(t)
  const raw = await rawClient(t, kms)
  raw.socket.pause()
  const payload = new Uint8Array(4_096)
  for (let id = 1; id <= 3_000; id += 1) raw.socket.write(raw.request(id, 'wrap', payload))
  const other = await kms.client()
  t.deepEqual(await other.unwrap('a', await other.wrap('a', secret)), secret)
  await sleep(500)
  t.true(raw.socket.writableLength > 6_000_000, 'most of 12 MB waits on the side of the client')
})

test('noise on the socket is refused', async (t) => {
  const { socketPath } = await kmsOn(t)
  for (const bytes of [
    'GET / HTTP/1.1\r\n\r\n',
    `\0\x60${'x'.repeat(96)}`,
    `\0\x10${'y'.repeat(16)}`,
  ]) {
    const socket = connect(socketPath)
    socket.on('error', () => undefined)
    socket.write(Buffer.from(bytes, 'latin1'))
    await closed(socket)
    t.is(socket.bytesRead, 0)
  }
})

test('without the kms a client fails immediately, and recovers when it is back', async (t) => {
  const { client, stop, restart } = await kmsOn(t)
  const kms = await client()
  const wrapped = await kms.wrap('a', secret)
  await stop()
  for (let index = 0; index < 50; index += 1) {
    // The reason says that no request waited for a time limit.
    await t.throwsAsync(kms.wrap('a', secret), {
      instanceOf: KmsUnavailable,
      message: /^(?!no response|the handshake timed out)/,
    })
  }
  const down = await kms.health()
  t.true(down.state === 'down' && /is unavailable/.test(down.reason))
  await restart()
  await eventually(async () => (await kms.health()).state === 'up')
  t.deepEqual(await kms.unwrap('a', wrapped), secret)
})

test('requests under way fail when the connection breaks', async (t) => {
  const { client, stop } = await kmsOn(t)
  const kms = await client()
  await kms.wrap('a', secret)
  const asked = Promise.allSettled(Array.from({ length: 50 }, () => kms.wrap('a', secret)))
  await stop()
  const others = (await asked).filter(
    (outcome) => outcome.status === 'rejected' && !(outcome.reason instanceof KmsUnavailable),
  )
  t.deepEqual(others, [])
})

test('a kms that accepts and says nothing is given up within the time limit', async (t) => {
  const { client, folder } = await kmsOn(t)
  const socketPath = join(folder, 'mute')
  await listen(
    t,
    createServer((socket) => socket.on('error', () => undefined)),
    socketPath,
  )
  const kms = await client({ socketPath, requestTimeoutMs: 100 })
  await t.throwsAsync(kms.wrap('a', secret), { message: /handshake timed out/ })
})

test.serial('a stall of this process does not count as silence of the kms', async (t) => {
  const { client } = await kmsOn(t)
  const kms = await client({ requestTimeoutMs: 500 })
  await kms.wrap('first', secret)
  const wrapping = kms.wrap('second', secret)
  const until = performance.now() + 1500
  while (performance.now() < until);
  const wrapped = await wrapping
  t.deepEqual(await kms.unwrap('second', wrapped), secret)
})

test('a running kms takes a rotated master key up, and old wraps still open', async (t) => {
  const { client, keysDirectory } = await kmsOn(t)
  const kms = await client()
  const old = await kms.wrap('a', secret)
  await rotateMasterKey(keysDirectory, random)
  await eventually(async () => {
    const health = await kms.health()
    return health.state === 'up' && health.masterKeyIds.length === 2
  })
  const renewed = await kms.wrap('a', secret)
  t.is(old[4], 1)
  t.is(renewed[4], 2)
  t.deepEqual(await kms.unwrap('a', old), secret)
  t.deepEqual(await kms.unwrap('a', renewed), secret)
})

test('a broken key file does not stop a running kms', async (t) => {
  const { client, keysDirectory } = await kmsOn(t)
  const kms = await client()
  await writeFile(join(keysDirectory, 'master-2.key'), 'half', { mode: 0o600 })
  await sleep(1_500)
  const health = await kms.health()
  t.true(health.state === 'up' && health.masterKeyIds.length === 1)
})

test('a second kms on the same socket is refused, a stale socket file is replaced', async (t) => {
  const { keysDirectory, socketPath, stop, restart } = await kmsOn(t)
  const second = { socketPath, keysDirectory, random, log }
  await t.throwsAsync(serveKms(second), { message: /another kms is serving/ })
  await stop()
  await leaveStaleSocket(socketPath)
  await t.throwsAsync(connected(socketPath), { code: 'ECONNREFUSED' })
  await restart()
  await connected(socketPath)
})

/** A socket file without a listener: a server removes the name that it was bound to, not a later one. */
async function leaveStaleSocket(path: string): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve) => {
    server.listen(`${path}.bound`, resolve)
  })
  await rename(`${path}.bound`, path)
  await new Promise((resolve) => server.close(resolve))
}

function connected(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    socket.on('error', reject)
    socket.on('connect', () => {
      socket.destroy()
      resolve()
    })
  })
}

test('a socket path too long for a unix socket is refused in words', async (t) => {
  const { keysDirectory, folder } = await kmsOn(t)
  const socketPath = join(folder, 'x'.repeat(120))
  await t.throwsAsync(serveKms({ socketPath, keysDirectory, random, log }), { message: /too long/ })
})

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  copy[10]! ^= 1
  return copy
}

async function listen(t: ExecutionContext, server: ReturnType<typeof createServer>, path: string) {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  await new Promise<void>((resolve) => {
    server.listen(path, resolve)
  })
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
}

/** Resolves when the peer has closed the socket. Fails at a time limit. */
async function closed(socket: Socket): Promise<void> {
  socket.resume()
  await eventually(async () => socket.destroyed || socket.readableEnded)
}

async function eventually(condition: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 15_000
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error('it did not come about')
    await sleep(20)
  }
}
