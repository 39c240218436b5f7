/** `svc migrate`: compares the schema of a database with this build, and migrates it. */
import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import {
  type MigrationOptions,
  readSchemaState,
  runMigrations,
  type SchemaState,
} from '../../migrations/main.js'
import {
  compareSchema,
  finishingOf,
  isCompatible,
  type MigrationFile,
  readMigrationFiles,
  SchemaMismatch,
} from '../../storage/platform/schema-version.js'
import { type DatabaseUrls, databaseUrls } from '../../storage/platform/settings.js'
import { DatabaseUnreachable, isConnectionLoss } from '../../storage/platform/unavailable.js'
import {
  EXIT_CONFIGURATION,
  type LoadedSettings,
  loadSettings,
} from '../process/configuration/load-settings.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { printedFailures } from '../kernel/config/print.js'
import { createLogger, silentLogger } from '../kernel/log.js'
import { resultText, withTarget } from './target.js'
import { explainedBy } from '../process/which-database.js'
import { embeddedServer } from './key-tools.js'
import { output } from './output.js'
import { progressBar } from './progress.js'

const EXIT_FAILED = 1
const UP_TO_DATE = 'The database has every migration of this version.'
const EMBEDDED =
  'No database is configured: the embedded one is migrated whenever the service starts.'
const FINISHED = 'The database is finished: no process of an older version can run on it.'
/** What `check` says of a newer schema on which this build may run. */
const AHEAD = 'ahead, compatible'

export function migrateCommand(program: Command): void {
  const exitWith = async (code: Promise<number>) => {
    process.exitCode = await code
  }
  const migrate = program
    .command('migrate')
    .description('migrate the configured database to the schema of this build')
    .option('--json', 'as JSON')
    .action(({ json = false }: { json?: boolean }) =>
      exitWith(withSettings((loaded) => up(loaded, json))),
    )
  migrate
    .command('up')
    .description('the same as svc migrate')
    .option('--dry-run', 'only say what would run')
    .option('--json', 'as JSON')
    .action(({ dryRun = false, json = false }: { dryRun?: boolean; json?: boolean }) =>
      exitWith(withSettings((loaded) => (dryRun ? foretell : up)(loaded, json))),
    )
  migrate
    .command('finish')
    .description('apply what processes of older versions cannot run with: stop them first')
    .option('--json', 'as JSON')
    .action(({ json = false }: { json?: boolean }) =>
      exitWith(withSettings((loaded) => finish(loaded, json))),
    )
  migrate
    .command('status')
    .description('the migrations that the database has, and those that it lacks')
    .option('--json', 'as JSON')
    .action(({ json = false }: { json?: boolean }) =>
      exitWith(withSettings((loaded) => status(loaded, json))),
    )
  migrate
    .command('check')
    .description('exit with 1 unless this build may run on the schema of the database')
    .option('--json', 'as JSON')
    .action(({ json = false }: { json?: boolean }) =>
      exitWith(withSettings((loaded) => check(loaded, json))),
    )
}

/** Standard output has only the result. */
const logger = () =>
  createLogger({ level: 'info', destination: { write: (line) => process.stderr.write(line) } })

const print = (text: string) => output(`${text}\n`)

async function withSettings(work: (loaded: LoadedSettings) => Promise<number>): Promise<number> {
  const input = {
    environment: readEnvironment(),
    cwd: process.cwd(),
    uid: process.getuid?.(),
    servesPlane: false,
  }
  const loaded = loadSettings(input)
  if (loaded.tag === 'refused') {
    process.stderr.write(`${printedFailures(loaded.failures)}\n`)
    return EXIT_CONFIGURATION
  }
  const urls = databaseUrls(loaded.settings.database)
  try {
    return await work(loaded)
  } catch (error) {
    const shown = urls === undefined ? error : unreached(urls.migration, error)
    process.stderr.write(`svc: ${explainedBy(loaded, shown)}\n`)
    return EXIT_FAILED
  }
}

/** The embedded database needs no such step: every start migrates it. */
async function up({ settings: { database } }: LoadedSettings, json: boolean): Promise<number> {
  const urls = databaseUrls(database)
  if (urls === undefined) {
    print(resultText(json, { applied: [], embedded: true }, EMBEDDED))
    return 0
  }
  const applied = await runMigrations(optionsFor(database, urls))
  print(resultText(json, { applied }, appliedText(applied, UP_TO_DATE)))
  return 0
}

function appliedText(applied: readonly string[], none: string): string {
  return applied.length === 0 ? none : `Applied: ${applied.join(', ')}`
}

async function finish(
  { settings: { database }, dataDir }: LoadedSettings,
  json: boolean,
): Promise<number> {
  const urls = databaseUrls(database)
  const embedded = urls === undefined ? await embeddedServer(dataDir) : undefined
  try {
    const options =
      urls === undefined
        ? { url: embedded!.server.url, log: logger(), progress: progressBar('migrations') }
        : optionsFor(database, urls)
    const applied = await runMigrations({ ...options, finish: true })
    print(resultText(json, { applied }, appliedText(applied, FINISHED)))
    return 0
  } finally {
    if (embedded?.isGuest === false) await embedded.server.stop()
  }
}

