/**
 * The start and stop of a process: an ordered list of steps, each with its undo. The log names the
 * step. The startup probe answers 503 until the last step is done. When a step fails, the earlier
 * ones are undone in reverse order.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { CaughtMail } from '../../actors/operations/mail/caught-mail.js'
import { approvals } from '../../actors/vault/approvals/protocol.js'
import { health } from '../../actors/operations/health/protocol.js'
import { signingKeys } from '../../actors/oauth/signing-keys/protocol.js'
import { tenants } from '../../actors/identity/users/tenants/protocol.js'
import { createSealer } from '../../storage/platform/sealing/seal.js'
import type { Plane } from './configuration/deployment.js'
import { actorWirings } from './wiring/actors.js'
import type { ActorRef } from '../kernel/actor.js'
import { systemClock } from '../kernel/clock.js'
import { createMetrics } from '../kernel/metrics/metrics.js'
import type { Address, Protocol } from '../kernel/protocol.js'
import { systemRandom } from '../kernel/random.js'
import { startSystem, type System, type SystemOptions } from '../kernel/system.js'
import { settingsReport } from './configuration/effective-settings.js'
import { type LoadedSettings, loadSettings } from './configuration/load-settings.js'
import { explainedBy } from './which-database.js'
import { planesOf, placementsWith, type RunPlane } from './planes.js'
import { EGRESS_THREAD, egressPortOf, openEgressAddress, portFault } from './egress-address.js'
import { planGatewayThreads, startGatewayThreads } from './gateway-threads.js'
import {
  openBackend,
  openKeyManagement,
  openPools,
  provideDatabase,
  requireSchema,
} from './open-storage.js'
import {
  type StartContext,
  StartRefused,
  type StartOptions,
  type Step,
  type Undo,
} from './start-context.js'
import { actorReports, planeReports } from './process-report.js'
import { followChanges } from './wiring/announcements.js'
import { firstDelivery } from './wiring/first-delivery.js'
import { gatewayOf } from './wiring/gateway.js'
import type { EgressThreadData } from './threads/egress-thread.js'
import type { ThreadAccess } from './wiring/thread-access.js'
import type { ThreadData } from './threads/delivery-thread.js'
import { startTelemetry } from './telemetry/start.js'
import { egressSettingsOf, senderSettingsOf } from './wiring/egress-settings.js'

export { type StartOptions, StartRefused } from './start-context.js'

export interface Service {
  readonly plane: Plane
  /** The URL of the listener. */
  readonly url: string
  /** oidc.issuer_url: the public address. */
  readonly baseUrl: string
  /** server.egress_url: equal to `baseUrl` if the egress proxy has no separate address. */
  readonly egressUrl: string
  /** Undefined when the page is not served. */
  readonly docsUrl: string | undefined
  readonly controlPlaneTenantId: string
  /** /dev/mail. Undefined when the page is not served. */
  readonly mailUrl: string | undefined
  /** Outside production. */
  readonly isLocal: boolean
  /** Undefined when no data is stored there. */
  readonly dataDir: string | undefined
  ref<P extends Protocol>(address: Address<P>): ActorRef<P>
  /**
   * Is not ready for server.drain_secs, then finishes running requests within server.shutdown_deadline_secs. False when
   * that was too short.
   */
  stop(): Promise<boolean>
}

const MAINTAIN_LIMIT_MS = 20_000
const KEYS_WITHIN_MS = 30_000
const KEYS_RETRY_MS = 250
/** The start does not wait longer for readiness: a later fault is the readiness probe's concern. */
const FIT_WITHIN_MS = 10_000
const FIT_RETRY_MS = 10
/** Names of errors whose message tells an operator what to change. */
const MENDABLE = new Set([
  'CoordinationUnavailable',
  'DataDirectoryInUse',
  'DatabaseUnavailable',
  'KeyCustodyRefused',
  'KeyFileRefused',
  'KmsUnavailable',
  'ListenFailed',
  'SchemaMismatch',
])

const steps: readonly Step[] = [
  ['gateway threads', planGatewayThreads],
  ['ports', requireFreePorts],
  ['telemetry', openTraces],
  ['database server', provideDatabase],
  ['database', openPools],
  ['schema', requireSchema],
  ['key management', openKeyManagement],
  ['coordination', openBackend],
  ['actors', startActors],
  ['listener', openListener],
  ['signing keys', awaitTenantAndKeys],
  ['changes', listenForChanges],
  ['egress address', openEgressAddress],
  ['more gateway threads', startGatewayThreads],
  ['open', letIn],
]

/**
 * Starts a process of the service.
 * @throws {StartRefused} with what an operator must change.
 */
