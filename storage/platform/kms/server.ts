/**
 * The kms: a process that holds master keys and wraps data keys with them. It serves clients whose public key is in
 * its directory, over a unix socket, and never discloses a master key.
 */
import { chmod, chown, mkdtemp, rename, rm, unlink } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { decodeRequest, encodeReply, FrameReader, frame, type KmsRequest } from './frames.js'
import { PAYLOAD_BYTES_MAX, type KmsReply } from './frames.js'
import { directoryVersion, type KeyDirectory, readKeyDirectory } from './key-directory.js'
import { KmsRefused } from './kms.js'
import { WRAP_OVERHEAD_BYTES } from './master-keys.js'
import { type Channel, respond } from './noise.js'

const CONNECTIONS_MAX = 64
/** Time limit for a client's authentication. */
const PRESENCE_DEADLINE_MS = 5_000
/** Interval of checks for new master keys and clients. */
const DIRECTORY_POLL_MS = 1_000
/** sun_path is 104 bytes on macOS and 108 on Linux, with its final zero. */
const SOCKET_PATH_BYTES_MAX = 103
const DRAFT_PREFIX = '.'
const DRAFT_NAME = 's'

interface KmsServer {
  readonly socketPath: string
  close(): Promise<void>
}

type ServeKms = {
  readonly socketPath: string
  readonly keysDirectory: string
  readonly random: Random
  readonly log: Logger
  /** Replaces the socket even if another kms is running. For exclusive owners of the path. */
  readonly replace?: boolean | undefined
  /** Group that may connect too, so that the service can run as another user. */
  readonly groupId?: number | undefined
}

/**
 * @throws {KeyFileRefused} if keys are missing or accessible to other users.
 * @throws if another kms is running on the socket path.
 */
export async function serveKms(options: ServeKms): Promise<KmsServer> {
  const { socketPath, keysDirectory, random, log } = options
  requireShort(socketPath)
  let version = await directoryVersion(keysDirectory).catch(() => '')
  let keys = await readKeyDirectory(keysDirectory, random)
  const connections = new Set<Connection>()

  const server = createServer((socket) => {
    const connection = new Connection(socket, () => keys, log)
    connections.add(connection)
    socket.on('close', () => connections.delete(connection))
  })
  server.maxConnections = CONNECTIONS_MAX
  if (!options.replace && (await answers(socketPath))) {
    throw new Error(`another kms is serving on ${socketPath}`)
  }
  await listenPrivately(server, socketPath, options.groupId)

  let complaint = ''
  const poll = setInterval(async () => {
    try {
      const seen = await directoryVersion(keysDirectory)
      if (seen === version) return
      keys = await readKeyDirectory(keysDirectory, random)
      version = seen
      complaint = ''
      for (const connection of connections) connection.recheck(keys)
      log.info({ masterKeyIds: keys.master.ids }, 'key directory reloaded')
    } catch (error) {
      // The directory is incomplete or unreadable: keep the loaded keys and try again later.
      const message = error instanceof Error ? error.message : String(error)
      if (message !== complaint) log.error({ err: message }, 'key directory cannot be read')
      complaint = message
    }
  }, DIRECTORY_POLL_MS)
  poll.unref()
  log.info({ socketPath, masterKeyIds: keys.master.ids }, 'kms is serving')

  return {
    socketPath,
    async close() {
      clearInterval(poll)
      const closed = new Promise((resolve) => server.close(resolve))
      for (const connection of connections) connection.cut('the kms is stopping')
      await closed
      if (!(await answers(socketPath))) await unlink(socketPath).catch(() => undefined)
    },
  }
}

/** One client connection. Frames are answered in order, with back pressure. */
class Connection {
  readonly #socket: Socket
  readonly #keys: () => KeyDirectory
  readonly #log: Logger
  readonly #frames = new FrameReader()
  readonly #deadline: NodeJS.Timeout
  #channel: Channel | undefined
  #clientKey: Uint8Array | undefined

