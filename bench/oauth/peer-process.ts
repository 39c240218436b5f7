/** A measured server in a separate process, as a rule pinned to one core if `taskset` is available. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Pool } from 'undici'
import type { Spent } from '../foreign-program.js'
import { type Measured, percentiles } from '../harness.js'
import { pinned, wrk } from '../wrk.js'
import type { Answered, Asked, Code, Peer } from './protocol.js'

const IN_FLIGHT = 32

type Form = Readonly<Record<string, string>>

/** A token endpoint under repeated load. */
export interface Hammered {
  readonly peer: Peer
  /** Sends the same form repeatedly with wrk, which measures the cost of a request for the server. */
  hammer(path: string, fields: Form, ms: number): Promise<Measured>
  stop(): Promise<void>
}

export interface PeerProcess extends Hammered {
  /** Repeats a GET without a body. */
  get(path: string, ms: number): Promise<Measured>
  /** Its CPU time and its resident memory, with the client that makes codes and tokens. */
  spent(): Promise<Spent>
  codes(count: number): Promise<readonly Code[]>
  refreshTokens(count: number): Promise<readonly string[]>
  /**
   * Sends each form once, `IN_FLIGHT` at a time.
   * @throws at the first answer other than 200.
   */
  spend(
    path: string,
    forms: Iterable<Form>,
    seen?: (answer: Readonly<Record<string, unknown>>) => void,
  ): Promise<Measured>
}

/** Starts `script` of this folder and waits for its address. @param isPinned to one core. */
export async function startPeer(
  script: string,
  args: readonly string[],
  isPinned = true,
): Promise<PeerProcess> {
  const file = new URL(`./${script}.js`, import.meta.url).pathname
  const [command, ...before] = [...(isPinned ? pinned(0) : []), process.execPath, file]
  const child = spawn(command!, [...before, ...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const [first] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([status]) => {
      throw new Error(`${script} ended with ${status} before it listened`)
    }),
  ])) as [Answered]
  const peer = first.peer!
  const client = new Pool(`http://127.0.0.1:${peer.port}`, { connections: IN_FLIGHT })
  const spent = async () => (await ask(child, { ask: 'spent' })).spent!
  const cpu = async () => (await spent()).cpuSeconds

  return {
    peer,
    spent,
    codes: async (count) => (await ask(child, { ask: 'codes', count })).codes!,
    refreshTokens: async (count) =>
      (await ask(child, { ask: 'refreshTokens', count })).refreshTokens!,
    hammer: (path, fields, ms) => hammer(peer.port, cpu, path, fields, ms),
    async get(path, ms) {
      const before = await cpu()
      const url = `http://127.0.0.1:${peer.port}${path}`
      const measured = await wrk(url, { method: 'GET', headers: {} }, IN_FLIGHT, ms)
      return { ...measured, cpuSeconds: (await cpu()) - before }
    },
    async spend(path, forms, seen) {
      const took: number[] = []
      const waiting = forms[Symbol.iterator]()
      const cpuBefore = await cpu()
      const start = performance.now()
      await Promise.all(
        Array.from({ length: IN_FLIGHT }, async () => {
          for (let form = waiting.next(); form.done !== true; form = waiting.next()) {
            const sent = performance.now()
            const answer = await client.request({
              method: 'POST',
              path,
              headers: { 'content-type': 'application/x-www-form-urlencoded' },
              body: new URLSearchParams(form.value).toString(),
            })
            const text = await answer.body.text()
            took.push(performance.now() - sent)
            if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${text}`)
            seen?.(JSON.parse(text))
          }
        }),
      )
      const seconds = (performance.now() - start) / 1000
      const { p99Ms } = percentiles(took)
      return {
        operations: took.length,
        seconds,
        cpuSeconds: (await cpu()) - cpuBefore,
        figures: { p99Ms: p99Ms! },
      }
    },
    async stop() {
      await client.close()
      const gone = once(child, 'exit')
      child.disconnect()
      await gone
    },
  }
}

async function ask(child: ChildProcess, asked: Asked): Promise<Answered> {
  const answer = once(child, 'message')
  child.send(asked)
  return ((await answer) as [Answered])[0]
}

/** @param cpu seconds of processor time that the server has used so far. */
export async function hammer(
  port: number,
  cpu: () => Promise<number>,
  path: string,
  fields: Form,
  ms: number,
): Promise<Measured> {
  const before = await cpu()
  const measured = await wrk(
    `http://127.0.0.1:${port}${path}`,
    {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString(),
    },
    IN_FLIGHT,
    ms,
  )
  return { ...measured, cpuSeconds: (await cpu()) - before }
}
