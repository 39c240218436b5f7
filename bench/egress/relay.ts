/**
 * Calls through the egress proxy (authenticated, authorized, audited and metered) compared with relays that only
 * relay: nginx, http-proxy, bare uWebSockets with undici, and mitmproxy, which also injects a header. All in the same
 * run with the same TLS upstream. Each relay is a process on its own core; PostgreSQL, the upstream and the load
 * generator share the others. Needs wrk and nginx (Debian: `apt-get install wrk nginx-light`). mitmproxy is left out
 * where it is not installed.
 *
 *     node dist/bench/egress/relay.js [small|large|latency|memory]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { LOCALHOST_CERT } from '../flows/loopback-tls.js'
import { isInstalled } from '../foreign-program.js'
import { compare, type Contender, median, pace, publish, SERVER_WARM_UP_MS } from '../harness.js'
import { wrk } from '../wrk.js'
import { type Relay, startMitmproxy, startNginx, startServer } from './relays.js'

const MIB = 1024 * 1024
/** Concurrent slow readers: the number of the target, then ten times as many. */
const READERS = [20, 200] as const
/** Targets with slow readers: the growth of memory, and the latency of light requests as a multiple of idle. */
const GROWTH_BYTES_MAX = 64 * MIB
const LIGHT_P99_MAX = 3
/** The pause of a slow reader after each chunk, on average. Readers do not pause in step. */
const READER_PAUSE_MS = 200
/** Far below the capacity of each relay, so that queueing does not count. */
const LATENCY_CALLS_PER_SECOND = 100
const ADDED_MS_MAX = 2
for (const program of ['wrk', 'nginx']) {
  if (!isInstalled(program)) {
    console.error(`${program} is not installed: nothing to measure against`)
    process.exit(1)
  }
}

const only = process.argv[2]?.startsWith('--') ? undefined : process.argv[2]
const wanted = (name: string) => only === undefined || only === name
const started: Relay[] = []
const dataDir = await mkdtemp(join(tmpdir(), 'svc-bench-egress-'))
const postgres = await startEmbeddedPostgres({ dataDir, log: silentLogger })
try {
  const upstream = await begin(startServer(1, 'upstream'))
  const nginx = await begin(startNginx(upstream.port))
  const peer = await begin(startServer(0, 'http-proxy', String(upstream.port)))
  const svc = await begin(startServer(0, 'svc', String(upstream.port), postgres.url))
  const address: Relay = { ...svc, port: svc.egressPort! }
  if (wanted('small')) {
    const bare = await begin(startServer(0, 'bare', String(upstream.port)))
    const onThread = await begin(startServer(0, 'bare-thread', String(upstream.port)))
    const small = { ms: 3_000, warmUpMs: SERVER_WARM_UP_MS }
    await publish(
      await compare({
        ...small,
        name: 'Egress, 1 KiB answers, wrk -c32',
        reference: relayed('bare uWebSockets, undici on its own thread', onThread, '/1k', 32),
        contenders: [
          relayed('the same on one thread', bare, '/1k', 32),
          relayed('nginx, one worker, unbuffered', nginx, '/1k', 32),
          byCpu(relayed('svc, /v1/proxy/body', svc, '/1k', 32, { target: 0.5 })),
          byCpu(relayed('svc, the egress address', address, '/1k', 32, { target: 0.5 })),
        ],
      }),
    )
    await publish(
      await compare({
        ...small,
        name: 'Egress and http-proxy, 1 KiB answers, wrk -c32',
        reference: relayed('http-proxy', peer, '/1k', 32),
        contenders: [
          byCpu(relayed('svc, /v1/proxy/body', svc, '/1k', 32, { target: 1 })),
          byCpu(relayed('svc, the egress address', address, '/1k', 32, { target: 1 })),
        ],
      }),
    )
    if (isInstalled('mitmdump', '--version')) {
      const mitmproxy = await begin(startMitmproxy(upstream.port))
      await publish(
        await compare({
          ...small,
          name: 'Egress and mitmproxy with an addon, 1 KiB answers, wrk -c32',
          reference: relayed('mitmproxy, header injected', mitmproxy, '/1k', 32),
          contenders: [byCpu(relayed('svc, /v1/proxy/body', svc, '/1k', 32, { target: 5 }))],
        }),
      )
    } else console.log('mitmproxy is not installed: not compared (apt-get install mitmproxy)\n')
  }
  if (wanted('large')) {
    await publish(
      await compare({
        name: 'Egress, 32 MiB answers, wrk -c4 (operations are MiB)',
        ms: 4_000,
        warmUpMs: SERVER_WARM_UP_MS,
        reference: relayed('nginx, one worker, unbuffered', nginx, '/32m', 4, { weight: 32 }),
        contenders: [
          relayed('http-proxy', peer, '/32m', 4, { weight: 32 }),
          relayed('svc, /v1/proxy/body', svc, '/32m', 4, { target: 0.6, weight: 32 }),
        ],
      }),
    )
  }
  if (wanted('latency')) {
    const named = { nginx, 'http-proxy': peer, svc, 'svc, the egress address': address }
    await latencies(upstream, named)
  }
  if (wanted('memory')) {
    for (const readers of READERS) await memory(svc, readers)
  }
} finally {
  await Promise.all(started.map((relay) => relay.stop()))
  await postgres.stop()
  await rm(dataDir, { recursive: true, force: true })
}

