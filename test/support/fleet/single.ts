/** A service of the runner: one process, as `testService()` starts it in the process of a test, or two. */
import { writeFileSync } from 'node:fs'
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
  by,
}: SingleOptions): Promise<Served> {
  if (kms === undefined || logFolder === undefined) throw new Error('the pool has both')
  const isPlain = transport === 'plain_http'
  const ca = isPlain ? undefined : certificate.pem
  const db = await freshDatabase()
  const port = await freePort()
  const scheme = isPlain ? 'http' : 'https'
  const baseUrl = `${scheme}://${host}:${port}`
  const begin = (name: string, at: number) => {
    const logPath = join(logFolder, `${name}.log`)
    // Another file reads it before the process writes.
    writeFileSync(logPath, '')
    return start({
      name,
      by,
      port: at,
      ca,
      logPath,
      isWatched: true,
      environment: {
        ...TEST_DEFAULTS,
        DATABASE_URL: db.url,
        SVC_SERVER__PORT: String(at),
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
  }
  const processes = [begin('service', port)]
  const end = async () => {
    const codes = await Promise.all(processes.map((each) => each.terminate()))
    await db.drop()
    const at = codes.findIndex((code) => code !== 0)
    if (at !== -1)
      throw new Error(
        `${baseUrl} ended with ${codes[at]}:\n${processes[at]!.output().slice(-4_000)}`,
      )
  }
  try {
    await processes[0]!.ready()
  } catch (error) {
    await end().catch(() => undefined)
    throw error
  }
  let second: Promise<string> | undefined
  const startSecond = async () => {
    const process = begin('second', await freePort())
    processes.push(process)
    await process.ready()
    return `${scheme}://${host}:${process.port}`
  }
  return {
    baseUrl,
    secondUrl: () => (second ??= startSecond()),
    ca,
    db,
    kms,
    coordination: { environment: {} },
    processes,
    end,
  }
}
