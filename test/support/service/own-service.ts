/** A whole service in the process of a test, on its own database. */
import { startService } from '../../../runtime/process/startup.js'
import { createLogger } from '../../../runtime/kernel/log.js'
import { everywhere, type Found } from './canaries.js'
import { freshDatabase } from '../storage/database.js'
import { type Certificate, makeCertificate } from './certificates.js'
import { watchContract } from '../contract.js'
import { watchIdempotent } from '../idempotent.js'
import { hostileEngine, IS_HOSTILE } from '../storage/hostile-engine.js'
import { rememberLine } from './exchanges.js'
import { countStart } from './started.js'
import { testKms } from '../storage/kms.js'
import { freePort, TEST_DEFAULTS, type TestService, type TestServiceOptions } from './settings.js'
import { DEFAULT_TRANSPORT, THREADS } from '../fleet/transports.js'
import { trust } from './trust.js'

/**
 * For tests that stop a service, hold its clock, read its log, call its actors or put something between it and the
 * database. All others share services of the runner: `testService()`.
 */
export async function ownService(options: TestServiceOptions = {}): Promise<TestService> {
  const { transport = DEFAULT_TRANSPORT, host = 'localhost', peerOf } = options
  watchContract()
  watchIdempotent()
  const db = peerOf?.db ?? (await freshDatabase())
  const engine =
    peerOf?.engine ?? (IS_HOSTILE ? await hostileEngine(db, 'table', await freePort()) : undefined)
  const port = await freePort()
  const kms = peerOf?.kms ?? (await testKms())
  const certificate: Certificate | undefined =
    transport === 'plain_http' ? undefined : (shared ??= makeCertificate())
  if (certificate) trust(certificate.pem)
  const scheme = certificate ? 'https' : 'http'
  const baseUrl = `${scheme}://${host}:${port}`
  const issuer = peerOf?.issuer ?? baseUrl
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
      ...peerOf?.processEnvironment,
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
    if (peerOf === undefined) {
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
      if (peerOf === undefined) {
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
