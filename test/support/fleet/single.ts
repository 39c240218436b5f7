/** A service of the runner: one process, as `testService()` starts it in the process of a test. */
import { join } from 'node:path'
import type { Certificate } from '../service/certificates.js'
import { freePort, TEST_DEFAULTS } from '../service/settings.js'
import { freshDatabase } from '../storage/database.js'
import type { FleetOptions, Served } from './fleet.js'
import type { WantedFleet } from './take.js'
import { startProcess } from './process.js'

type SingleOptions = WantedFleet &
  Pick<FleetOptions, 'logFolder' | 'start'> & {
    readonly kms?: Served['kms'] | undefined
    readonly certificate: Certificate
  }

export async function startSingle({
  environment,
  host = 'localhost',
  transport = 'plain_http',
  kms,
  logFolder,
  start = startProcess,
  certificate,
}: SingleOptions): Promise<Served> {
  if (kms === undefined || logFolder === undefined) throw new Error('the pool has both')
  const isPlain = transport === 'plain_http'
  const ca = isPlain ? undefined : certificate.pem
  const db = await freshDatabase()
  const port = await freePort()
  const baseUrl = `${isPlain ? 'http' : 'https'}://${host}:${port}`
  const service = start({
    name: 'service',
    port,
    ca,
    logPath: join(logFolder, 'service.log'),
    isWatched: true,
    environment: {
      ...TEST_DEFAULTS,
      DATABASE_URL: db.url,
      SVC_SERVER__PORT: String(port),
      SVC_SERVER__TRANSPORT: transport,
      SVC_OIDC__ISSUER_URL: baseUrl,
      ...(isPlain
        ? {}
        : {
            SVC_SERVER__TLS__CERT_PEM_PATH: certificate.certPath,
            SVC_SERVER__TLS__KEY_PEM_PATH: certificate.keyPath,
          }),
      ...kms.environment,
      ...environment,
    },
  })
  const end = async () => {
    const code = await service.terminate()
    await db.drop()
    if (code !== 0)
      throw new Error(`${baseUrl} ended with ${code}:\n${service.output().slice(-4_000)}`)
  }
  try {
    await service.ready()
  } catch (error) {
    await end().catch(() => undefined)
    throw error
  }
  return {
    baseUrl,
    ca,
    db,
    kms,
    coordination: { environment: {} },
    processes: [service],
    end,
  }
}
