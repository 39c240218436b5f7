/**
 * Migrates a database to the schema of this program. Migrations run forward only, one transaction per file, one runner at
 * a time. A file that builds indexes concurrently has no transaction.
 *
 * node-pg-migrate is not used, because a second runner must wait (there it fails immediately), and because files that
 * were edited after they were applied must be refused.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, type DatabaseError } from 'pg'
import type { Logger } from '../runtime/kernel/log.js'
import { tlsOptions } from '../storage/platform/pool-plan.js'
import {
  type AppliedMigration,
  compareSchema,
  finishingOf,
  type MigrationFile,
  MIGRATIONS_FOLDER,
  readAppliedMigrations,
  readMigrationFiles,
  SchemaMismatch,
  type SchemaVerdict,
} from '../storage/platform/schema-version.js'
import { DatabaseUnavailable } from '../storage/platform/unavailable.js'
import { convertMailDomains } from './mail-domains.js'
import { concurrentStatements, lockTables, TableInUse } from './table-locks.js'

/**
 * An arbitrary constant, which must never change. The runner of the release before takes only this lock. The release after
 * this one needs only the row of `locks`.
 */
const ADVISORY_LOCK = 0x737663_0001
const WAIT_MS_MAX = 10 * 60_000
const WAIT_STEP_MS = 100
/**
 * Time that a migration waits for a table lock. Statements of the service queue behind a waiting lock, so the wait is
 * short, and the whole file is tried again.
 */
const LOCK_TIMEOUT_MS = 2_000
const TRIED_MS_MAX = 3 * 60_000
/** Statements that waited behind the lock go on. */
const AGAIN_MS = 1_000
/** No statement waited. */
const AGAIN_SOON_MS = 100
/** Makes the column that the conversion of addresses needs. */
const MAIL_DOMAINS = '0173_mail_domains'
/** lock_not_available, deadlock_detected, serialization_failure: traffic was in the way, and nothing was changed. */
const REPEATED_CODES: ReadonlySet<string> = new Set(['55P03', '40P01', '40001'])

export interface MigrationOptions {
  /** The migration URL. It needs a session, so it must not go through a transaction pooler. */
  readonly url: string
  readonly log: Logger
  /** Roles of the runtime URLs, which get only the required privileges. */
  readonly runtimeRoles?: readonly string[] | undefined
  readonly folder?: URL | undefined
  /** `database.require_ssl`. */
  readonly requireSsl?: boolean | undefined
  /** `database.connect_timeout_secs`. Without it there is no time limit. */
  readonly connectTimeoutSecs?: number | undefined
  /** Applies finishing migrations too: no process of an older build runs. An empty database always gets them. */
  readonly finish?: boolean | undefined
  /** Called before the first file and after each. */
  readonly progress?: ((done: number, all: number) => void) | undefined
  /** Applies only these files, for the restore of a backup of an older schema. Default: all. */
  readonly only?: ReadonlySet<string> | undefined
}

/**
 * @returns the names of the applied files. Empty if the schema is current, or newer and compatible.
 * @throws SchemaMismatch if the database is newer and does not permit this program, or an applied file was edited.
 * @throws DatabaseUnavailable if the database is unreachable.
 */
export async function runMigrations(options: MigrationOptions): Promise<string[]> {
  const { log, runtimeRoles = [], folder = MIGRATIONS_FOLDER, finish = false, only } = options
  const { progress } = options
  const all = await readMigrationFiles(folder)
  const files = only === undefined ? all : all.filter(({ name }) => only.has(name))
  const client = await connect(options)
  try {
    await takeTurn(client, log)
    await client.query(
      `create table if not exists svc_migrations (
         name text primary key,
         checksum text not null,
         applied_at timestamptz not null default clock_timestamp(),
         duration_ms integer not null,
         oldest_build integer
       );
       create table if not exists locks (key text primary key);
       insert into locks (key) values ('migrations') on conflict do nothing`,
    )
    await addOldestBuild(client)
    const before = await readAppliedMigrations(client)
    const verdict = compareSchema(files, before)
    // The newer version has granted what its roles need.
    if (verdict.tag === 'ahead' && verdict.obstacle === null) return []
    if (verdict.tag !== 'current' && verdict.tag !== 'behind') throw new SchemaMismatch(verdict)
    const missing = verdict.tag === 'behind' ? [...verdict.missing] : []
    if (finish && before.length > 0) {
      const had = new Set(before.map(({ name }) => name))
      missing.push(...finishingOf(files).filter(({ name }) => !had.has(name)))
    }
    const applied: string[] = []
    // The files are no news for a new database.
    const isNew = before.length === 0
    const level = isNew ? 'debug' : 'info'
    for (const [done, file] of missing.entries()) {
      progress?.(done, missing.length)
      if (await apply(client, file, log, level)) applied.push(file.name)
    }
    progress?.(missing.length, missing.length)
    const converts = files.some(({ name }) => name === MAIL_DOMAINS)
    if (!isNew && converts) await convertMailDomains(client, log)
    for (const role of runtimeRoles) await admit(client, role)
    if (isNew && applied.length > 0)
      log.info({ migrations: applied.length, newest: applied.at(-1) }, 'created the schema')
    if (missing.length === 0) log.debug('the schema is current')
    return applied
  } finally {
    await client.end()
  }
}

/** The migrations of this program and of a database. */
export type SchemaState = {
  readonly files: readonly MigrationFile[]
  readonly applied: readonly AppliedMigration[]
  readonly verdict: SchemaVerdict
}

