/** `svc doctor`: checks a deployment from its configuration, and says what to change. docs/guides/operations/doctor.md. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { openCoordination } from '../../../storage/platform/coordination/open.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import { type OpenDatabase, openDatabase } from '../../../storage/platform/database.js'
import type { DatabaseUrls } from '../../../storage/platform/settings.js'
import { type LoadedSettings, loadSettings } from '../../process/configuration/load-settings.js'
import { type Environment, readEnvironment } from '../../kernel/config/environment.js'
import { printedSource } from '../../kernel/config/print.js'
import type { Failure } from '../../kernel/config/outcome.js'
import { silentLogger } from '../../kernel/log.js'
import { targetLine, targetOfSettings } from '../target.js'
import { databaseServer } from '../key-tools.js'
import { addressChecks } from './address-checks.js'
import { type Check, fail, ok, type Patient, type Verdict, whyOf } from './checks.js'
import { databaseChecks } from './database-checks.js'
import { listenerChecks } from './listener-checks.js'
import { coordinationChecks, eventSinkChecks, kmsChecks, mailChecks } from './service-checks.js'
import { output } from '../output.js'

interface DoctorReport {
  /** The deployment, and where it was read from. */
  readonly target: string
  readonly checks: readonly Check[]
}

interface DoctorCommandHost {
  readonly environment: Environment
  readonly cwd: string
  readonly uid?: number | undefined
  readonly out: (text: string) => void
  readonly exitWith: (code: number) => void
}

const TICKET_BYTES = 24
const REFUSED = 'no deployment: the configuration is refused'

/** Adds `doctor` to the program. */
export function doctorCommand(program: Command, host: DoctorCommandHost = processHost()): void {
  program
    .command('doctor')
    .description('check this deployment: address, proxy, database, kms, mail, DNS, certificate')
    .option(
      '--ca-file <pem>',
      'file with the CA of the public address; default: server.tls.ca_pem_path',
    )
    .option('--json', 'as JSON')
    .action(async ({ caFile, json = false }: { caFile?: string; json?: boolean }) => {
      const report = await diagnose(host, caFile)
      host.out(json ? JSON.stringify(report, null, 2) : reportText(report))
      if (report.checks.some(({ verdict }) => verdict === 'fail')) host.exitWith(1)
    })
}

/** Runs all checks. Never throws: what cannot be checked is a failed check. */
export async function diagnose(
  { environment, cwd, uid }: Pick<DoctorCommandHost, 'environment' | 'cwd' | 'uid'>,
  caFile?: string,
): Promise<DoctorReport> {
  const loaded = loadSettings({ environment, cwd, uid, servesPlane: false })
  if (loaded.tag === 'refused')
    return { target: REFUSED, checks: loaded.failures.map(configurationFailure) }
  const target = targetLine(await targetOfSettings(loaded))
  try {
    const caPath = caFile ?? loaded.settings.server.tls?.ca_pem_path
    const ca = caPath === undefined ? undefined : readFileSync(caPath, 'utf8')
    const from = loaded.file ?? 'defaults and the environment'
    const valid = ok('configuration', `valid, read from ${from}`)
    return { target, checks: [valid, ...(await examined(loaded, ca))] }
  } catch (error) {
    return { target, checks: [fail('doctor', whyOf(error), 'correct the options of the command')] }
  }
}

async function examined(loaded: LoadedSettings, ca: string | undefined): Promise<readonly Check[]> {
  const { settings, plane, dataDir } = loaded
  const undo: (() => Promise<unknown>)[] = []
  const lost: Check[] = []
  let urls: DatabaseUrls | undefined
  try {
    const server = await databaseServer(loaded)
    undo.push(server.stop)
    urls = server.urls
  } catch (error) {
    lost.push(fail('database', whyOf(error), 'configure database.url, or free the data directory'))
  }
  const isProduction = settings.security.production
  const patient: Patient = { settings, plane, dataDir, isProduction, urls, ca }
  try {
    const ofDatabase = lost.length > 0 ? lost : await databaseChecks(patient)
    let coordination: Coordination | undefined
    const open = async () => {
      let database: OpenDatabase | undefined
      if (urls !== undefined && settings.deployment.coordination_backend === 'postgres') {
        database = await openDatabase({
          settings: { ...settings.database, min_connections: 0 },
          urls,
          plane,
          log: silentLogger,
        })
        const opened = database
        undo.push(() => opened.close())
      }
      const { deployment, redis, memcached } = settings
      coordination = await openCoordination({
        backend: deployment.coordination_backend,
        // The other backends do not use it.
        database: database!,
        redis,
        memcached,
        log: silentLogger,
      })
      const opened = coordination
      undo.push(() => opened.close())
      return coordination
    }
    const ofCoordination = await coordinationChecks(patient, open)
    const isShared = ofCoordination.every(({ verdict }) => verdict === 'ok')
    const ticket = randomBytes(TICKET_BYTES).toString('base64url')
    const [ofAddress, ofKms, ofMail, ofSinks] = await Promise.all([
      addressChecks(patient, isShared ? coordination : undefined, ticket),
      kmsChecks(patient),
      mailChecks(patient),
      eventSinkChecks(patient),
    ])
    const ofListeners = listenerChecks(patient)
    return [
      ...ofAddress,
      ...ofListeners,
      ...ofDatabase,
      ...ofCoordination,
      ...ofKms,
      ...ofMail,
      ...ofSinks,
    ]
  } finally {
    for (const step of undo.toReversed()) await step().catch(() => undefined)
  }
}

function configurationFailure({ key, source, rule, fix }: Failure): Check {
  return fail('configuration', `${key} (${printedSource(source)}) ${rule}`, fix)
}

const SIGNS: Readonly<Record<Verdict, string>> = { ok: 'ok  ', warn: 'WARN', fail: 'FAIL' }

/** The report as a table, with the fix below each finding. */
function reportText({ checks }: DoctorReport): string {
  const width = Math.max(...checks.map(({ name }) => name.length))
  const lines = checks.flatMap(({ name, verdict, detail, fix }) => [
    `${SIGNS[verdict]}  ${name.padEnd(width)}  ${detail}`,
    ...(fix === '' ? [] : [`${' '.repeat(width + 8)}-> ${fix}`]),
  ])
  const count = (verdict: Verdict) => checks.filter((one) => one.verdict === verdict).length
  return [
    ...lines,
    '',
    `${count('ok')} ok, ${count('warn')} warnings, ${count('fail')} failures.`,
  ].join('\n')
}

function processHost(): DoctorCommandHost {
  return {
    environment: readEnvironment(),
    cwd: process.cwd(),
    uid: process.getuid?.(),
    out: (text) => output(`${text}\n`),
    exitWith: (code) => {
      process.exitCode = code
    },
  }
}
