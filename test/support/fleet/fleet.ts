/**
 * Several processes on one database behind a proxy, as in production: with nginx two of each plane, with HAProxy, which
 * passes TLS through and sees no paths, two of all planes.
 */
import { join } from 'node:path'
import { type FreshDatabase, freshDatabase } from '../storage/database.js'
import { type TestKms, testKms } from '../storage/kms.js'
import { type Certificate, makeCertificate } from '../service/certificates.js'
import { METRICS_TOKEN } from '../service/watch.js'
import { freePort, TEST_DEFAULTS, type TestHost } from '../service/settings.js'
import {
  type CoordinationName,
  type CoordinationServers,
  startCoordination,
} from './coordination.js'
import { type FleetProcess, type ProcessOptions, startProcess } from './process.js'
import { type ProxyName, startProxy } from './proxy.js'

export interface FleetOptions {
  readonly through: ProxyName
  /** Default: postgres. */
  readonly coordination?: CoordinationName | undefined
  /** The host of the URL. Default: `localhost`. */
  readonly host?: TestHost | undefined
  /** SVC_ variables of all processes. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  /** Default: one in this process, which the fleet ends. */
  readonly kms?: TestKms | undefined
  /** Default: a fresh one, which the fleet drops at its end. */
  readonly db?: FreshDatabase | undefined
  /** The URL that the processes use, where it is not the URL of `db`. */
  readonly databaseUrl?: string | undefined
  /**
   * `each`: two processes of each plane, for nginx alone. `all`: two processes of all planes, for HAProxy, which sees no
   * paths. Default: `each` for nginx, `all` for HAProxy.
   */
  readonly planes?: 'each' | 'all' | undefined
  /** The compiled tree of all processes at first. Default: the tree of the tests. */
  readonly tree?: string | undefined
  /** Receives each line of the logs, at the level `debug`. */
  readonly onLog?: ((line: string) => void) | undefined
  /** For files with the logs of the processes. Default: the memory of this process. */
  readonly logFolder?: string | undefined
  /** The proxy waits longer for a busy process than with its file. */
  readonly isPatient?: boolean | undefined
  /** Default: a separate process. */
  readonly start?: ((options: ProcessOptions) => FleetProcess) | undefined
  /** The variables that a tree knows. Default: all. */
  readonly adapt?: ((variables: Variables, tree: string | undefined) => Variables) | undefined
}

type Variables = Readonly<Record<string, string>>
/** The secrets that the plane `auth` must not have (docs/reference/runtime.md). */
const WITHHELD_FROM_AUTH = /^SVC_TENANT_ASSETS__(ACCESS_KEY_ID|SECRET_ACCESS_KEY)$/

function allowedOn(plane: string, variables: Variables): Variables {
  if (plane !== 'auth') return variables
  return Object.fromEntries(
    Object.entries(variables).filter(([name]) => !WITHHELD_FROM_AUTH.test(name)),
  )
}
type Changes = Pick<ProcessOptions, 'tree' | 'wrapper'>

export interface Fleet {
  readonly baseUrl: string
  readonly issuer: string
  readonly ca: string
  readonly certificate: Certificate
  readonly db: FreshDatabase
  readonly kms: TestKms
  readonly coordination: CoordinationServers
  readonly processes: readonly FleetProcess[]
  /** Ends a process with SIGTERM and starts it again, by default the same one. @returns its exit code. */
  restart(index: number, changes?: Changes): Promise<number>
  end(): Promise<void>
}

/** A fleet, or a service alone. */
export type Served = Pick<Fleet, 'baseUrl' | 'db' | 'kms' | 'processes' | 'end'> & {
  readonly ca: string | undefined
  /** Starts a second process of a service alone, at the first call. @returns its address. */
  readonly secondUrl?: () => Promise<string>
  readonly coordination: { readonly environment: Variables }
}

