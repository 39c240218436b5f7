/** Compares the migrations of the program with those that a database has. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'

export interface MigrationFile {
  /** `0001_foundation` */
  readonly name: string
  readonly sql: string
  /** SHA-256 of the file, hexadecimal. */
  readonly checksum: string
  /** What `oldestBuildOf` reads in its first line. */
  readonly oldestBuild: number | null
}

/**
 * Finishing migrations end what earlier ones permit older builds to do. A database in use gets the finishing migrations
 * of the coming release only by `svc migrate finish`, or with the migrations of the release after it.
 */
const FINISHING = /^\d{4}_finish_/
/** The newest migration of the last release. */
const RELEASED = '0095_account_recovery'

/** The finishing migrations of the coming release. Other migrations of it may follow them. */
export function finishingOf(files: readonly MigrationFile[]): readonly MigrationFile[] {
  return files.filter(({ name }) => name > RELEASED && FINISHING.test(name))
}

export interface AppliedMigration {
  readonly name: string
  readonly checksum: string
  /** As the runner that applied it recorded. Absent or null: no older build may run on it. */
  readonly oldestBuild?: number | null
}

/**
 * SHA-256 of files as databases have applied them before they were mended. A file may be mended only if it failed, or broke
 * running processes, before the files after it were applied. All files together make the same schema as before.
 */
const MENDED: Readonly<Record<string, string>> = {
  // Its triggers called a function that 0102 creates.
  '0096_egress_blocks': 'cb94898bf47561eef0c1e02c94fff0c039f6c4a50834b6343998f006c49b7ae6',
  '0102_announcements': '892f4d1464dc06d1530e56b45259742b5dabc66b5d5b4b7ee98c004ae9be2c54',
}

/** True if a database with this migration has what the file makes. */
export function isFileOf(
  file: Pick<MigrationFile, 'name' | 'checksum'>,
  { name, checksum }: AppliedMigration,
): boolean {
  return file.name === name && (file.checksum === checksum || MENDED[name] === checksum)
}

/** A pg client or pool. */
interface Queryable {
  query(text: string): Promise<{ rows: Record<string, unknown>[] }>
}

/** The folder `migrations/` of the source tree. */
export const MIGRATIONS_FOLDER = new URL('../../../migrations/', import.meta.url)

/** If more migrations are missing, a message names their number, the first and the last. */
const LISTED_MAX = 3

const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/
const NOT_A_MIGRATION = new Set(['schema.sql'])
const FIRST_LINE =
  /^-- Old processes (?:(may) keep running(?: from (\d{4}))?|must not keep running)\b/

/**
 * The oldest build that may run on the schema of a migration, as the number of the newest migration of that build: 0 for
 * every build, and the own number of the migration for none before it. Null where the first line does not say it.
 */
function oldestBuildOf(name: string, sql: string): number | null {
  const [matched, may, from = '0'] = FIRST_LINE.exec(sql) ?? []
  if (matched === undefined) return null
  return may === undefined ? numberOf(name) : Number(from)
}

/** The number of a migration. */
const numberOf = (name: string) => Number(name.slice(0, 4))

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
      const sql = bytes.toString('utf8')
      return {
        name: name.slice(0, -'.sql'.length),
        sql,
        checksum: createHash('sha256').update(bytes).digest('hex'),
        oldestBuild: oldestBuildOf(name, sql),
      }
    }),
  )
}

/** The applied migrations of a database. Empty if it was never migrated. */
export async function readAppliedMigrations(database: Queryable): Promise<AppliedMigration[]> {
  const { rows } = await database.query(`select to_regclass('svc_migrations') is not null as there`)
  if (!rows[0]?.['there']) return []
  // Releases up to 0.3.0 made the table without the column.
  const applied = await database.query(
    `select name, checksum, (to_jsonb(m) ->> 'oldest_build')::integer as "oldestBuild"
     from svc_migrations m order by name`,
  )
  return applied.rows as unknown as AppliedMigration[]
}

export type SchemaVerdict =
  | { tag: 'current' }
  | { tag: 'behind'; missing: MigrationFile[] }
  /** `obstacle` says why this build must not run on the schema. Null: the newer migrations permit it. */
  | { tag: 'ahead'; unknown: string[]; obstacle: string | null }
  | { tag: 'edited'; names: string[] }
  | { tag: 'disordered'; names: string[]; after: string }

