/**
 * Flows that run against several processes behind a proxy instead of a service in the process of the test. The runner
 * sets TEST_THROUGH and TEST_COORDINATION, and has a pool of fleets at the socket TEST_FLEETS.
 */
import { appendFileSync, readFileSync, statSync } from 'node:fs'
import type { Service } from '../../../runtime/process/startup.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { openDatabase } from '../../../storage/platform/database.js'
import type { TestService, TestServiceOptions, Transport } from '../service/settings.js'
import { type FreshDatabase, sameUrls, testPoolSettings } from '../storage/database.js'
import { refuseWide } from '../storage/sql.js'
import { everywhere } from '../service/canaries.js'
import { rememberLog } from '../service/exchanges.js'
import { until } from '../service/watch.js'
import { COORDINATIONS } from './coordination.js'
import { takeFleet, type WantedFleet } from './take.js'
import { CONTRACT_FAULT } from './process.js'
import { PROXIES } from './proxy.js'

export const THROUGH = PROXIES.find((name) => name === process.env['TEST_THROUGH'])
/** What the processes behind the proxy speak. Undefined where TEST_THROUGH is not set. */
export const THROUGH_TRANSPORT: Transport | undefined =
  THROUGH && (THROUGH === 'nginx' ? 'tls_http1' : 'tls_h2_only')
/** The processes that serve a request of a test. */
export const SERVING_PROCESSES = THROUGH === undefined ? 1 : 2
/** A change holds immediately in the process that made it, elsewhere within a second (docs/concepts/architecture.md). */
export async function known(what: string, holds: () => Promise<boolean>): Promise<void> {
  if (THROUGH !== undefined) return until(what, holds)
  if (!(await holds())) throw new Error(`${what}: not immediately`)
}

/**
 * A test needs something that only a service in its own process has. The runner lists the test with this reason, and
 * does not count it as failed.
 */
export class NotThroughError extends Error {
  override readonly name = 'NotThroughError'
  constructor(reason: string) {
    super(`not through a proxy: ${reason}`)
    note({ reason })
  }
}

/** @throws {NotThroughError} where the flows run through a proxy. */
export function notThrough(reason: string): void {
  if (THROUGH !== undefined) throw new NotThroughError(reason)
}

/** @throws {NotThroughError} behind nginx, which says the addresses of clients itself. */
export function notBehindNginx(): void {
  if (THROUGH === 'nginx') throw new NotThroughError('it sends what a proxy sends')
}

/** @throws {NotThroughError} through a proxy whose processes speak HTTP/2 alone: `fetch` of Node.js does not. */
export function notThroughHttp2(): void {
  if (THROUGH_TRANSPORT === 'tls_h2_only') {
    throw new NotThroughError('its program does not speak HTTP 2')
  }
}

/** What the runner learns of a file besides the results of its tests. */
export type ThroughNote = {
  readonly file: string
  /** Why a part of the file cannot run. Absent where a test has got a fleet. */
  readonly reason?: string
}

function note(what: Omit<ThroughNote, 'file'>): void {
  const { TEST_THROUGH_NOTES: path, TEST_FILE: file = '' } = process.env
  if (path !== undefined) appendFileSync(path, `${JSON.stringify({ file, ...what })}\n`)
}

/** Settings that the fleet decides, with the reason why a test cannot. */
const REFUSED: readonly (readonly [name: RegExp, reason: string])[] = [
  [
    /^SVC_SERVER__(PORT|HOST|TRANSPORT|TLS__.*|HTTP1_PARSER|GATEWAY_THREADS)$/,
    'it chooses the listener',
  ],
  [/^SVC_RUNTIME_PLANE$/, 'it chooses the planes of its processes'],
  [
    /^(SVC_DEPLOYMENT__COORDINATION_BACKEND|SVC_REDIS__.*|SVC_MEMCACHED__.*)$/,
    'it chooses the coordination backend',
  ],
  [/^(DATABASE_URL|SVC_DATABASE__.*URL)$/, 'it chooses the database'],
]

/**
 * Undefined where TEST_THROUGH is not set.
 *
 * @param startBeside starts one more process of the deployment, in the process of the test.
 * @throws {NotThroughError} for options that only a service in this process has.
 */
