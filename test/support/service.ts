/** The whole service on a database of its own, for tests over HTTP. */
import { createServer } from 'node:net'
import { rootCertificates } from 'node:tls'
import { threadId } from 'node:worker_threads'
import { Agent, setGlobalDispatcher } from 'undici'
import { startService, type Service } from '../../runtime/startup.js'
import type { Clock } from '../../runtime/kernel/clock.js'
import { createLogger } from '../../runtime/kernel/log.js'
import { everywhere, type Found } from './service/canaries.js'
import { type FreshDatabase, freshDatabase } from './storage/database.js'
import { type Certificate, makeCertificate } from './service/certificates.js'
import { watchContract } from './contract.js'
import { type HostileEngine, hostileEngine, IS_HOSTILE } from './storage/hostile-engine.js'
import { type TestKms, testKms } from './storage/kms.js'

export type Transport = 'plain_http' | 'tls' | 'tls_h2_only'
/** Those that flows are repeated over. `tls` is both protocols of the two, and has tests of its own. */
export const TRANSPORTS: readonly Transport[] = ['plain_http', 'tls_h2_only']

/** The runner repeats the flows with TEST_TRANSPORT=tls_h2_only. */
export const DEFAULT_TRANSPORT: Transport =
  (['tls', 'tls_h2_only'] as const).find((name) => name === process.env['TEST_TRANSPORT']) ??
  'plain_http'

/**
 * TEST_GATEWAY_THREADS=2 runs flows with two gateway threads, which on Node.js 20 only the native parser and
 * plain_http allow.
 */
const THREADS = process.env['TEST_GATEWAY_THREADS']

export interface TestService {
  readonly service: Service
  readonly db: FreshDatabase
  /** With TEST_ENGINE=hostile, what is between the service and the database. */
  readonly engine: HostileEngine | undefined
  readonly kms: TestKms
  /** The address of the service. */
  readonly baseUrl: string
  /** Equal to `baseUrl`, except for a second service, which shares the first one's issuer. */
  readonly issuer: string
  /** PEM of a CA, to be trusted by TLS clients. Undefined for plain_http. */
  readonly ca: string | undefined
  /** Stops the service and removes its database. @throws when it has logged a planted secret. */
  end(): Promise<void>
}

export interface TestServiceOptions {
  readonly transport?: Transport | undefined
  /** SVC_ variables that override the defaults below. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  /** Replaces the system clock on the main thread. */
  readonly clock?: Clock | undefined
  /** Receives each line of the log. */
  readonly onLog?: ((line: string) => void) | undefined
  /** Another service, whose database this one shares. */
  readonly beside?: TestService | undefined
}

/**
 * Settings that let a test machine finish in milliseconds. Everything else is real. Rate limits are
 * off, because tests send hundreds of requests from one address. Tests of rate limits turn them on.
 */
export const TEST_DEFAULTS = {
  SVC_SERVER__HOST: '127.0.0.1',
  SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
  SVC_SERVER__GATEWAY_THREADS: '1',
  SVC_CHALLENGE__POW_DIFFICULTY_BITS: '8',
  SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
  SVC_AUTH__ARGON2_MEMORY_KIB: '64',
  SVC_AUTH__ARGON2_ITERATIONS: '1',
  SVC_DATABASE__MAX_CONNECTIONS: '8',
  SVC_DATABASE__MIN_CONNECTIONS: '0',
  SVC_DATABASE__IDENTITY_MAX_CONNECTIONS: '2',
  // Tests send mail to one address repeatedly. Tests of these limits set them.
  SVC_EMAIL__PER_ADDRESS_PER_DAY_MAX: '1000',
  SVC_EMAIL__PER_ADDRESS_GAP_SECS: '0',
  SVC_EMAIL__PER_SANDBOX_PER_DAY_MAX: '1000',
  // On by default outside production. A test turns on what it needs.
  SVC_PASSKEY__ENABLED: 'false',
  SVC_USER_SELF_SERVICE__ENABLED: 'false',
  SVC_EMAIL_OTP__ENABLED: 'false',
  SVC_MAGIC_LINK__ENABLED: 'false',
  SVC_INVITATIONS__ENABLED: 'false',
}

export async function testService(options: TestServiceOptions = {}): Promise<TestService> {
  const { transport = DEFAULT_TRANSPORT, beside } = options
  watchContract()
  const db = beside?.db ?? (await freshDatabase())
  const engine =
    beside?.engine ?? (IS_HOSTILE ? await hostileEngine(db, 'table', await freePort()) : undefined)
  const port = await freePort()
  const kms = beside?.kms ?? (await testKms())
  const certificate: Certificate | undefined =
    transport === 'plain_http' ? undefined : (shared ??= makeCertificate())
  if (certificate) trust(certificate.pem)
  const scheme = certificate ? 'https' : 'http'
  const baseUrl = `${scheme}://localhost:${port}`
  const issuer = beside?.issuer ?? baseUrl
  const leaks: Found[] = []
  const logged = (line: string) => {
    if (process.env['TEST_LOG']) process.stdout.write(line)
    options.onLog?.(line)
    leaks.push(...everywhere.search('log', line))
  }
  const service = await startService({
    cwd: '/',
    log: createLogger({ level: 'debug', destination: { write: logged } }),
    cloneMessages: true,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    environment: {
      ...TEST_DEFAULTS,
      DATABASE_URL: db.url,
      ...engine?.environment,
      SVC_SERVER__PORT: String(port),
      SVC_SERVER__TRANSPORT: transport,
      SVC_OIDC__ISSUER_URL: issuer,
      ...kms.environment,
      ...(THREADS === undefined || certificate
        ? {}
        : { SVC_SERVER__GATEWAY_THREADS: THREADS, SVC_SERVER__HTTP1_PARSER: 'uwebsockets' }),
      ...(certificate
        ? {
            SVC_SERVER__TLS__CERT_PEM_PATH: certificate.certPath,
            SVC_SERVER__TLS__KEY_PEM_PATH: certificate.keyPath,
          }
        : {}),
      ...options.environment,
    },
  }).catch(async (error: unknown) => {
    // A refused start also cleans up: the test file could not end otherwise.
    if (beside === undefined) {
      await engine?.stop()
      await kms.end()
      await db.drop()
    }
    throw error
  })
  return {
    service,
    db,
    engine,
    kms,
    baseUrl,
    issuer,
    ca: certificate?.pem,
    async end() {
      await service.stop()
      if (beside === undefined) {
        await engine?.stop()
        await kms.end()
        await db.drop()
      }
      if (leaks.length > 0) throw new Error(`secrets in the log: ${JSON.stringify(leaks)}`)
    },
  }
}

/**
 * One certificate for all services of a test file: a client could not distinguish two of the same
 * name.
 */
let shared: Certificate | undefined
process.once('exit', () => shared?.remove())

/** From now on `fetch` uses HTTP/2 where it is offered, and trusts the certificate. */
function trust(pem: string): void {
  const connect = { ca: [...rootCertificates, pem] }
  setGlobalDispatcher(new Agent({ allowH2: true, connect }))
}

/** Below the system's ephemeral ports (32768 and up on Linux). */
const PORTS = { first: 12_000, count: 20_000, ofThread: 50 }
let portsTaken = 0

/**
 * A free port that stays free until its use: outside of the system's ephemeral ports, and different
 * from those of concurrent test files.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const at = (process.pid + threadId) * PORTS.ofThread + portsTaken++
    const port = PORTS.first + (at % PORTS.count)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
