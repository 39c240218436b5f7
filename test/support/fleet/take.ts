/** What a test and the pool of the runner (pool.ts) say to each other. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { TestHost, Transport } from '../service/settings.js'

/** What a test knows of a fleet of the runner. */
export type PooledFleet = {
  readonly baseUrl: string
  /** The URL of a second process, if the caller asked for one. */
  readonly secondUrl?: string | undefined
  /** Undefined for plain_http. */
  readonly ca: string | undefined
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
  /** The transport of a single service. Fleets have one transport. */
  readonly transport?: Transport | undefined
  /** Tests with the same wishes use it at the same time. Otherwise it ends with its test. */
  readonly isShared?: boolean | undefined
  /** A profile or a test file, for the count of starts. */
  readonly by?: string | undefined
  /** A single service has a second process on the same database. Fleets have several anyway. */
  readonly isPair?: boolean | undefined
}

export type Variables = Readonly<Record<string, string>>
export type Answer = { readonly fleet: PooledFleet } | { readonly error: string }

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

/** Undefined where the connection ends before. The rest is read and dropped, so that its end is seen. */
export async function firstLine(socket: Socket): Promise<string | undefined> {
  const lines = createInterface({ input: socket })
  const line = await new Promise<string | undefined>((resolve) => {
    lines.once('line', resolve)
    lines.once('close', () => resolve(undefined))
  })
  lines.close()
  socket.resume()
  return line
}
