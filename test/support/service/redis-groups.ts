/** A Redis Cluster of six servers, and a primary with a replica and three Sentinels, on free ports. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { program } from './program.js'
import { answers } from './servers.js'
import { freePort, returnPort } from './settings.js'
import { until } from './watch.js'

/** Time without an answer after which a server counts as gone. A live one answers within it on a busy machine. */
const GONE_MS = 4_000
const MASTER = 'mymaster'
const CLUSTER_SIZE = 6
const SENTINELS = 3

export type RedisGroupMode = 'cluster' | 'sentinel'

export interface RedisGroup {
  /** The settings of [redis] that differ from the defaults. */
  readonly settings: { readonly mode: RedisGroupMode; readonly nodes: string[] }
  /** The same as variables. */
  readonly environment: Readonly<Record<string, string>>
  /** Kills the server that has a key. */
  killPrimaryOf(key: string): Promise<void>
  stop(): Promise<void>
}

const run = promisify(execFile)

type Member = { readonly port: number; readonly child: ChildProcess }

export async function startRedisGroup(mode: RedisGroupMode): Promise<RedisGroup> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-redis-'))
  const members: Member[] = []
  const ports: number[] = []
  const reserve = async () => {
    const port = await freePort()
    ports.push(port)
    return port
  }
  const launch = async (config: string, more: readonly string[] = []) => {
    const own = await reserve()
    const dir = join(folder, String(own))
    mkdirSync(dir)
    const file = join(dir, 'redis.conf')
    // Without the delay a replica does not wait 5 s for others.
    const common = [
      `port ${own}`,
      'bind 127.0.0.1',
      `dir ${dir}`,
      'save ""',
      'appendonly no',
      'repl-diskless-sync-delay 0',
      'loglevel warning',
    ]
    writeFileSync(file, `${common.join('\n')}\n${config}`)
    const child = spawn(program('redis-server')!, [file, ...more], { stdio: 'ignore' })
    members.push({ port: own, child })
    await answers(own)
    return own
  }
  const kill = async (port: number) => {
    const { child } = members.find((member) => member.port === port)!
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  const stop = async () => {
    await Promise.all(
      members
        .filter(({ child }) => child.exitCode === null && child.signalCode === null)
        .map(({ port }) => kill(port)),
    )
    for (const port of ports.splice(0)) returnPort(port)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const { nodes, primaryOf } = await (mode === 'cluster'
      ? cluster(launch, reserve)
      : sentinel(launch))
    return {
      settings: { mode, nodes },
      environment: { SVC_REDIS__MODE: mode, SVC_REDIS__NODES: nodes.join(',') },
      killPrimaryOf: async (key) => kill(await primaryOf(key)),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

type Launch = (config: string, more?: readonly string[]) => Promise<number>

async function cluster(launch: Launch, reserve: () => Promise<number>) {
  const config = `cluster-enabled yes\ncluster-config-file nodes.conf\ncluster-node-timeout ${GONE_MS}\n`
  const members: { readonly port: number; readonly busPort: number }[] = []
  while (members.length < CLUSTER_SIZE) {
    const busPort = await reserve()
    members.push({ port: await launch(`${config}cluster-port ${busPort}\n`), busPort })
  }
  const ports = members.map(({ port }) => port)
  const nodes = ports.map((port) => `127.0.0.1:${port}`)
  const joining = members.map(({ port, busPort }) => `127.0.0.1:${port}@${busPort}`)
  await ask(
    ports[0]!,
    '--cluster',
    'create',
    ...joining,
    '--cluster-replicas',
    '1',
    '--cluster-yes',
  )
  await until('the cluster', async () => {
    const states = await Promise.all(ports.map((port) => ask(port, 'cluster', 'info')))
    return states.every((state) => state.includes('cluster_state:ok'))
  })
  // A replica that has not synchronized cannot take over.
  await until('the replicas', async () =>
    (await Promise.all(ports.map(isSynchronized))).every(Boolean),
  )
  const primaryOf = async (key: string) => {
    const slot = Number(await ask(ports[0]!, 'cluster', 'keyslot', key))
    for (const line of (await ask(ports[0]!, 'cluster', 'nodes')).split('\n')) {
      const [, address = '', flags = '', , , , , , ...slots] = line.split(' ')
      const isIn = slots.some((range) => {
        const [from = NaN, to = from] = range.split('-').map(Number)
        return slot >= from && slot <= to
      })
      if (flags.includes('master') && isIn) return portOf(address)
    }
    throw new Error(`slot ${slot} has no primary`)
  }
  return { nodes, primaryOf }
}

async function sentinel(launch: Launch) {
  const primary = await launch('')
  const replica = await launch(`replicaof 127.0.0.1 ${primary}\n`)
  await until('the replica', () => isSynchronized(replica))
  const config = [
    `sentinel monitor ${MASTER} 127.0.0.1 ${primary} 2`,
    `sentinel down-after-milliseconds ${MASTER} ${GONE_MS}`,
    `sentinel failover-timeout ${MASTER} ${2 * GONE_MS}`,
    '',
  ].join('\n')
  const ports: number[] = []
  while (ports.length < SENTINELS) ports.push(await launch(config, ['--sentinel']))
  const isComplete = async (port: number) => {
    const state = (await ask(port, 'sentinel', 'master', MASTER)).split('\n')
    const valueOf = (name: string) => state[state.indexOf(name) + 1]
    return valueOf('num-other-sentinels') === String(SENTINELS - 1) && valueOf('num-slaves') === '1'
  }
  await until('the sentinels', async () =>
    (await Promise.all(ports.map(isComplete))).every(Boolean),
  )
  const primaryOf = async () =>
    Number((await ask(ports[0]!, 'sentinel', 'get-master-addr-by-name', MASTER)).split('\n')[1])
  return { nodes: ports.map((port) => `127.0.0.1:${port}`), primaryOf }
}

async function isSynchronized(port: number): Promise<boolean> {
  const info = await ask(port, 'info', 'replication')
  return info.includes('role:master') || info.includes('master_link_status:up')
}

const portOf = (address: string) => Number(/:(\d+)@/.exec(address)?.[1])

async function ask(port: number, ...words: readonly string[]): Promise<string> {
  return (await run(program('redis-cli')!, ['-p', String(port), ...words])).stdout
}