/** Compares a database with this program, and changes nothing. @throws DatabaseUnavailable */
export async function readSchemaState(
  options: Pick<MigrationOptions, 'url' | 'log' | 'requireSsl' | 'connectTimeoutSecs' | 'folder'>,
): Promise<SchemaState> {
  const files = await readMigrationFiles(options.folder)
  const client = await connect(options)
  try {
    const applied = await readAppliedMigrations(client)
    return { files, applied, verdict: compareSchema(files, applied) }
  } finally {
    await client.end()
  }
}

async function connect({
  url,
  log,
  requireSsl = false,
  connectTimeoutSecs = 0,
}: Pick<MigrationOptions, 'url' | 'log' | 'requireSsl' | 'connectTimeoutSecs'>): Promise<Client> {
  const client = new Client({
    connectionString: url,
    application_name: 'svc migrate',
    keepAlive: true,
    connectionTimeoutMillis: connectTimeoutSecs * 1000,
    ...tlsOptions(url, requireSsl),
  })
  // A lost connection fails the running query. Without a listener it would also end Node.
  client.on('error', (error) => log.error({ err: error }, 'the migration lost its connection'))
  await client.connect().catch((error: unknown) => {
    throw new DatabaseUnavailable('no connection to migrate with', error)
  })
  return client
}

/** Takes the lock, which ends with the session, so that a killed runner does not block others. */
async function takeTurn(client: Client, log: Logger): Promise<void> {
  for (let waited = 0; waited < WAIT_MS_MAX; waited += WAIT_STEP_MS) {
    const { rows } = await client.query<{ taken: boolean }>(
      `select pg_try_advisory_lock(${ADVISORY_LOCK}) as taken`,
    )
    if (rows[0]?.taken) return
    if (waited === 0) log.info('another runner is migrating this database: waiting')
    await sleep(WAIT_STEP_MS)
  }
  throw new Error('another runner has been migrating this database for ten minutes')
}

/** Releases up to 0.3.0 made the table without the column. A change of a table waits for its readers, so it is made once. */
async function addOldestBuild(client: Client): Promise<void> {
  const { rowCount } = await client.query(
    `select from information_schema.columns
     where table_schema = current_schema() and table_name = 'svc_migrations' and column_name = 'oldest_build'`,
  )
  if (rowCount !== 0) return
  await client.query('alter table svc_migrations add column if not exists oldest_build integer')
}

/** @returns false if another runner applied the file, on an engine without advisory locks. */
async function apply(
  client: Client,
  file: MigrationFile,
  log: Logger,
  level: 'debug' | 'info',
): Promise<boolean> {
  const startedMs = performance.now()
  let awaited: string | undefined
  for (let tries = 1; ; tries += 1) {
    try {
      const durationMs = await applyOnce(client, file, awaited)
      if (durationMs !== null) log[level]({ migration: file.name, durationMs }, 'migrated')
      return durationMs !== null
    } catch (error) {
      const { cause } = error as { readonly cause?: unknown }
      const inUse = cause instanceof TableInUse ? cause : undefined
      const { code } = (inUse?.cause ?? cause ?? {}) as DatabaseError
      const isLate = performance.now() - startedMs > TRIED_MS_MAX
      if (!REPEATED_CODES.has(code ?? '') || isLate) throw error
      const fields = { migration: file.name, tries, ...(inUse && { table: inUse.table }) }
      log[tries === 1 ? 'info' : 'debug'](fields, 'a table is in use: the migration tries again')
      await sleep(inUse?.hasWaited === false ? AGAIN_SOON_MS : AGAIN_MS)
      // The busiest: the others are more likely to be free.
      awaited = inUse?.table
    }
  }
}

async function applyOnce(
  client: Client,
  file: MigrationFile,
  awaited: string | undefined,
): Promise<number | null> {
  const startedMs = performance.now()
  await client.query(
    `begin; set local lock_timeout = ${LOCK_TIMEOUT_MS}; set local svc.scope = 'system'`,
  )
  try {
    await client.query(`select key from locks where key = 'migrations' for update`)
    const known = await client.query('select from svc_migrations where name = $1', [file.name])
    if (known.rowCount !== 0) {
      await client.query('rollback')
      return null
    }
    const statements = concurrentStatements(file.sql)
    if (statements === null) {
      await lockTables(client, file.sql, awaited)
      await client.query(file.sql)
    } else {
      await buildIndexes(client, statements)
    }
    const durationMs = Math.round(performance.now() - startedMs)
    await client.query(
      'insert into svc_migrations (name, checksum, duration_ms, oldest_build) values ($1, $2, $3, $4)',
      [file.name, file.checksum, durationMs, file.oldestBuild],
    )
    await client.query('commit')
    return durationMs
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw new Error(`the migration ${file.name} failed and was rolled back: ${describe(error)}`, {
      cause: error,
    })
  }
}

/**
 * Builds indexes outside of the transaction of their file, and then begins another one. The statements of the service do not
 * wait for the table, and the build has no time limit.
 */
async function buildIndexes(client: Client, statements: readonly string[]): Promise<void> {
  await client.query('rollback')
  for (const statement of statements) await client.query(statement)
  await client.query('begin')
}

function describe(error: unknown): string {
  const { message, position, detail } = error as DatabaseError
  return [message, detail, position && `at character ${position}`].filter(Boolean).join('; ')
}

/** Grants the privileges of the service: read and write rows, no changes of the schema. */
async function admit(client: Client, role: string): Promise<void> {
  const { rows } = await client.query<{ needed: boolean }>(
    'select exists (select from pg_roles where rolname = $1 and rolname <> current_user) as needed',
    [role],
  )
  if (!rows[0]?.needed) return
  const name = client.escapeIdentifier(role)
  await client.query(
    `begin;
     grant usage on schema public to ${name};
     grant select, insert, update, delete on all tables in schema public to ${name};
     revoke insert, update, delete on svc_migrations from ${name};
     grant usage, select on all sequences in schema public to ${name};
     commit`,
  )
}