export async function throughProxy(
  { environment = {}, clock, onLog, host, isShared }: TestServiceOptions,
  startBeside: (fleet: TestService) => Promise<TestService>,
): Promise<TestService | undefined> {
  if (THROUGH === undefined) return undefined
  if (clock !== undefined) throw new NotThroughError('it holds the clock of the service')
  for (const name of Object.keys(environment)) {
    const refused = REFUSED.find(([pattern]) => pattern.test(name))
    if (refused !== undefined) throw new NotThroughError(refused[1])
  }
  if (environment['SVC_SERVER__TRUSTED_PROXIES'] !== undefined) notBehindNginx()
  const socketPath = process.env['TEST_FLEETS']
  const fleet =
    socketPath !== undefined && onLog === undefined
      ? await pooledFleet(socketPath, {
          environment,
          host,
          // A fleet costs more than a service: those without settings share one too.
          isShared: isShared ?? (host === undefined && Object.keys(environment).length === 0),
        })
      : await ownFleet(environment, onLog, host)
  note({})
  let peer: Promise<TestService> | undefined
  const service = {
    // A message to an actor goes to one more process of the deployment.
    ref: (actor: never) =>
      new Proxy(
        {},
        {
          get: (_, message: string) => async (input: unknown) => {
            const { service: own } = await (peer ??= startBeside(running))
            const target = own.ref(actor) as Readonly<Record<string, (input: unknown) => unknown>>
            return target[message]!(input)
          },
        },
      ),
  }
  const running: TestService = {
    ...fleet,
    service: partOf<Service>('service', service),
    engine: undefined,
    async end() {
      await (await peer)?.end()
      await fleet.end()
    },
  }
  return running
}

type Found = Omit<TestService, 'service' | 'engine'>

async function ownFleet(
  environment: Readonly<Record<string, string>>,
  onLog: TestServiceOptions['onLog'],
  host: TestServiceOptions['host'],
): Promise<Found> {
  const coordination = COORDINATIONS.find((name) => name === process.env['TEST_COORDINATION'])
  const { startFleet } = await import('./fleet.js')
  const fleet = await startFleet({
    through: THROUGH!,
    coordination,
    environment,
    onLog,
    host,
    isPatient: true,
  })
  const { baseUrl, ca, db, kms, processes } = fleet
  return {
    baseUrl,
    issuer: environment['SVC_OIDC__ISSUER_URL'] ?? baseUrl,
    ca,
    db,
    kms,
    processEnvironment: fleet.coordination.environment,
    async end() {
      await fleet.end()
      refuseLeaks(processes.map(({ output }) => output()))
    },
  }
}

/** A fleet of the runner, or a service alone: what a test has of it until its end. */
export async function pooledFleet(socketPath: string, wanted: WantedFleet): Promise<Found> {
  const { fleet, giveBack } = await takeFleet(socketPath, wanted)
  const { baseUrl, secondUrl, ca, url, superuserUrl, environment, logPaths } = fleet
  const settings = testPoolSettings
  const urls = sameUrls(url)
  const database = await openDatabase({ settings, urls, plane: 'all', log: silentLogger })
  if (wanted.isShared === true) refuseWide(database)
  const drop = () => database.close()
  const db: FreshDatabase = { url, superuserUrl, database, settings, urls, drop }
  const logs = logPaths.map((path) => ({
    path,
    start: statSync(path).size,
    remember: rememberLog(path),
  }))
  return {
    kms: partOf<TestService['kms']>('kms', { environment: environment.kms }),
    baseUrl,
    secondUrl,
    issuer: wanted.environment['SVC_OIDC__ISSUER_URL'] ?? baseUrl,
    ca,
    db,
    processEnvironment: environment.coordination,
    async end() {
      await drop()
      const written = logs.map(({ path, start, remember }) => {
        const text = readFileSync(path).subarray(start).toString()
        remember(text)
        return text
      })
      await giveBack()
      refuseLeaks(written)
    },
  }
}

function refuseLeaks(logs: readonly string[]): void {
  const faults = logs.flatMap((text) => text.match(CONTRACT_FAULTS) ?? [])
  if (faults.length > 0) throw new Error([...new Set(faults)].join('\n'))
  const leaks = logs.flatMap((text) => everywhere.search('log', text))
  if (leaks.length > 0) throw new Error(`secrets in the log: ${JSON.stringify(leaks)}`)
}

const CONTRACT_FAULTS = new RegExp(`^${CONTRACT_FAULT}.*$`, 'gm')

/** The part has the members that a fleet has too. The others need a service in the process of the test. */
export function partOf<Part extends object>(name: string, members: object): Part {
  return new Proxy(members as Part, {
    get(target, member) {
      if (Object.hasOwn(target, member)) return target[member as keyof Part]
      const what = `it calls ${name}.${String(member)} of the service`
      if (THROUGH !== undefined) throw new NotThroughError(what)
      throw new Error(`${what}, which only ownService() has`)
    },
  })
}