  constructor(socket: Socket, keys: () => KeyDirectory, log: Logger) {
    this.#socket = socket
    this.#keys = keys
    this.#log = log
    this.#deadline = setTimeout(
      () => this.cut('the authentication timed out'),
      PRESENCE_DEADLINE_MS,
    )
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('drain', () => socket.resume())
    socket.on('error', (error) => this.cut(error.message))
    socket.on('close', () => clearTimeout(this.#deadline))
  }

  /** Disconnects a client whose key was removed from the directory. */
  recheck({ admits }: KeyDirectory): void {
    if (this.#clientKey !== undefined && !admits(this.#clientKey)) this.cut('no longer admitted')
  }

  cut(reason: string): void {
    if (this.#socket.destroyed) return
    this.#log.debug({ reason }, 'kms connection closed')
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    try {
      for (const message of this.#frames.push(chunk)) {
        if (this.#channel === undefined) this.#greet(message)
        else this.#serve(this.#channel, message)
      }
    } catch (error) {
      // Replayed, reordered, forged, truncated or oversized: the connection is closed.
      const reason = error instanceof Error ? error.message : 'broken frame'
      this.#log.warn({ reason }, 'kms connection refused')
      this.#socket.destroy()
    }
  }

  #greet(hello: Buffer): void {
    const { server, admits } = this.#keys()
    const { answer, channel } = respond(server, hello, (clientKey) => {
      this.#clientKey = Buffer.from(clientKey)
      return admits(clientKey)
    })
    this.#channel = channel
    this.#socket.write(frame(answer))
  }

  #serve(channel: Channel, message: Buffer): void {
    const request = decodeRequest(channel.open(message))
    clearTimeout(this.#deadline)
    const reply = encodeReply(answerTo(request, this.#keys()))
    const isTaken = this.#socket.write(frame(channel.seal(reply)))
    if (!isTaken) this.#socket.pause()
  }
}

function answerTo(request: KmsRequest, { master }: KeyDirectory): KmsReply {
  const { id, operation, context, payload } = request
  const done = (bytes: Uint8Array): KmsReply => ({ id, status: 'ok', payload: bytes })
  try {
    switch (operation) {
      case 'wrap':
        if (payload.length > PAYLOAD_BYTES_MAX) throw new KmsRefused('malformed')
        return done(master.wrap(context, payload))
      case 'unwrap':
        if (payload.length > PAYLOAD_BYTES_MAX + WRAP_OVERHEAD_BYTES) {
          throw new KmsRefused('malformed')
        }
        return done(master.unwrap(context, payload))
      case 'status':
        return done(Buffer.from(master.ids.join('\n')))
    }
  } catch (error) {
    const status = error instanceof KmsRefused ? error.reason : 'malformed'
    return { id, status, payload: new Uint8Array() }
  }
}

/**
 * Listens in a private directory (mode 0700, independent of the umask), restricts the socket's mode, and then renames
 * the socket to its path. So no other user can ever connect, and a stale socket file is replaced atomically.
 */
export async function listenPrivately(
  server: Server,
  socketPath: string,
  groupId: number | undefined,
): Promise<void> {
  const folder = await mkdtemp(join(dirname(socketPath), DRAFT_PREFIX))
  const draft = join(folder, DRAFT_NAME)
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(draft, () => {
        server.removeListener('error', reject)
        resolve()
      })
    })
    await chmod(draft, 0o600)
    if (groupId !== undefined) {
      await chown(draft, process.getuid?.() ?? 0, groupId)
      await chmod(draft, 0o660)
    }
    await rename(draft, socketPath)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** True if a process accepts connections on the socket. */
function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath)
    const end = (alive: boolean) => {
      socket.destroy()
      resolve(alive)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
  })
}

function requireShort(socketPath: string): void {
  // mkdtemp appends six characters.
  const draft = join(dirname(socketPath), `${DRAFT_PREFIX}XXXXXX`, DRAFT_NAME)
  const bytes = Math.max(Buffer.byteLength(socketPath), Buffer.byteLength(draft))
  if (bytes > SOCKET_PATH_BYTES_MAX) {
    throw new Error(
      `the socket path ${socketPath} is too long for a unix socket: use a shorter path`,
    )
  }
}
