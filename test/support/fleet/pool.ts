/**
 * Fleets of the runner. A test asks for one over a socket, and has it until it closes the connection. Those that tests share
 * (profiles.ts) end when no file has had them for a while. Their processes run the service of one fleet after another (hosts.ts): a new
 * process would take longer to start than most tests.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { startLocalKms } from '../../../runtime/process/embedded-kms.js'
import { makeCertificate } from '../service/certificates.js'
import type { TestKms } from '../storage/kms.js'
import { type FleetOptions, type Served, startFleet } from './fleet.js'
import { openHosts } from './hosts.js'
import { startSingle } from './single.js'
import { type Answer, firstLine, type PooledFleet, type WantedFleet } from './take.js'

export interface FleetPool {
  readonly socketPath: string
  readonly started: () => number
  /** Ends those that tests share: a file that runs again starts with new ones. Call it while no file runs. */
  renew(): void
  /** @returns what has gone wrong in fleets, such as a process that did not end cleanly. */
  end(): Promise<readonly string[]>
}

type Kept = { readonly fleet: Served; readonly folder: string }
type Shared = { readonly kept: Promise<Kept>; users: number; leaving?: NodeJS.Timeout }

/** A service that waits costs a fiftieth of a processor, and its start in a warm process a third of a second of one. */
const UNUSED_MS = 60_000

/** @param folder for the socket, the keys and the logs. */
export function openFleetPool(
  folder: string,
  options: Pick<FleetOptions, 'through' | 'coordination'>,
): Promise<FleetPool> {
  return openPool(folder, (wanted) => startFleet({ ...options, ...wanted, isPatient: true }))
}

/** Services of one process each, as `testService()` asks for them. @param folder as above */
export async function openServicePool(folder: string): Promise<FleetPool> {
  const certificate = makeCertificate()
  const pool = await openPool(folder, (wanted) => startSingle({ ...wanted, certificate }), false)
  return {
    ...pool,
    async end() {
      const problems = await pool.end()
      certificate.remove()
      return problems
    },
  }
}

async function openPool(
  folder: string,
  begin: (
    wanted: WantedFleet & Pick<FleetOptions, 'kms' | 'logFolder' | 'start'>,
  ) => Promise<Served>,
  isSerial = true,
): Promise<FleetPool> {
  const { kms, stop } = await ownKms(folder)
  const hosts = openHosts()
  const start = hosts.launch
  const beginOne = (wanted: WantedFleet, logFolder: string) =>
    begin({ ...wanted, kms, logFolder, start })
  const pool = await poolOf(folder, beginOne, isSerial)
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

/**
 * @param begin starts a fleet, whose logs are in a folder.
 * @param isSerial one starts at a time: a fleet has more processes than a machine of tests has processors.
 * @param unusedMs how long one that tests share waits for another test.
 */
export async function poolOf(
  folder: string,
  begin: (wanted: WantedFleet, logFolder: string) => Promise<Served>,
  isSerial = true,
  unusedMs = UNUSED_MS,
): Promise<FleetPool> {
  const running = new Set<Kept>()
  const pending = new Set<Promise<unknown>>()
  const problems: string[] = []
  let count = 0
  let starting: Promise<unknown> = Promise.resolve()
  /** By wishes. */
  const common = new Map<string, Shared>()

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
    if (isSerial) starting = started.catch(() => undefined)
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
    if (wanted.isShared !== true) {
      const kept = await start(wanted)
      return { kept, back: () => track(finish(kept)) }
    }
    // Files that need no second process share the first with those that do.
    const key = JSON.stringify({ ...wanted, by: undefined, isPair: undefined })
    let shared = common.get(key)
    if (shared === undefined) {
      shared = { kept: start(wanted), users: 0 }
      common.set(key, shared)
      // The next test tries again.
      shared.kept.catch(() => common.delete(key))
    }
    const taken = shared
    clearTimeout(taken.leaving)
    taken.users += 1
    const back = () => {
      taken.users -= 1
      if (taken.users > 0 || common.get(key) !== taken) return
      taken.leaving = setTimeout(() => leave(key, taken), unusedMs).unref()
    }
    return { kept: await taken.kept, back }
  }
  const leave = (key: string, { kept, leaving }: Shared) => {
    clearTimeout(leaving)
    common.delete(key)
    track(kept.then(finish))
  }
  const serve = async (socket: Socket): Promise<void> => {
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.on('error', () => undefined)
    const line = await firstLine(socket)
    if (line === undefined) return
    const answer = (what: Answer) => socket.write(`${JSON.stringify(what)}\n`)
    try {
      const wanted = JSON.parse(line) as WantedFleet
      const { kept, back } = await take(wanted)
      try {
        const secondUrl = wanted.isPair === true ? await kept.fleet.secondUrl?.() : undefined
        answer({ fleet: described(kept.fleet, secondUrl) })
        await closed
      } finally {
        back()
      }
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
    renew() {
      for (const [key, shared] of common) leave(key, shared)
    },
    async end() {
      server.close()
      for (const { leaving } of common.values()) clearTimeout(leaving)
      common.clear()
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

function described(
  { baseUrl, ca, db, kms, coordination, processes }: Served,
  secondUrl: string | undefined,
): PooledFleet {
  return {
    baseUrl,
    secondUrl,
    ca,
    url: db.url,
    superuserUrl: db.superuserUrl,
    environment: { kms: kms.environment, coordination: coordination.environment },
    logPaths: processes.map(({ logPath }) => logPath!),
  }
}