export async function startService(options: StartOptions): Promise<Service> {
  const clock = options.clock ?? systemClock
  const { environment, cwd, uid, log } = options
  const loaded = loadSettings({ environment, cwd, uid })
  if (loaded.tag === 'refused') {
    throw new StartRefused('the configuration is invalid', { failures: loaded.failures })
  }
  options.onSettings?.(loaded.settings)
  log.info(settingsReport(loaded), 'settings')
  const context: StartContext = {
    options,
    loaded,
    log,
    clock,
    random: systemRandom(clock),
    metrics: createMetrics({ processMetrics: true }),
    state: { started: false, stopping: false },
    threads: 1,
  }
  const undos: { name: string; undo: Undo }[] = []
  const takeBack = async (withinMs: number) => {
    context.state.stopping = true
    const endMs = clock.monotonicMs() + withinMs
    let clean = true
    for (const { name, undo } of undos.splice(0).toReversed()) {
      try {
        const leftMs = Math.max(0, endMs - clock.monotonicMs())
        clean = (await undo(leftMs)) !== false && clean
      } catch (error) {
        clean = false
        log.error({ err: error, step: name }, 'a step did not stop cleanly')
      }
    }
    return clean
  }
  const deadlineMs = loaded.settings.server.shutdown_deadline_secs * 1000
  try {
    for (const [name, run] of steps) {
      options.signal?.throwIfAborted()
      const began = clock.monotonicMs()
      const undo = await run(context)
      if (undo) undos.push({ name, undo })
      log.debug({ step: name, ms: Math.round(clock.monotonicMs() - began) }, 'started')
    }
  } catch (error) {
    await takeBack(deadlineMs)
    throw explained(loaded, error)
  }
  return serviceOf(
    context,
    once(async () => {
      const { drain_secs } = loaded.settings.server
      log.info({ plane: loaded.plane, drain_secs }, 'stopping')
      // Readiness answers 503 from now on. Proxies that read it send their requests elsewhere before the port closes.
      context.state.stopping = true
      await sleep(drain_secs * 1000)
      const began = clock.monotonicMs()
      const clean = await takeBack(deadlineMs)
      const ended = { plane: loaded.plane, ms: Math.round(clock.monotonicMs() - began) }
      if (clean) log.info(ended, 'stopped')
      else
        log.warn(
          ended,
          'stopped uncleanly: server.shutdown_deadline_secs was too short, or a step failed',
        )
      return clean
    }),
  )
}

async function openTraces({ loaded, metrics, log }: StartContext): Promise<Undo> {
  const { telemetry } = loaded.settings
  const source = { plane: loaded.plane, thread: 'main' }
  const end = await startTelemetry(telemetry, source, metrics.registry)
  if (telemetry.enabled) log.info({ endpoint: telemetry.otlp_endpoint }, 'traces are sent')
  return () => end()
}

async function startActors(context: StartContext): Promise<Undo> {
  const { loaded, log, clock, random, metrics, state } = context
  const database = context.database!
  const kms = context.kms!
  const { settings } = loaded
  const access: ThreadAccess = {
    database: settings.database,
    urls: context.urls!,
    kms: context.kmsAccess!,
    telemetry: settings.telemetry,
    plane: loaded.plane,
  }
  const sending = senderSettingsOf(settings)
  const webhooks: ThreadData = { ...access, webhooks: settings.webhooks, sending }
  const listens = egressPortOf(loaded) !== undefined
  const { issuer_url: issuer } = settings.oidc
  const egress: EgressThreadData = {
    ...access,
    vault: egressSettingsOf(settings),
    issuer,
    listens,
  }
  const threads: Readonly<
    Record<string, ReturnType<NonNullable<SystemOptions<RunPlane>['thread']>>>
  > = {
    webhooks: {
      entry: new URL('./threads/delivery-thread.js', import.meta.url),
      startData: webhooks,
      starts: settings.deployment.thread_start,
      firstUse: (signal) => firstDelivery(database, signal),
      // The default of V8 keeps 16 MiB in an idle thread.
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    },
    [EGRESS_THREAD]: {
      entry: new URL('./threads/egress-thread.js', import.meta.url),
      startData: egress,
      starts: listens ? 'at_start' : settings.deployment.thread_start,
      listens,
      asks: listens ? [health, approvals] : [],
      // Bodies are allocated outside of the heap and are short-lived. With rare collections they
      // pile up until V8 counts them as memory pressure and marks the whole heap again and again,
      // which doubles the cost of a large body.
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    },
  }
  const placed = placementsWith(settings)
  const planes = planesOf(loaded.plane)
  if (keepsMail(loaded)) context.caughtMail = new CaughtMail(clock)
  const system: System = await startSystem({
    placements: placed,
    thread: (name) => threads[name]!,
    planes,
    actorWirings: actorWirings({
      settings: loaded.settings,
      database,
      coordination: context.coordination!,
      kms,
      sealer: createSealer({ database, kms, random, clock }),
      clock,
      random,
      metrics,
      log,
      caughtMail: context.caughtMail,
      process: {
        started: () => state.started,
        stopping: () => state.stopping,
        unfit: () => [
          ...(context.system?.readiness().unready ?? []),
          ...(context.gatewayThreads?.unready() ?? []),
        ],
      },
      report: {
        planes: () => planeReports(placed, planes),
        actors: () =>
          actorReports(placed, [
            ...(context.system?.stats() ?? []),
            ...(context.gatewayThreads?.stats() ?? []),
          ]),
      },
    }),
    clock,
    log,
    metrics,
    cloneMessages: context.options.cloneMessages,
  })
  context.system = system
  if (listens) {
    const { plane } = loaded
    context.openEgressAddress = (port) =>
      system.reconfigureThread(EGRESS_THREAD, { ...egress, address: { settings, plane, port } })
  }
  return (withinMs) => system.drain(withinMs)
}