/** In the order of the addresses in the files of the proxies. Processes of the plane `async` have no address there. */
const PLANES = {
  each: ['auth', 'auth', 'control', 'control', 'async', 'async'],
  all: ['all', 'all'],
} as const
/** Tests end sooner. Tests of the drain set it. */
const DRAIN_SECS = '0'

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { through, coordination: backend = 'postgres', environment = {} } = options
  const { host = 'localhost' } = options
  const { adapt = (variables) => variables, start = startProcess } = options
  const undos: (() => Promise<void> | void)[] = []
  const end = async () => {
    const failures: unknown[] = []
    for (const undo of undos.splice(0).toReversed()) {
      try {
        await undo()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
  try {
    const db = options.db ?? (await freshDatabase())
    if (options.db === undefined) undos.push(() => db.drop())
    const kms = options.kms ?? (await testKms())
    if (options.kms === undefined) undos.push(() => kms.end())
    const coordination = await startCoordination(backend)
    undos.push(() => coordination.stop())
    const certificate = makeCertificate()
    undos.push(() => certificate.remove())
    const port = await freePort()
    const baseUrl = `https://${host}:${port}`
    const isTcp = through === 'haproxy'
    const common = {
      ...TEST_DEFAULTS,
      DATABASE_URL: options.databaseUrl ?? db.url,
      SVC_OIDC__ISSUER_URL: baseUrl,
      SVC_SERVER__TRANSPORT: isTcp ? 'tls_h2_only' : 'tls_http1',
      SVC_SERVER__TLS__CERT_PEM_PATH: certificate.certPath,
      SVC_SERVER__TLS__KEY_PEM_PATH: certificate.keyPath,
      SVC_SERVER__TRUSTED_PROXIES: isTcp ? '' : '127.0.0.1',
      SVC_SERVER__DRAIN_SECS: DRAIN_SECS,
      SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
      ...kms.environment,
      ...coordination.environment,
      ...environment,
    }
    const planned: ProcessOptions[] = []
    const planes = PLANES[options.planes ?? (isTcp ? 'all' : 'each')]
    for (const [index, plane] of planes.entries()) {
      const own = await freePort()
      const isAll = plane === 'all'
      planned.push({
        name: `${plane} ${index}`,
        port: own,
        ca: certificate.pem,
        tree: options.tree,
        onLog: options.onLog,
        logPath: options.logFolder && join(options.logFolder, `${plane}-${index}.log`),
        environment: {
          ...allowedOn(plane, common),
          SVC_SERVER__PORT: String(own),
          SVC_RUNTIME_PLANE: plane,
          SVC_DEPLOYMENT__ALLOW_ALL_IN_ONE_RUNTIME_PLANE: String(isAll),
        },
      })
    }
    // The first one creates what all need: the control-plane tenant and the keys.
    const processes: FleetProcess[] = []
    undos.push(async () => {
      const codes = await Promise.all(processes.map((process) => process.terminate()))
      const unclean = processes.filter((_, index) => codes[index] !== 0)
      if (unclean.length > 0) {
        throw new Error(unclean.map(({ name, output }) => `${name}:\n${output()}`).join('\n'))
      }
    })
    const launch = (one: ProcessOptions) =>
      start({ ...one, environment: adapt(one.environment, one.tree) })
    processes.push(launch(planned[0]!))
    await processes[0]!.ready()
    for (const one of planned.slice(1)) processes.push(launch(one))
    await Promise.all(processes.map((process) => process.ready()))
    const served = planned.flatMap((one, index) => (planes[index] === 'async' ? [] : [one.port]))
    const addresses = served.length === 2 ? [...served, ...served] : served
    const proxy = await startProxy(through, port, addresses, certificate, options.isPatient)
    undos.push(() => proxy.stop())
    return {
      baseUrl,
      issuer: baseUrl,
      ca: certificate.pem,
      certificate,
      db,
      kms,
      coordination,
      processes,
      async restart(index, changes = {}) {
        const code = await processes[index]!.terminate()
        planned[index] = { ...planned[index]!, ...changes }
        processes[index] = launch(planned[index])
        await processes[index].ready()
        return code
      },
      end,
    }
  } catch (error) {
    // That a process ends with an error follows from the reason of this one.
    await end().catch(() => undefined)
    throw error
  }
}
