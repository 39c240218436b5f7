/**
 * Restores a backup into an empty database and an empty key folder. docs/guides/operations/backup.md.
 */
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { Client } from 'pg'
import { type MigrationOptions, runMigrations } from '../../../migrations/main.js'
import {
  countServiceConnections,
  dropSchema,
  hasTables,
  listTables,
  loadTables,
} from '../../../storage/platform/backup/tables.js'
import { readKeyDirectory } from '../../../storage/platform/kms/key-directory.js'
import { isFileOf, readMigrationFiles } from '../../../storage/platform/schema-version.js'
import { systemClock } from '../../kernel/clock.js'
import { systemRandom } from '../../kernel/random.js'
import {
  ASSETS_FOLDER,
  copyMeasured,
  KEYS_FOLDER,
  type Manifest,
  readLines,
  sequencesOf,
  type StoredFile,
} from './manifest.js'

type RestorePlan = {
  /** The folder of the backup, whose files were verified. */
  readonly from: string
  readonly manifest: Manifest
  /** The owner of the schema. */
  readonly connection: ConstructorParameters<typeof Client>[0]
  readonly migration: Pick<MigrationOptions, 'url' | 'log' | 'runtimeRoles' | 'requireSsl'>
  /** Where the keys go. Null: they stay as they are. */
  readonly keysFolder: string | null
  /** Null: none. */
  readonly assetsFolder: string | null
  /** Replaces a database that is not empty, and sets its keys aside. */
  readonly isForced: boolean
  /** Called before each table and after the last. */
  readonly progress: (done: number, all: number) => void
}

type Restored = {
  readonly rows: number
  /** Migrations of this build that the backup did not have. */
  readonly migrated: readonly string[]
  /** Folders of the earlier keys and assets. They are never deleted. */
  readonly setAside: readonly string[]
}

/** @throws with a message for an operator. A database that was empty before is empty again. */
export async function restore(plan: RestorePlan): Promise<Restored> {
  const { manifest, isForced, migration, from, progress } = plan
  await requireKnownSchema(manifest)
  await requireKeys(plan)
  const replaced = new Map<string, string>()
  for (const folder of [plan.keysFolder, plan.assetsFolder]) {
    if (folder === null || (await isEmpty(folder))) continue
    if (!isForced) throw new Error(`${folder} is not empty: --force sets it aside`)
    const time = systemClock
      .now()
      .toISOString()
      .replaceAll(/[-:]|\..*/g, '')
    replaced.set(folder, join(dirname(folder), `${basename(folder)}.replaced-${time}`))
  }
  const client = new Client(plan.connection)
  client.on('error', () => undefined)
  await client.connect()
  let migrated: string[]
  try {
    const running = await countServiceConnections(client)
    if (running > 0) {
      throw new Error(`a service uses this database (${running} connections): stop it first`)
    }
    if (await hasTables(client)) {
      if (!isForced) {
        throw new Error('the database is not empty: --force deletes what it has')
      }
      await dropSchema(client)
    }
    try {
      const only = new Set(manifest.database.migrations.map(({ name }) => name))
      await runMigrations({ ...migration, only })
      await requireSameTables(client, manifest)
      const { tables } = manifest.database
      let begun = 0
      await loadTables(client, tables, sequencesOf(manifest), (table) => {
        progress(begun, tables.length)
        begun += 1
        return readLines(from, `database/${table}.jsonl.gz`)
      })
      progress(tables.length, tables.length)
    } catch (error) {
      await dropSchema(client).catch(() => undefined)
      throw error
    }
    migrated = await runMigrations(migration)
  } finally {
    await client.end()
  }
  for (const [folder, aside] of replaced) await rename(folder, aside)
  if (plan.keysFolder !== null && manifest.keys !== null) {
    await copyBack(from, manifest.keys, KEYS_FOLDER, plan.keysFolder)
  }
  if (plan.assetsFolder !== null && manifest.assets !== null) {
    await copyBack(from, manifest.assets, ASSETS_FOLDER, plan.assetsFolder)
  }
  const rows = manifest.database.tables.reduce((sum, table) => sum + table.rows, 0)
  return { rows, migrated, setAside: [...replaced.values()] }
}

/** This build can create the schema of the backup, byte for byte. */
async function requireKnownSchema({ database, version }: Manifest): Promise<void> {
  const files = await readMigrationFiles()
  const unknown = database.migrations.find((one) => !files.some((file) => isFileOf(file, one)))
  if (unknown === undefined) return
  throw new Error(
    `the backup has the migration ${unknown.name}, which this build does not have: ` +
      `restore it with svc ${version} or a later version`,
  )
}

/** Without its master keys a database is restored in vain: nothing sealed in it could be opened. */
async function requireKeys({ from, manifest, keysFolder }: RestorePlan): Promise<void> {
  if (keysFolder === null) return
  if (manifest.keys === null) {
    throw new Error(
      'the backup has no keys: restore them from where they are kept, and name --without-keys',
    )
  }
  const folder = join(from, KEYS_FOLDER)
  await chmod(folder, 0o700)
  const { master } = await readKeyDirectory(folder, systemRandom(systemClock))
  const missing = manifest.database.master_key_ids.filter((id) => !master.ids.includes(id))
  if (missing.length > 0) throw new Error(`the backup lacks the master keys ${missing.join(', ')}`)
}

async function requireSameTables(client: Client, { database }: Manifest): Promise<void> {
  const shapeOf = (tables: readonly { name: string; columns: readonly string[] }[]) =>
    JSON.stringify(tables.map(({ name, columns }) => [name, columns]))
  if (shapeOf(await listTables(client)) !== shapeOf(database.tables)) {
    throw new Error('the tables of the backup do not match its migrations')
  }
}

async function isEmpty(folder: string): Promise<boolean> {
  return (await readdir(folder).catch(() => [])).length === 0
}

/** Copies to a draft next to the folder first, so that a kill leaves no folder with half of the files. */
async function copyBack(
  from: string,
  files: readonly StoredFile[],
  prefix: string,
  folder: string,
): Promise<void> {
  const target = resolve(folder)
  const draft = `${target}.${process.pid}.partial`
  await mkdir(draft, { recursive: true, mode: 0o700 })
  try {
    for (const { path } of files) {
      await copyMeasured(join(from, path), join(draft, path.slice(prefix.length + 1)))
    }
    await rename(draft, target)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}