function optionsFor(
  database: LoadedSettings['settings']['database'],
  urls: DatabaseUrls,
): MigrationOptions {
  return {
    url: urls.migration,
    log: logger(),
    progress: progressBar('migrations'),
    runtimeRoles: rolesOf(urls),
    requireSsl: database.require_ssl,
    connectTimeoutSecs: database.connect_timeout_secs,
  }
}

async function foretell(loaded: LoadedSettings, json: boolean): Promise<number> {
  const { files, applied, verdict } = await stateOf(loaded)
  if (!isCompatible(verdict) && verdict.tag !== 'behind') throw new SchemaMismatch(verdict)
  const missing = pendingOf(files, applied)
  const text =
    missing.length === 0
      ? UP_TO_DATE
      : ['These migrations would run, in this order:', '', ...missing.map(told)].join('\n')
  print(resultText(json, { pending: missing.map(({ name }) => name) }, text))
  return 0
}

/** The name of a migration, with what its first comment says. */
function told({ name, sql }: MigrationFile): string {
  const lines = sql.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('--'))
  const words = lines.slice(0, end).map((line) => line.replace(/^--\s*/, ''))
  return [name, ...words].join('\n    ')
}

async function status(loaded: LoadedSettings, json: boolean): Promise<number> {
  const { files, applied, verdict } = await stateOf(loaded)
  const pending = pendingOf(files, applied).map(({ name }) => name)
  const had = applied.map(({ name }) => name)
  const finishing = unfinishedOf(files, applied).map(({ name }) => name)
  if (json) {
    print(JSON.stringify(withTarget({ applied: had, pending, finishing }), null, 2))
    return 0
  }
  const newest = had.at(-1)
  print(
    [
      `applied  ${had.length}${newest === undefined ? '' : `, the newest ${newest}`}`,
      `pending  ${pending.length}${pending.length === 0 ? '' : `: ${pending.join(', ')}`}`,
      ...(finishing.length === 0 ? [] : [`finish   svc migrate finish: ${finishing.join(', ')}`]),
      ...(verdict.tag === 'ahead' ? [`newer    ${verdict.unknown.join(', ')}`] : []),
      ...(isCompatible(verdict) || verdict.tag === 'behind'
        ? []
        : [`fault    ${new SchemaMismatch(verdict).message}`]),
    ].join('\n'),
  )
  return 0
}

async function check(loaded: LoadedSettings, json: boolean): Promise<number> {
  const { files, applied, verdict } = await stateOf(loaded)
  const compatible = isCompatible(verdict)
  const detail =
    verdict.tag === 'current'
      ? 'the database has the schema of this build'
      : new SchemaMismatch(verdict).message
  if (json) {
    const pending = pendingOf(files, applied).map(({ name }) => name)
    print(
      JSON.stringify(withTarget({ verdict: verdict.tag, compatible, detail, pending }), null, 2),
    )
  } else if (compatible) print(`${verdict.tag === 'current' ? 'Current' : AHEAD}: ${detail}.`)
  else process.stderr.write(`svc: ${verdict.tag}: ${detail}\n`)
  return compatible ? 0 : EXIT_FAILED
}

/** The schema of the configured database, or of the embedded one. */
async function stateOf({ settings, dataDir }: LoadedSettings): Promise<SchemaState> {
  const { database } = settings
  const urls = databaseUrls(database)
  const log = silentLogger
  if (urls !== undefined) {
    return readSchemaState({
      url: urls.migration,
      log,
      requireSsl: database.require_ssl,
      connectTimeoutSecs: database.connect_timeout_secs,
    })
  }
  if (!existsSync(dataDir)) {
    const files = await readMigrationFiles()
    return { files, applied: [], verdict: compareSchema(files, []) }
  }
  const { server, isGuest } = await embeddedServer(dataDir)
  try {
    return await readSchemaState({ url: server.url, log })
  } finally {
    if (!isGuest) await server.stop()
  }
}

function pendingOf(
  files: readonly MigrationFile[],
  applied: readonly { readonly name: string }[],
): readonly MigrationFile[] {
  const had = new Set(applied.map(({ name }) => name))
  const finishing = new Set(had.size === 0 ? [] : finishingOf(files))
  return files.filter((file) => !had.has(file.name) && !finishing.has(file))
}

/** What only `svc migrate finish` applies to this database. */
function unfinishedOf(
  files: readonly MigrationFile[],
  applied: readonly { readonly name: string }[],
): readonly MigrationFile[] {
  const had = new Set(applied.map(({ name }) => name))
  return had.size === 0 ? [] : finishingOf(files).filter(({ name }) => !had.has(name))
}

/** Migrations open their own connection, whose errors are changed to read like a pool's. */
function unreached(url: string, error: unknown): unknown {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  return isConnectionLoss(cause) ? new DatabaseUnreachable(url, cause) : error
}

/** The users of the runtime URLs that differ from the migrating user. */
export function rolesOf(urls: DatabaseUrls): string[] {
  const { migration, runtime, identity, listener, auth, control } = urls
  const userOf = (url: string) => decodeURIComponent(new URL(url).username)
  const roles = [runtime, identity, listener, auth, control, urls.async]
    .map(userOf)
    .filter((role) => role !== '' && role !== userOf(migration))
  return [...new Set(roles)]
}
