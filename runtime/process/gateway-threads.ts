/** The gateway threads of a process besides the main thread: how many, their start and their end. */
import { availableParallelism } from 'node:os'
import { verifyNative } from '../../gateway/transports/native.js'
import { wantedParser } from '../../gateway/transports/parser.js'
import { connectionBudget, dividePools } from '../../storage/platform/pool-plan.js'
import type { LoadedSettings } from './configuration/load-settings.js'
import { spawnInline } from '../kernel/inline.js'
import type { Protocol } from '../kernel/protocol.js'
import { type SpawnedThread, spawnThread } from '../kernel/threads/thread.js'
import { isOnMainThread, placementsOfGatewayThread, planesOf } from './planes.js'
import type { GatewayThreadData } from './threads/gateway-thread.js'
import { mainThread, mainThreadActor } from './threads/main-thread.js'
import { type StartContext, StartRefused, type Undo } from './start-context.js'

/** `auto` gives each thread at least this many connections of the plane's pool. */
const AUTO_CONNECTIONS_MIN = 4
/** A transaction and the invalidation of what it changes may run at the same time. */
const CONNECTIONS_MIN = 2

/** A thread loads the whole service, while the main thread may be busy. */
const START_WITHIN_MS = 60_000

/** What the number of gateway threads depends on besides the settings. */
export interface Machine {
  readonly processors: number
  readonly platform: string
  /** `process.versions.node` */
  readonly node: string
  /** The native parser can be loaded. */
  readonly hasNative: boolean
}

type ThreadCount =
  | { readonly tag: 'threads'; readonly count: number }
  | { readonly tag: 'refused'; readonly reason: string }

/** Resolves `server.gateway_threads`, which is `auto` or a number. */
export function gatewayThreads(
  { settings, plane }: Pick<LoadedSettings, 'settings' | 'plane'>,
  machine: Machine,
): ThreadCount {
  const wanted = settings.server.gateway_threads
  // The async plane serves only its probes and metrics.
  if (wanted === 1 || plane === 'async') return { tag: 'threads', count: 1 }
  const unable = cannotSharePort(settings.server, machine)
  const { plane: connections, identity } = connectionBudget(settings.database, plane)
  if (wanted === 'auto') {
    const fitting = Math.min(Math.floor(connections / AUTO_CONNECTIONS_MIN), identity)
    const count = unable === null ? Math.min(machine.processors - 1, fitting) : 1
    return { tag: 'threads', count: Math.max(1, count) }
  }
  if (unable !== null) {
    return { tag: 'refused', reason: `server.gateway_threads is ${wanted}, but ${unable}` }
  }
  const most = Math.min(Math.floor(connections / CONNECTIONS_MIN), identity)
  if (wanted <= most) return { tag: 'threads', count: wanted }
  const reason =
    `server.gateway_threads is ${wanted}, but the database pools have connections for ${Math.max(1, most)}: ` +
    `each thread needs ${CONNECTIONS_MIN} of max_connections (${connections}) and one of ` +
    `identity_max_connections (${identity}); raise them or lower server.gateway_threads`
  return { tag: 'refused', reason }
}

/** Why several threads cannot listen on one port here, and what to change, or null. */
function cannotSharePort(
  server: LoadedSettings['settings']['server'],
  { platform, node, hasNative }: Machine,
): string | null {
  if (platform !== 'linux') {
    return `${platform} does not divide connections between listeners (SO_REUSEPORT of Linux): set it to 1`
  }
  if (canReusePort(node)) return null
  const fix = 'use Node.js 22.12 or later, or set it to 1'
  const wanted = wantedParser(server)
  if (wanted === undefined) {
    return `server.transport ${server.transport} needs Node.js 22.12 for several threads (this is ${node}): ${fix}`
  }
  if (wanted === 'uwebsockets') {
    return hasNative
      ? null
      : `the native parser of uWebSockets is not available here, and node:http needs Node.js 22.12 for several threads (this is ${node}): ${fix}`
  }
  return `server.http1_parser "node" needs Node.js 22.12 for several threads (this is ${node}): set server.http1_parser = "uwebsockets", ${fix}`
}

/** `reusePort` of node:net: 22.12 and 23.1. */
function canReusePort(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12)
}

/** @throws {StartRefused} when the configured number is not possible here. */
export async function planGatewayThreads(context: StartContext): Promise<void> {
  const found = gatewayThreads(context.loaded, {
    processors: availableParallelism(),
    platform: process.platform,
    node: process.versions.node,
    hasNative: verifyNative().tag === 'verified',
  })
  if (found.tag === 'refused') throw new StartRefused(found.reason)
  context.threads = found.count
}

/** Starts the threads besides the main thread. They accept requests immediately. */
export async function startGatewayThreads(context: StartContext): Promise<Undo | void> {
  const { loaded, threads, clock, log, metrics, system, gateway } = context
  if (threads === 1) return
  const { settings, plane } = loaded
  const data: GatewayThreadData = {
    settings,
    plane,
    urls: context.urls!,
    kms: context.kmsAccess!,
    telemetry: settings.telemetry,
    port: context.port!,
    database: dividePools(settings.database, plane, threads).other,
    keepsMail: context.caughtMail !== undefined,
    cloneMessages: context.options.cloneMessages,
  }
  const here = spawnInline(
    mainThreadActor,
    { metrics, caughtMail: context.caughtMail },
    { clock, log, metrics },
  )
  const planes = planesOf(plane)
  const offered = new Map(
    placementsOfGatewayThread(settings)
      .filter((placement) => placement.planes.some((one) => planes.includes(one)))
      .filter(isOnMainThread)
      .map(({ definition: { address } }) => [address.name, system!.ref<Protocol>(address)]),
  )
  const offers = (actor: string) => (actor === mainThread.name ? here.ref : offered.get(actor))
  const usesNative = wantedParser(settings.server) === 'uwebsockets'
  const names = Array.from({ length: threads - 1 }, (_, index) => `gateway-${index + 1}`)
  const starting = await Promise.allSettled(
    names.map((name) =>
      spawnThread({
        name,
        clock,
        log,
        metrics,
        offers,
        startData: data,
        definitions: [],
        entry: new URL('./threads/gateway-thread.js', import.meta.url),
        listens: true,
        startMs: START_WITHIN_MS,
        // The native sockets of uWebSockets can only be closed by their thread.
        canBeKilled: !usesNative,
      }),
    ),
  )
  const running = starting.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const drain = async (withinMs: number) => {
    delete context.gatewayThreads
    // Together with the main thread: the time of one is the time of all.
    const ends = await Promise.all([
      gateway!.drain(withinMs),
      system!.finishRequests(withinMs),
      ...running.map((thread) => thread.drain(withinMs)),
    ])
    await here.stop()
    return ends.every(Boolean)
  }
  const failed = starting.find((one) => one.status === 'rejected')
  if (failed !== undefined) {
    await drain(0)
    throw failed.reason
  }
  context.gatewayThreads = {
    unready: () => running.flatMap(unreadyOf),
    stats: () => running.flatMap((thread) => thread.stats()),
  }
  log.info({ threads }, 'several gateway threads share the port')
  return drain
}

const unreadyOf = (thread: SpawnedThread) => thread.readiness().unready
