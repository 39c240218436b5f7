/** `svc migrate`: applies migrations to a database that the operator provides. */
import type { Command } from 'commander'
import { runMigrations } from '../../migrations/main.js'
import { databaseUrls } from '../../storage/platform/settings.js'
import { DatabaseUnreachable, isConnectionLoss } from '../../storage/platform/unavailable.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { printedFailures } from '../kernel/config/print.js'
import { createLogger } from '../kernel/log.js'
import { EXIT_CONFIGURATION, loadSettings } from '../configuration/load-settings.js'
import { explainedBy } from '../process/which-database.js'

const EXIT_FAILED = 1

export function migrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('migrate the configured database to the schema of this build')
    .action(async () => {
      process.exitCode = await migrate()
    })
}

/** The embedded database needs no such step: every start migrates it. */
async function migrate(): Promise<number> {
  const input = { environment: readEnvironment(), cwd: process.cwd(), servesPlane: false }
  const loaded = loadSettings(input)
  if (loaded.tag === 'refused') {
    process.stderr.write(`${printedFailures(loaded.failures)}\n`)
    return EXIT_CONFIGURATION
  }
  const { database } = loaded.settings
  const urls = databaseUrls(database)
  if (urls === undefined) {
    process.stdout.write(
      'No database is configured: the embedded one is migrated whenever the service starts.\n',
    )
    return 0
  }
  const { migration, runtime, identity, listener, auth, control } = urls
  try {
    const applied = await runMigrations({
      url: migration,
      log: createLogger({ level: 'info' }),
      runtimeRoles: rolesOf([runtime, identity, listener, auth, control, urls.async], migration),
      requireSsl: database.require_ssl,
      connectTimeoutSecs: database.connect_timeout_secs,
    })
    process.stdout.write(
      applied.length === 0 ? 'The database is up to date.\n' : `Applied: ${applied.join(', ')}\n`,
    )
    return 0
  } catch (error) {
    process.stderr.write(`svc: ${explainedBy(loaded, unreached(migration, error))}\n`)
    return EXIT_FAILED
  }
}

/** Migrations open their own connection, whose errors are changed to read like those of a pool. */
function unreached(url: string, error: unknown): unknown {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  return isConnectionLoss(cause) ? new DatabaseUnreachable(url, cause) : error
}

/** The users of the runtime URLs that differ from the migrating user. */
function rolesOf(urls: readonly string[], migration: string): string[] {
  const userOf = (url: string) => decodeURIComponent(new URL(url).username)
  const roles = urls.map(userOf).filter((role) => role !== '' && role !== userOf(migration))
  return [...new Set(roles)]
}
