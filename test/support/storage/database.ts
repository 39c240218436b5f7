/** A migrated database for a test file, cloned from a template in a fraction of a second. */
import { createHash, randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { runMigrations } from '../../../migrations/main.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { type OpenDatabase, openDatabase } from '../../../storage/platform/database.js'
import type { PoolSettings, PoolUrls } from '../../../storage/platform/pool-plan.js'
import { readMigrationFiles } from '../../../storage/platform/schema-version.js'
import { countStart } from '../service/started.js'
import { testPostgres } from './postgres.js'

/** The owner of the test databases, with row-level security. The password protects nothing. */
const ROLE = 'svc_test'
const PASSWORD = 'svc_test'
const SETUP_LOCK = 0x737663_0002

export interface FreshDatabase {
  /** The URL of the service role, to which row-level security applies. */
  readonly url: string
  /** The same database as a superuser. */
  readonly superuserUrl: string
  readonly database: OpenDatabase
  readonly settings: PoolSettings
  readonly urls: PoolUrls
  /** Closes and drops the database. Call it in `test.after.always`. */
  drop(): Promise<void>
}

/** Small pools: many files share one server. */
export const testPoolSettings: PoolSettings = {
  max_connections: 6,
  min_connections: 0,
  identity_max_connections: 4,
  connect_timeout_secs: 20,
  // A file that does not close it ends soon.
  idle_timeout_secs: 10,
  max_lifetime_secs: 1800,
  statement_cache_capacity: 100,
  test_before_acquire: true,
  statement_timeout_secs: 30,
  background_statement_timeout_secs: 60,
  idle_in_transaction_timeout_secs: 60,
  require_ssl: false,
}

/** The same URL for all pools, as with the embedded server. */
export function sameUrls(url: string): PoolUrls {
  return {
    runtime: url,
    identity: url,
    listener: url,
    auth: url,
    control: url,
    async: url,
  }
}

/** @param t a test, at whose end the database is dropped. */
export async function freshDatabase(t?: {
  teardown(end: () => Promise<void>): void
}): Promise<FreshDatabase> {
  const template = await migratedTemplate()
  return clone(template, t)
}

/** A database without a schema, for tests of the migrations themselves. */
export async function emptyDatabase(t?: {
  teardown(end: () => Promise<void>): void
}): Promise<FreshDatabase> {
  await asSuperuser(ensureRole)
  return clone('template0', t)
}

async function clone(
  template: string,
  t: { teardown(end: () => Promise<void>): void } | undefined,
): Promise<FreshDatabase> {
  countStart('database')
  const name = `svc_test_${randomBytes(8).toString('hex')}`
  await asSuperuser((client) =>
    client.query(`create database ${name} template ${template} strategy file_copy owner ${ROLE}`),
  )
  const url = urlTo(await testPostgres(), name, true)
  const urls = sameUrls(url)
  const settings = testPoolSettings
  const database = await openDatabase({ settings, urls, plane: 'all', log: silentLogger })
  let dropped: Promise<void> | undefined
  const drop = () => {
    dropped ??= (async () => {
      await database.close()
      await asSuperuser((client) => client.query(`drop database if exists ${name} with (force)`))
    })()
    return dropped
  }
  t?.teardown(drop)
  return {
    url,
    superuserUrl: urlTo(await testPostgres(), name, false),
    database,
    settings,
    urls,
    drop,
  }
}

/** Named by the content of all migrations, so that an edited one makes a new template. */
async function migratedTemplate(): Promise<string> {
  const files = await readMigrationFiles()
  const hash = createHash('sha256').update(files.map(({ checksum }) => checksum).join())
  const name = `svc_template_${hash.digest('hex').slice(0, 16)}`
  await asSuperuser(async (client) => {
    // Only complete templates are marked. An incomplete one is created again.
    const finished = async () => {
      const { rowCount } = await client.query(
        'select from pg_database where datname = $1 and datistemplate',
        [name],
      )
      return rowCount === 1
    }
    if (await finished()) return
    await ensureRole(client)
    await client.query('select pg_advisory_lock($1)', [SETUP_LOCK])
    try {
      if (await finished()) return
      await client.query(`drop database if exists ${name} with (force)`)
      await client.query(`create database ${name} template template0 owner ${ROLE}`)
      await runMigrations({ url: urlTo(await testPostgres(), name, true), log: silentLogger })
      await client.query(`alter database ${name} is_template true`)
    } finally {
      await client.query('select pg_advisory_unlock($1)', [SETUP_LOCK])
    }
  })
  return name
}

async function ensureRole(client: Client): Promise<void> {
  await client.query(
    `do $$ begin
       create role ${ROLE} login nosuperuser nobypassrls password '${PASSWORD}';
     exception when duplicate_object or unique_violation then null;
     end $$`,
  )
}

async function asSuperuser<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: await testPostgres() })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

function urlTo(superuserUrl: string, database: string, asRole: boolean): string {
  const url = new URL(superuserUrl)
  url.pathname = `/${database}`
  if (asRole) {
    url.username = ROLE
    url.password = PASSWORD
  }
  return url.href
}