async function begin(starting: Promise<Relay>): Promise<Relay> {
  const relay = await starting
  started.push(relay)
  return relay
}

/** svc gets the URL in a header, the others in the path. */
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
  { target, weight = 1 }: { readonly target?: number; readonly weight?: number } = {},
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

/** The target is about the rate per CPU second. */
function byCpu(contender: Contender): Contender {
  return { ...contender, by: 'cpu' }
}

/** Waits for the last byte of a response, with keep-alive. */
function called(
  ask: () => ReturnType<typeof request>,
  taken: (bytes: number) => void = () => undefined,
): () => Promise<void> {
  return () =>
    new Promise((resolve, reject) => {
      const sent = ask()
      sent.once('error', reject)
      sent.once('response', (answer) => {
        answer.on('data', (chunk: Buffer) => taken(chunk.length)).once('end', resolve)
      })
      sent.end()
    })
}

/** The latency that a relay adds, under a light open-loop load. */
async function latencies(upstream: Relay, relays: Record<string, Relay>): Promise<void> {
  const direct = { agent: new TlsAgent({ keepAlive: true, ca: LOCALHOST_CERT }) }
  const agent = new Agent({ keepAlive: true })
  const calls: Record<string, () => Promise<void>> = {
    'no relay': called(() => tlsRequest(`https://localhost:${upstream.port}/1k`, direct)),
  }
  for (const [name, relay] of Object.entries(relays)) {
    const { url, ...options } = callOf(relay, '/1k')
    calls[name] = called(() => request(url, { ...options, agent }))
  }
  console.log(`### Egress, 1 KiB answers, ${LATENCY_CALLS_PER_SECOND} calls a second, open loop\n`)
  console.log(`The target of svc is ${ADDED_MS_MAX} ms added at p50.\n`)
  console.log('|  | p50 | p99 | p50 added |\n| --- | --- | --- | --- |')
  let bareMs: number | undefined
  for (const [name, call] of Object.entries(calls)) {
    await pace(1_000, LATENCY_CALLS_PER_SECOND, call)
    const rounds: Record<string, number>[] = []
    for (let round = 0; round < 5; round += 1) {
      rounds.push((await pace(2_000, LATENCY_CALLS_PER_SECOND, call)).figures!)
    }
    const [p50, p99] = ['p50Ms', 'p99Ms'].map((each) => median(rounds.map((round) => round[each]!)))
    bareMs ??= p50!
    console.log(`| ${name} | ${ms(p50!)} | ${ms(p99!)} | ${ms(p50! - bareMs)} |`)
  }
  console.log('')
  agent.destroy()
  direct.agent.destroy()
}

function ms(milliseconds: number): string {
  return `${milliseconds.toFixed(2)} ms`
}

/** Memory with slow readers of 32 MiB each, and the latency of light requests at the same time. */
async function memory(svc: Relay, streams: number): Promise<void> {
  const { url, method, headers } = callOf(svc, '/32m')
  const live = called(() => request(`http://127.0.0.1:${svc.port}/health/live`))
  const latency = async () => (await pace(3_000, 200, live)).figures!
  // The egress thread starts with the first call.
  await called(() => request(url, { method, headers }))()
  const idle = await latency()
  const before = (await svc.spent()).rssBytes
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
            setTimeout(() => answer.resume(), READER_PAUSE_MS * (0.5 + Math.random()))
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
  const isWithin = peak - before <= GROWTH_BYTES_MAX
  console.log(
    `resident before ${mib(before)}, peak ${mib(peak)} (+${mib(peak - before)}, target +64 MiB ${isWithin ? 'reached' : 'missed'});`,
  )
  console.log(`${mib(taken)} read of ${mib(streams * 32 * MIB)};`)
  const isLight = busy['p99Ms']! <= LIGHT_P99_MAX * idle['p99Ms']!
  console.log(
    `/health/live p99 ${idle['p99Ms']?.toFixed(2)} ms idle, ${busy['p99Ms']?.toFixed(2)} ms with slow readers (target ${LIGHT_P99_MAX} x ${isLight ? 'reached' : 'missed'})\n`,
  )
}

function mib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`
}