/** True if this process sends the mail and serves /dev/mail, which shows it. */
function keepsMail({ plane, settings: { email, deployment } }: LoadedSettings): boolean {
  return email.dev_mailbox && plane === 'all' && deployment.background_tasks_enabled
}

async function openListener(context: StartContext): Promise<Undo> {
  const { loaded, log, clock, random, metrics, threads } = context
  const { port } = loaded.settings.server
  const gateway = gatewayOf({
    settings: loaded.settings,
    plane: loaded.plane,
    system: context.system!,
    log,
    clock,
    random,
    metrics,
    devMailbox: context.caughtMail,
    shared: threads === 1 ? undefined : { thread: 'main', port },
  })
  context.gateway = gateway
  try {
    const { url, port: bound } = await gateway.listen()
    context.url = url
    context.port = bound
  } catch (error) {
    await gateway.close()
    throw error
  }
  return async (withinMs) => {
    const drained = await gateway.drain(withinMs)
    await gateway.close()
    return drained
  }
}

/** The very first start creates the control-plane tenant and the signing keys. */
async function awaitTenantAndKeys(context: StartContext): Promise<void> {
  const { system, clock } = context
  const { tenant } = await system!.ref(tenants).ensureControlPlane({})
  context.controlPlaneTenantId = tenant.id
  const maintain = () => system!.ref(signingKeys).maintain(null, { timeoutMs: MAINTAIN_LIMIT_MS })
  const endMs = clock.monotonicMs() + KEYS_WITHIN_MS
  while ((await maintain()).tag !== 'maintained') {
    if (clock.monotonicMs() > endMs)
      throw new StartRefused('the signing keys cannot be loaded: check the kms and the database')
    context.options.signal?.throwIfAborted()
    await sleep(KEYS_RETRY_MS)
  }
}

async function listenForChanges({ database, system }: StartContext): Promise<Undo> {
  return followChanges(database!, system!)
}

/** A client that reads "ready" in the log and then asks the probe must get the same answer. */
async function letIn({
  gateway,
  state,
  log,
  loaded,
  system,
  clock,
  options,
}: StartContext): Promise<void> {
  if (options.isWarm === true) gateway!.warm()
  state.started = true
  gateway!.started()
  const fit = async () => (await system!.ref(health).healthReady(null)).tag === 'ok'
  const endMs = clock.monotonicMs() + FIT_WITHIN_MS
  while (!(await fit()) && clock.monotonicMs() < endMs) await sleep(FIT_RETRY_MS)
  log.info({ plane: loaded.plane }, 'ready')
}

function serviceOf(context: StartContext, stop: () => Promise<boolean>): Service {
  const { loaded, url, controlPlaneTenantId, system } = context
  const { oidc, openapi, security, server } = loaded.settings
  return {
    plane: loaded.plane,
    url: url!,
    baseUrl: oidc.issuer_url,
    egressUrl: server.egress_url,
    mailUrl: context.caughtMail === undefined ? undefined : `${oidc.issuer_url}/dev/mail`,
    isLocal: !security.production,
    docsUrl: openapi.enabled ? oidc.issuer_url + openapi.docs_path : undefined,
    controlPlaneTenantId: controlPlaneTenantId!,
    dataDir:
      context.embedded === true || context.hasLocalKeys === true ? loaded.dataDir : undefined,
    ref: (address) => system!.ref(address),
    stop,
  }
}

/**
 * Errors that tell what to change become refusals. Any other error is a defect and is thrown on.
 */
function explained(loaded: LoadedSettings, error: unknown): unknown {
  if (error instanceof Error && MENDABLE.has(error.name)) {
    return new StartRefused(explainedBy(loaded, error), { cause: error })
  }
  return error
}

function once(work: () => Promise<boolean>): () => Promise<boolean> {
  let done: Promise<boolean> | undefined
  return () => {
    done ??= work()
    return done
  }
}

/**
 * Binds the ports and releases them. The listeners bind them later, and report when another process
 * was faster.
 * @throws {StartRefused} naming the address.
 */
async function requireFreePorts({ loaded }: StartContext): Promise<void> {
  const { host, port: main } = loaded.settings.server
  for (const port of [main, egressPortOf(loaded) ?? 0]) {
    const fault = port === 0 ? undefined : await portFault(host, port)
    if (fault !== undefined) {
      throw new StartRefused(`cannot listen on ${host} port ${port}: ${fault}`)
    }
  }
}
