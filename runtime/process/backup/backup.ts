/**
 * Backs up a deployment: all rows of its database in one snapshot, the keys of its kms, and its folder of assets. The
 * service may run. docs/guides/operations/backup.md.
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { Client } from 'pg'
import {
  beginSnapshot,
  listTables,
  lockShapes,
  readMasterKeyIds,
  readRows,
  readSequences,
} from '../../../storage/platform/backup/tables.js'
import { readKeyDirectory } from '../../../storage/platform/kms/key-directory.js'
import {
  compareSchema,
  readAppliedMigrations,
  readMigrationFiles,
  SchemaMismatch,
} from '../../../storage/platform/schema-version.js'
import { systemClock } from '../../kernel/clock.js'
import { systemRandom } from '../../kernel/random.js'
import {
  ASSETS_FOLDER,
  copyFolder,
  FORMAT_VERSION,
  KEYS_FOLDER,
  type Manifest,
  writeLines,
  writeManifest,
} from './manifest.js'

type BackupPlan = {
  /** A new or empty folder. */
  readonly to: string
  /** Options of a connection that reads all tables. */
  readonly connection: ConstructorParameters<typeof Client>[0]
  /** The folder of the kms. Null: without keys. */
  readonly keysFolder: string | null
  /** Null: none. */
  readonly assetsFolder: string | null
  readonly version: string
  readonly issuer: string
  readonly roles: readonly string[]
  /** Called before each table and after the last. */
  readonly progress: (done: number, all: number) => void
}

/** @throws with a message for an operator. Then the folder does not exist. */
export async function backUp(plan: BackupPlan): Promise<Manifest> {
  const to = resolve(plan.to)
  const found = await readdir(to).catch(() => [])
  if (found.length > 0) throw new Error(`${to} is not empty: a backup never replaces another`)
  await mkdir(dirname(to), { recursive: true })
  const draft = join(dirname(to), `.${basename(to)}.${process.pid}.partial`)
  await mkdir(draft, { mode: 0o700 })
  try {
    const createdAt = systemClock.now()
    const database = await copyDatabase(plan, draft)
    // After the database: a key that was added in between is one too many, and none is missing.
    const keys = await copyKeys(plan, draft, database.master_key_ids)
    // After the database too: an image is a file before a row names it.
    const assets = await copyAssets(plan, draft)
    const manifest: Manifest = {
      format: FORMAT_VERSION,
      created_at: createdAt.toISOString(),
      version: plan.version,
      issuer: plan.issuer,
      database: { ...database, roles: [...plan.roles] },
      keys,
      assets,
    }
    await writeManifest(draft, manifest)
    // Replaces an empty folder, and fails if it got a file.
    await rename(draft, to)
    return manifest
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw error
  }
}

async function copyDatabase(
  { connection, progress }: BackupPlan,
  draft: string,
): Promise<Omit<Manifest['database'], 'roles'>> {
  await mkdir(join(draft, 'database'), { mode: 0o700 })
  const client = new Client(connection)
  client.on('error', () => undefined)
  await client.connect()
  try {
    await beginSnapshot(client)
    const migrations = await readAppliedMigrations(client)
    // A backup that this build does not understand could not be restored with it.
    const verdict = compareSchema(await readMigrationFiles(), migrations)
    if (verdict.tag !== 'current' && verdict.tag !== 'behind') throw new SchemaMismatch(verdict)
    if (migrations.length === 0) throw new Error('the database has no schema: nothing to back up')
    const shapes = await listTables(client)
    await lockShapes(client, shapes)
    const tables: Manifest['database']['tables'] = []
    for (const { name, columns } of shapes) {
      progress(tables.length, shapes.length)
      const path = `database/${name}.jsonl.gz`
      const { rows, ...file } = await writeLines(draft, path, readRows(client, name))
      tables.push({ name, columns: [...columns], rows, file })
    }
    progress(tables.length, shapes.length)
    const sequences = await readSequences(client)
    const { rows: server } = await client.query<{ version: string }>(
      `select current_setting('server_version') as version`,
    )
    const masterKeyIds = await readMasterKeyIds(client)
    await client.query('commit')
    return {
      server_version: server[0]!.version,
      migrations: migrations.map(({ name, checksum }) => ({ name, checksum })),
      tables,
      sequences: sequences.map(({ name, lastValue, isCalled }) => ({
        name,
        last_value: lastValue,
        is_called: isCalled,
      })),
      master_key_ids: masterKeyIds,
    }
  } finally {
    await client.end()
  }
}

async function copyAssets(
  { assetsFolder }: BackupPlan,
  draft: string,
): Promise<Manifest['assets']> {
  if (assetsFolder === null) return null
  // No image was uploaded yet.
  if (!existsSync(assetsFolder)) return []
  return copyFolder(assetsFolder, join(draft, ASSETS_FOLDER), ASSETS_FOLDER)
}

async function copyKeys(
  { keysFolder }: BackupPlan,
  draft: string,
  needed: readonly string[],
): Promise<Manifest['keys']> {
  if (keysFolder === null) return null
  const from = resolve(keysFolder)
  const { master } = await readKeyDirectory(from, systemRandom(systemClock))
  const missing = needed.filter((id) => !master.ids.includes(id))
  if (missing.length > 0) {
    throw new Error(
      `${from} lacks the master keys ${missing.join(', ')}, which the database needs: it belongs to another deployment`,
    )
  }
  return copyFolder(from, join(draft, KEYS_FOLDER), KEYS_FOLDER)
}