/** Compares the applied migrations of a database with the files. */
export function compareSchema(
  files: readonly MigrationFile[],
  applied: readonly AppliedMigration[],
): SchemaVerdict {
  const known = new Map(files.map((file) => [file.name, file]))
  const unknown = applied.filter(({ name }) => !known.has(name))
  const had = new Set(applied.map(({ name }) => name))
  const lacked = files.filter(({ name }) => !had.has(name))
  const finishing = new Set(finishingOf(files))
  // A process does not depend on them.
  const missing = had.size === 0 ? lacked : lacked.filter((file) => !finishing.has(file))
  if (unknown.length > 0) {
    const obstacle = obstacleTo(files, unknown, missing)
    if (obstacle !== null) return { tag: 'ahead', unknown: unknown.map(nameOf), obstacle }
  }
  const edited = applied.filter((one) => {
    const file = known.get(one.name)
    return file !== undefined && !isFileOf(file, one)
  })
  if (edited.length > 0) return { tag: 'edited', names: edited.map(nameOf) }
  if (unknown.length > 0) return { tag: 'ahead', unknown: unknown.map(nameOf), obstacle: null }
  if (missing.length === 0) return { tag: 'current' }
  const newest = applied.at(-1)?.name ?? ''
  const skipped = missing.filter(({ name }) => name < newest).map(nameOf)
  if (skipped.length > 0) return { tag: 'disordered', names: skipped, after: newest }
  return { tag: 'behind', missing }
}

/** Why a build with these files must not run on a schema with migrations that it does not know, or null. */
function obstacleTo(
  files: readonly MigrationFile[],
  unknown: readonly AppliedMigration[],
  missing: readonly MigrationFile[],
): string | null {
  if (missing.length > 0) return `the database lacks ${shortened(missing.map(nameOf))}`
  const newest = files.at(-1)?.name ?? ''
  const between = unknown.filter(({ name }) => name < newest)
  if (between.length > 0) return `${list(between.map(nameOf))} belongs before ${newest}`
  for (const { name, oldestBuild = null } of unknown) {
    if (oldestBuild === null) return `${name} does not say which older versions may run on it`
    if (oldestBuild >= numberOf(name)) return `no older version may run on ${name}`
    if (oldestBuild > numberOf(newest))
      return `${name} needs a version with migration ${String(oldestBuild).padStart(4, '0')}`
  }
  return null
}

/** True if a build may serve with this schema. */
export function isCompatible(
  verdict: SchemaVerdict,
): verdict is { tag: 'current' } | { tag: 'ahead'; unknown: string[]; obstacle: null } {
  return verdict.tag === 'current' || (verdict.tag === 'ahead' && verdict.obstacle === null)
}

const nameOf = ({ name }: { readonly name: string }) => name

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
      return verdict.obstacle === null
        ? `the database has ${list(verdict.unknown)}, which are unknown to this version of svc and permit it to run`
        : `the database has ${list(verdict.unknown)}, which are unknown to this version of svc: ` +
            `a newer version migrated it, and ${verdict.obstacle}; start that version`
    case 'edited':
      return (
        `${list(verdict.names)} was changed after it was applied to this database: ` +
        'restore the file; a change of the schema is a new migration'
      )
    case 'disordered':
      return `${list(verdict.names)} would run after ${verdict.after}, which was written on top of it`
  }
}

/** Shortens a long list, such as the migrations of an empty database. */
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
 * Requires a database with the migrations of this program. It may have newer ones that permit this program to run.
 * @returns the newer ones.
 * @throws SchemaMismatch
 */
export async function requireMigratedSchema(
  database: Queryable,
  folder = MIGRATIONS_FOLDER,
): Promise<readonly string[]> {
  const [files, applied] = [await readMigrationFiles(folder), await readAppliedMigrations(database)]
  const verdict = compareSchema(files, applied)
  if (!isCompatible(verdict)) throw new SchemaMismatch(verdict)
  return verdict.tag === 'ahead' ? verdict.unknown : []
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
