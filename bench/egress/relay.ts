/**
 * Calls through the egress proxy, each authenticated, granted, written down before it goes out and
 * metered, against nginx and http-proxy that only relay, in the same run, to the same TLS upstream.
 * Needs wrk and nginx (Debian: `apt-get install wrk nginx-light`).
 *
 *     node dist/bench/egress/relay.js [small|large|memory]
 */
import { spawnSync } from 'node:child_process'
import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { compare, type Contender, pace, publish } from '../harness.js'
import { wrk } from '../wrk.js'
import { type Relay, startNginx, startServer } from './relays.js'

const MIB = 1024 * 1024
/** Readers that are slow at the same time: those of the target, then ten times as many. */
const READERS = [20, 200] as const
/** What a deployment may grow by for the first of them. */
const GROWTH_BYTES_MAX = 64 * MIB
for (const program of ['wrk', 'nginx']) {
  if (spawnSync(program, ['-v']).error !== undefined) {
    console.error(`${program} is not installed: nothing to measure against`)
    process.exit(1)
  }
}

const only = process.argv[2]?.startsWith('--') ? undefined : process.argv[2]
const wanted = (name: string) => only === undefined || only === name
const started: Relay[] = []
try {
  const upstream = await begin(startServer(1, 'upstream'))
  const nginx = await begin(startNginx(upstream.port))
  const peer = await begin(startServer(0, 'http-proxy', String(upstream.port)))
  const svc = await begin(startServer(0, 'svc', String(upstream.port)))
  if (wanted('small')) {
    await publish(
      await compare({
        name: 'Egress, 1 KiB answers, wrk -c32',
        ms: 3_000,
        reference: relayed('nginx, one worker, unbuffered', nginx, '/1k', 32),
        contenders: [
          relayed('http-proxy', peer, '/1k', 32),
          relayed('svc, /v1/proxy/body', svc, '/1k', 32, 0.25),
        ],
      }),
    )
  }
  if (wanted('large')) {
    await publish(
      await compare({
        name: 'Egress, 32 MiB answers, wrk -c4 (operations are MiB)',
        ms: 4_000,
        reference: relayed('nginx, one worker, unbuffered', nginx, '/32m', 4, undefined, 32),
        contenders: [
          relayed('http-proxy', peer, '/32m', 4, undefined, 32),
          relayed('svc, /v1/proxy/body', svc, '/32m', 4, 0.5, 32),
        ],
      }),
    )
  }
  if (wanted('memory')) {
    for (const readers of READERS) await memory(svc, readers)
  }
} finally {
  await Promise.all(started.map((relay) => relay.stop()))
}

async function begin(starting: Promise<Relay>): Promise<Relay> {
  const relay = await starting
  started.push(relay)
  return relay
}

/** svc is told the address in a field, the others in the path. */
function callOf(relay: Relay, path: string) {
  const { port, headers } = relay
  return headers === undefined
    ? { url: `http://127.0.0.1:${port}${path}`, method: 'GET' as const, headers: {} }
    : {
        url: `http://127.0.0.1:${port}/v1/proxy/body`,
        method: 'POST' as const,
        headers: { ...headers, 'x-svc-url': `${headers['x-svc-url']}${path}` },
      }
}

function relayed(
  name: string,
  relay: Relay,
  path: string,
  connections: number,
  target?: number,
  weight = 1,
): Contender {
  return {
    name,
    target,
    async run(ms) {
      const { url, ...request } = callOf(relay, path)
      const before = await relay.spent()
      const { operations, ...measured } = await wrk(url, request, connections, ms)
      const cpuSeconds = (await relay.spent()).cpuSeconds - before.cpuSeconds
      return { ...measured, operations: operations * weight, cpuSeconds }
    },
  }
}

/** Readers that take 32 MiB each a little at a time, and what light requests wait meanwhile. */
async function memory(svc: Relay, streams: number): Promise<void> {
  const { url, method, headers } = callOf(svc, '/32m')
  const live = () =>
    new Promise<void>((resolve, reject) => {
      get(`http://127.0.0.1:${svc.port}/health/live`, (answer) => {
        answer.resume().once('end', resolve)
      }).once('error', reject)
    })
  const latency = async () => (await pace(3_000, 200, live)).figures!
  const idle = await latency()
  const before = (await svc.spent()).rssBytes
  const { request } = await import('node:http')
  let peak = before
  let taken = 0
  const readers = Array.from(
    { length: streams },
    () =>
      new Promise<() => void>((resolve, reject) => {
        const sent = request(url, { method, headers }, (answer) => {
          answer.on('data', (chunk: Buffer) => {
            taken += chunk.length
            answer.pause()
            setTimeout(() => answer.resume(), 200)
          })
          answer.on('error', () => undefined)
          resolve(() => sent.destroy())
        })
        sent.once('error', reject)
        sent.end()
      }),
  )
  const stop = await Promise.all(readers)
  const watching = setInterval(async () => {
    peak = Math.max(peak, (await svc.spent()).rssBytes)
  }, 250)
  await sleep(1_000)
  const busy = await latency()
  await sleep(2_000)
  clearInterval(watching)
  await sleep(300)
  for (const end of stop) end()
  console.log(`### Egress, ${streams} slow readers of 32 MiB\n`)
  const target =
    streams === READERS[0]
      ? `, target +64 MiB ${peak - before <= GROWTH_BYTES_MAX ? 'reached' : 'missed'}`
      : ''
  console.log(
    `resident before ${mib(before)}, at most ${mib(peak)} (+${mib(peak - before)}${target});`,
  )
  console.log(`${mib(taken)} taken of ${mib(streams * 32 * MIB)} that wait;`)
  console.log(
    `/health/live p99 ${idle['p99Ms']?.toFixed(2)} ms before, ${busy['p99Ms']?.toFixed(2)} ms meanwhile\n`,
  )
}

function mib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`
}
