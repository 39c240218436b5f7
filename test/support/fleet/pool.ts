/**
 * Fleets of the runner. A test asks for one over a socket, and has it until it closes the connection. Their processes run
 * the service of one fleet after another (hosts.ts): a new process would take longer to start than most tests.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { startLocalKms } from '../../../runtime/process/embedded-kms.js'
import type { TestHost } from '../service/settings.js'
import type { TestKms } from '../storage/kms.js'
import { type Fleet, type FleetOptions, startFleet } from './fleet.js'
import { openHosts } from './hosts.js'

/** What a test knows of a fleet of the runner. */
export type PooledFleet = {
  readonly baseUrl: string
  readonly ca: string
  readonly url: string
  readonly superuserUrl: string
  /** SVC_ variables of another process of the fleet. */
  readonly environment: { readonly kms: Variables; readonly coordination: Variables }
  /** The logs of its processes. */
  readonly logPaths: readonly string[]
}

export type WantedFleet = {
  readonly environment: Variables
  readonly host?: TestHost | undefined
}

export interface FleetPool {
  readonly socketPath: string
  readonly started: () => number
  /** @returns what has gone wrong in fleets, such as a process that did not end cleanly. */
  end(): Promise<readonly string[]>
}

type Variables = Readonly<Record<string, string>>
type Answer = { readonly fleet: PooledFleet } | { readonly error: string }
type Kept = { readonly fleet: Fleet; readonly folder: string }

/** @param folder for the socket, the keys and the logs. */
export async function openFleetPool(
  folder: string,
  options: Pick<FleetOptions, 'through' | 'coordination'>,
): Promise<FleetPool> {
  const { kms, stop } = await ownKms(folder)
  const hosts = openHosts()
  const pool = await poolOf(folder, (wanted, logFolder) =>
    startFleet({ ...options, ...wanted, kms, logFolder, start: hosts.launch, isPatient: true }),
  )
  return {
    ...pool,
    async end() {
      const problems = await pool.end()
      await hosts.end()
      await stop()
      return problems
    },
  }
}

/** @param begin starts a fleet, whose logs are in a folder. */
export async function poolOf(
  folder: string,
  begin: (wanted: WantedFleet, logFolder: string) => Promise<Fleet>,
): Promise<FleetPool> {
  const running = new Set<Kept>()
  const pending = new Set<Promise<unknown>>()
  const problems: string[] = []
  let count = 0
  /** One at a time: a fleet that starts has more processes than a machine of tests has processors. */
  let starting: Promise<unknown> = Promise.resolve()
  /** Tests without settings use this one at the same time. */
  let common: Promise<Kept> | undefined

  const track = (work: Promise<unknown>): void => {
    const over: Promise<unknown> = work
      .catch((error: unknown) => problems.push(String(error)))
      .then(() => pending.delete(over))
    pending.add(over)
  }
  const start = (wanted: WantedFleet): Promise<Kept> => {
    const started = starting.then(async () => {
      count += 1
      const logFolder = mkdtempSync(join(folder, 'fleet-'))
      const kept = { fleet: await begin(wanted, logFolder), folder: logFolder }
      running.add(kept)
      return kept
    })
    starting = started.catch(() => undefined)
    return started
  }
  const finish = async (kept: Kept): Promise<void> => {
    running.delete(kept)
    try {
      await kept.fleet.end()
    } finally {
      rmSync(kept.folder, { recursive: true, force: true })
    }
  }
  const take = async (wanted: WantedFleet): Promise<{ kept: Kept; back: () => void }> => {
    if (Object.keys(wanted.environment).length > 0 || wanted.host !== undefined) {
      const kept = await start(wanted)
      return { kept, back: () => track(finish(kept)) }
    }
    common ??= start(wanted)
    // The next test tries again.
    common.catch(() => (common = undefined))
    return { kept: await common, back: () => undefined }
  }
  const serve = async (socket: Socket): Promise<void> => {
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.on('error', () => undefined)
    const line = await firstLine(socket)
    if (line === undefined) return
    const answer = (what: Answer) => socket.write(`${JSON.stringify(what)}\n`)
    try {
      const { kept, back } = await take(JSON.parse(line) as WantedFleet)
      answer({ fleet: described(kept.fleet) })
      await closed
      back()
    } catch (error) {
      answer({ error: String(error) })
      socket.end()
      await closed
    }
  }
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    track(serve(socket))
  })
  const socketPath = join(folder, 'fleets')
  server.listen(socketPath)
  await once(server, 'listening')
  return {
    socketPath,
    started: () => count,
    async end() {
      server.close()
      for (const socket of sockets) socket.destroy()
      while (pending.size > 0) await Promise.all(pending)
      for (const kept of running) track(finish(kept))
      await Promise.all(pending)
      return problems
    },
  }
}

/**
 * A process for the keys of all fleets. In the process of the runner it would answer too late while that one reads
 * results.
 */
async function ownKms(folder: string): Promise<{ kms: TestKms; stop: () => Promise<void> }> {
  const { settings, stop } = await startLocalKms({ dataDir: folder, log: silentLogger })
  const refuse = () => Promise.reject(new Error('the kms of the pool has other users'))
  const kms = {
    environment: {
      SVC_KMS__SOCKET_PATH: settings.socket_path,
      SVC_KMS__SERVER_PUBLIC_KEY_PATH: settings.server_public_key_path,
      SVC_KMS__CLIENT_PRIVATE_KEY_PATH: settings.client_private_key_path,
    },
    interrupt: refuse,
    freeze: refuse,
    resume: refuse,
    end: refuse,
  }
  return { kms, stop }
}

/**
 * Waits until the runner has a fleet with these settings. @throws where it does not start.
 *
 * @returns it, with what gives it back.
 */
export async function takeFleet(
  socketPath: string,
  wanted: WantedFleet,
): Promise<{ readonly fleet: PooledFleet; giveBack(): Promise<void> }> {
  const socket = connect(socketPath)
  await once(socket, 'connect')
  const closed = once(socket, 'close')
  socket.write(`${JSON.stringify(wanted)}\n`)
  const line = await firstLine(socket)
  if (line === undefined) throw new Error('the pool of fleets has ended')
  const answer = JSON.parse(line) as Answer
  if ('error' in answer) {
    socket.destroy()
    throw new Error(answer.error)
  }
  // A test that keeps its fleet does not keep its process.
  socket.unref()
  return {
    fleet: answer.fleet,
    async giveBack() {
      socket.ref()
      socket.end()
      await closed
    },
  }
}

function described({ baseUrl, ca, db, kms, coordination, processes }: Fleet): PooledFleet {
  return {
    baseUrl,
    ca,
    url: db.url,
    superuserUrl: db.superuserUrl,
    environment: { kms: kms.environment, coordination: coordination.environment },
    logPaths: processes.map(({ logPath }) => logPath!),
  }
}

/** Undefined where the connection ends before. The rest is read and dropped, so that its end is seen. */
async function firstLine(socket: Socket): Promise<string | undefined> {
  const lines = createInterface({ input: socket })
  const line = await new Promise<string | undefined>((resolve) => {
    lines.once('line', resolve)
    lines.once('close', () => resolve(undefined))
  })
  lines.close()
  socket.resume()
  return line
}
