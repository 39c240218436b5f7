/** Compares the migrations of the program with those that a database has. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'

export interface MigrationFile {
  /** `0001_foundation` */
  readonly name: string
  readonly sql: string
  /** SHA-256 of the file, hexadecimal. */
  readonly checksum: string
}

export interface AppliedMigration {
  readonly name: string
  readonly checksum: string
}

/** A pg client or pool. */
export interface Queryable {
  query(text: string): Promise<{ rows: Record<string, unknown>[] }>
}

/** The folder `migrations/` of the source tree. */
export const MIGRATIONS_FOLDER = new URL('../../../migrations/', import.meta.url)

/** If more migrations are missing, a message names their number, the first and the last. */
const LISTED_MAX = 3

const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/
const NOT_A_MIGRATION = new Set(['schema.sql'])

/** The migration files in order. @throws if a name or number is invalid. */
export async function readMigrationFiles(folder = MIGRATIONS_FOLDER): Promise<MigrationFile[]> {
  const names = (await readdir(folder)).filter((n) => n.endsWith('.sql') && !NOT_A_MIGRATION.has(n))
  names.sort()
  const numbers = new Set<string>()
  for (const name of names) {
    const number = FILE_NAME.exec(name)?.[1]
    if (number === undefined)
      throw new Error(`${name} is not a valid migration name: NNNN_name.sql`)
    if (numbers.has(number)) throw new Error(`there are two migrations ${number}`)
    numbers.add(number)
  }
  return Promise.all(
    names.map(async (name) => {
      const bytes = await readFile(new URL(name, folder))
      return {
        name: name.slice(0, -'.sql'.length),
        sql: bytes.toString('utf8'),
        checksum: createHash('sha256').update(bytes).digest('hex'),
      }
    }),
  )
}

/** The applied migrations of a database. Empty if it was never migrated. */
export async function readAppliedMigrations(database: Queryable): Promise<AppliedMigration[]> {
  const { rows } = await database.query(`select to_regclass('svc_migrations') is not null as there`)
  if (!rows[0]?.['there']) return []
  const applied = await database.query('select name, checksum from svc_migrations order by name')
  return applied.rows as unknown as AppliedMigration[]
}

export type SchemaVerdict =
  | { tag: 'current' }
  | { tag: 'behind'; missing: MigrationFile[] }
  | { tag: 'ahead'; unknown: string[] }
  | { tag: 'edited'; names: string[] }
  | { tag: 'disordered'; names: string[]; after: string }

/** Compares the applied migrations of a database with the files. */
export function compareSchema(
  files: readonly MigrationFile[],
  applied: readonly AppliedMigration[],
): SchemaVerdict {
  const known = new Map(files.map((file) => [file.name, file.checksum]))
  const unknown = applied.filter(({ name }) => !known.has(name)).map(({ name }) => name)
  if (unknown.length > 0) return { tag: 'ahead', unknown }
  const edited = applied.filter(({ name, checksum }) => known.get(name) !== checksum)
  if (edited.length > 0) return { tag: 'edited', names: edited.map(({ name }) => name) }
  const had = new Set(applied.map(({ name }) => name))
  const missing = files.filter(({ name }) => !had.has(name))
  if (missing.length === 0) return { tag: 'current' }
  const newest = applied.at(-1)?.name ?? ''
  const skipped = missing.filter(({ name }) => name < newest).map(({ name }) => name)
  if (skipped.length > 0) return { tag: 'disordered', names: skipped, after: newest }
  return { tag: 'behind', missing }
}

/** The schema of the database does not match the program. The message names the difference. */
export class SchemaMismatch extends Error {
  constructor(verdict: Exclude<SchemaVerdict, { tag: 'current' }>) {
    super(explain(verdict))
    this.name = 'SchemaMismatch'
  }
}

function explain(verdict: Exclude<SchemaVerdict, { tag: 'current' }>): string {
  switch (verdict.tag) {
    case 'behind':
      return (
        `the database lacks ${shortened(verdict.missing.map(({ name }) => name))}: ` +
        'run the migrations (npm run migrate), then start again'
      )
    case 'ahead':
      return (
        `the database has ${list(verdict.unknown)}, which are unknown to this version of svc: ` +
        'a newer version migrated it; start that version'
      )
    case 'edited':
      return (
        `${list(verdict.names)} was changed after it was applied to this database: ` +
        'restore the file; a change of the schema is a new migration'
      )
    case 'disordered':
      return `${list(verdict.names)} would run after ${verdict.after}, which was written on top of it`
  }
}

/** Shortens a long list, such as that of an empty database. */
function shortened(names: readonly string[]): string {
  return names.length <= LISTED_MAX
    ? list(names)
    : `${names.length} migrations, ${names[0]} to ${names.at(-1)}`
}

function list(names: readonly string[]): string {
  return names.length < 2
    ? (names[0] ?? '')
    : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}

/**
 * Requires a database with exactly the migrations of this program.
 * @throws SchemaMismatch
 */
export async function requireMigratedSchema(
  database: Queryable,
  folder = MIGRATIONS_FOLDER,
): Promise<void> {
  const [files, applied] = [await readMigrationFiles(folder), await readAppliedMigrations(database)]
  const verdict = compareSchema(files, applied)
  if (verdict.tag !== 'current') throw new SchemaMismatch(verdict)
}

/**
 * True if row-level security applies to the role of a connection. It does not apply to superusers and roles with
 * BYPASSRLS: then tenants are separated only by the conditions of statements.
 */
export async function rowSecurityBinds(database: Queryable): Promise<boolean> {
  const { rows } = await database.query(
    'select rolsuper or rolbypassrls as free from pg_roles where rolname = current_user',
  )
  return rows[0]?.['free'] === false
}
