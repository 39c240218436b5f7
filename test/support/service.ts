/** The whole service on a database of its own, for tests over HTTP. */
import { startService } from '../../runtime/startup.js'
import { createLogger } from '../../runtime/kernel/log.js'
import { THROUGH_TRANSPORT, throughProxy } from './fleet/through.js'
import { everywhere, type Found } from './service/canaries.js'
import { freshDatabase } from './storage/database.js'
import { type Certificate, makeCertificate } from './service/certificates.js'
import { watchContract } from './contract.js'
import { hostileEngine, IS_HOSTILE } from './storage/hostile-engine.js'
import { rememberLine } from './service/exchanges.js'
import { countStart } from './service/started.js'
import { testKms } from './storage/kms.js'
import {
  freePort,
  TEST_DEFAULTS,
  type TestService,
  type TestServiceOptions,
  type Transport,
} from './service/settings.js'
import { trust } from './service/trust.js'

export { freePort, TEST_DEFAULTS } from './service/settings.js'
export type { TestService, TestServiceOptions, Transport } from './service/settings.js'

/**
 * Those that flows are repeated over. `tls` is both protocols of the two, and has tests of its own. Through a proxy there is
 * one, whatever its name: the proxy decides.
 */
export const TRANSPORTS: readonly Transport[] =
  THROUGH_TRANSPORT === undefined ? ['plain_http', 'tls_h2_only'] : ['plain_http']

/** The runner repeats the flows with TEST_TRANSPORT=tls_h2_only. */
export const DEFAULT_TRANSPORT: Transport =
  THROUGH_TRANSPORT ??
  (['tls', 'tls_h2_only'] as const).find((name) => name === process.env['TEST_TRANSPORT']) ??
  'plain_http'

/**
 * TEST_GATEWAY_THREADS=2 runs flows with two gateway threads, which on Node.js 20 only the native parser and
 * plain_http allow.
 */
const THREADS = process.env['TEST_GATEWAY_THREADS']

export async function testService(options: TestServiceOptions = {}): Promise<TestService> {
  const { transport = DEFAULT_TRANSPORT, host = 'localhost', beside } = options
  watchContract()
  if (beside === undefined) {
    const through = await throughProxy(options, (fleet) => testService({ beside: fleet }))
    if (through !== undefined) {
      trust(through.ca)
      return through
    }
  }
  const db = beside?.db ?? (await freshDatabase())
  const engine =
    beside?.engine ?? (IS_HOSTILE ? await hostileEngine(db, 'table', await freePort()) : undefined)
  const port = await freePort()
  const kms = beside?.kms ?? (await testKms())
  const certificate: Certificate | undefined =
    transport === 'plain_http' ? undefined : (shared ??= makeCertificate())
  if (certificate) trust(certificate.pem)
  const scheme = certificate ? 'https' : 'http'
  const baseUrl = `${scheme}://${host}:${port}`
  const issuer = beside?.issuer ?? baseUrl
  const leaks: Found[] = []
  const logged = (line: string) => {
    if (process.env['TEST_LOG']) process.stdout.write(line)
    rememberLine(line)
    options.onLog?.(line)
    leaks.push(...everywhere.search('log', line))
  }
  countStart('service')
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
      ...beside?.processEnvironment,
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
