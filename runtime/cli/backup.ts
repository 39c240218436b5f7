/** `svc backup` and `svc restore`: a deployment in one folder, and back. docs/guides/operations/backup.md. */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Client } from 'pg'
import { findControlPlane } from '../../storage/identity/tenants.js'
import { withoutCaller } from '../../actors/domain/audit.js'
import { appendAudit } from '../../storage/operations/audit.js'
import { openDatabase } from '../../storage/platform/database.js'
import { tlsOptions } from '../../storage/platform/pool-plan.js'
import { type DatabaseUrls, databaseUrls } from '../../storage/platform/settings.js'
import { DatabaseUnreachable, isConnectionLoss } from '../../storage/platform/unavailable.js'
import { backUp } from '../process/backup/backup.js'
import { type Manifest, readManifest, verifyFiles } from '../process/backup/manifest.js'
import { restore } from '../process/backup/restore.js'
import { type LoadedSettings, loadSettings } from '../process/configuration/load-settings.js'
import { startEmbeddedPostgres } from '../embedded/postgres.js'
import { systemClock } from '../kernel/clock.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { printedFailures } from '../kernel/config/print.js'
import { silentLogger } from '../kernel/log.js'
import { systemRandom } from '../kernel/random.js'
import { localKeysFolder } from '../process/embedded-kms.js'
import { withTarget } from './target.js'
import { explainedBy } from '../process/which-database.js'
import { embeddedServer } from './key-tools.js'
import { rolesOf } from './migrate.js'
import { output } from './output.js'
import { progressBar } from './progress.js'

type KeyOptions = { readonly keys?: string; readonly withoutKeys?: boolean }
type BackupOptions = KeyOptions & { readonly to: string; readonly json?: boolean }
type RestoreOptions = KeyOptions & {
  readonly from: string
  readonly force?: boolean
  readonly verify?: boolean
  readonly json?: boolean
}

/** Adds `backup` to the program. */
export function backupCommand(program: Command): void {
  program
    .command('backup')
    .description('copy the database and the keys of this deployment into a folder')
    .requiredOption('--to <dir>', 'a new or empty folder')
    .option('--keys <dir>', 'the key folder of the configured kms')
    .option('--without-keys', 'leave the keys out, which are backed up elsewhere')
    .option('--json', 'the result as JSON')
    .action((options: BackupOptions) =>
      reported('backup', (loaded) => backupOf(loaded, options), options.json),
    )
}

/** Adds `restore` to the program. */
export function restoreCommand(program: Command): void {
  program
    .command('restore')
    .description('restore a backup into an empty deployment that does not run')
    .requiredOption('--from <dir>', 'the folder of the backup')
    .option('--keys <dir>', 'the key folder of the configured kms: new or empty')
    .option('--without-keys', 'restore no keys: the kms has them already')
    .option('--force', 'delete what the database has; set keys aside that exist')
    .option('--verify', 'only compare the files with their checksums')
    .option('--json', 'the result as JSON')
    .action((options: RestoreOptions) =>
      options.verify === true
        ? reported('restore', () => verified(options), options.json)
        : reported('restore', (loaded) => restoreOf(loaded, options), options.json),
    )
}

type Result = { readonly json: Readonly<Record<string, unknown>>; readonly lines: string[] }

async function reported(
  name: string,
  work: (loaded: LoadedSettings) => Promise<Result>,
  json = false,
): Promise<void> {
  let loaded: LoadedSettings | undefined
  try {
    const input = { environment: readEnvironment(), cwd: process.cwd(), uid: process.getuid?.() }
    const read = loadSettings({ ...input, servesPlane: false })
    if (read.tag === 'refused') throw new Error(printedFailures(read.failures))
    loaded = read
    const result = await work(loaded)
    const text = json ? JSON.stringify(withTarget(result.json), null, 2) : result.lines.join('\n')
    output(`${text}\n`)
  } catch (error) {
    process.stderr.write(`svc ${name}: ${explainedBy(loaded, error)}\n`)
    process.exitCode = 1
  }
}

async function backupOf(loaded: LoadedSettings, options: BackupOptions): Promise<Result> {
  const { settings } = loaded
  const keysFolder = keysFolderOf(loaded, options)
  const urls = databaseUrls(settings.database)
  const work = (url: string) =>
    backUp({
      to: options.to,
      connection: connectionTo(loaded, url, 'svc backup'),
      keysFolder,
      assetsFolder: assetsFolderOf(loaded),
      version: packageVersion(),
      issuer: settings.oidc.issuer_url,
      progress: progressBar('tables'),
      roles: urls === undefined ? [] : [userOf(urls.migration), ...rolesOf(urls)],
    })
  const to = resolve(options.to)
  const manifest = await withDatabase(loaded, urls, work)
  const { tables, migrations } = manifest.database
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  const bytes = tables.reduce((sum, { file }) => sum + file.bytes, 0)
  return {
    json: { to, created_at: manifest.created_at, tables: tables.length, rows, bytes },
    lines: [
      `Backed up ${rows} rows of ${tables.length} tables (${bytes} bytes) to ${to}.`,
      `Schema ${migrations.at(-1)?.name}, version ${manifest.version}.`,
      ...(manifest.assets === null ? [] : [`${manifest.assets.length} images of tenants.`]),
      manifest.keys === null
        ? 'WITHOUT KEYS: nothing sealed in this backup opens without the folder of the kms.'
        : `${manifest.keys.length} key files are in ${to}/keys. This folder opens every secret of the deployment.`,
    ],
  }
}

async function withDatabase<T>(
  loaded: LoadedSettings,
  urls: DatabaseUrls | undefined,
  work: (url: string) => Promise<T>,
): Promise<T> {
  if (urls !== undefined) return reaching(urls.maintenance, () => work(urls.maintenance))
  if (!existsSync(loaded.dataDir)) throw new Error(`there is no deployment in ${loaded.dataDir}`)
  const { server, isGuest } = await embeddedServer(loaded.dataDir)
  try {
    return await work(server.url)
  } finally {
    if (!isGuest) await server.stop()
  }
}

async function verified({ from }: RestoreOptions): Promise<Result> {
  const manifest = await readManifest(from)
  const files = await verifyFiles(from, manifest)
  return {
    json: { from: resolve(from), created_at: manifest.created_at, files },
    lines: [`${files} files are as they were written at ${manifest.created_at}.`],
  }
}

async function restoreOf(loaded: LoadedSettings, options: RestoreOptions): Promise<Result> {
  const from = resolve(options.from)
  const manifest = await readManifest(from)
  await verifyFiles(from, manifest)
  const urls = databaseUrls(loaded.settings.database)
  if (urls !== undefined) {
    return reaching(urls.migration, () => into(loaded, options, { manifest, from, urls }))
  }
  // It claims the data directory, so no service runs on it.
  const server = await startEmbeddedPostgres({ dataDir: loaded.dataDir, log: silentLogger })
  try {
    const embedded = databaseUrls(loaded.settings.database, server.url)!
    return await into(loaded, options, { manifest, from, urls: embedded })
  } finally {
    await server.stop()
  }
}

async function into(
  loaded: LoadedSettings,
  options: RestoreOptions,
  { manifest, from, urls }: { manifest: Manifest; from: string; urls: DatabaseUrls },
): Promise<Result> {
  const { database, oidc } = loaded.settings
  const url = urls.migration
  const restored = await restore({
    from,
    manifest,
    connection: connectionTo(loaded, url, 'svc restore'),
    migration: {
      url,
      log: silentLogger,
      runtimeRoles: rolesOf(urls),
      requireSsl: database.require_ssl,
    },
    keysFolder: keysFolderOf(loaded, options),
    assetsFolder: assetsFolderOf(loaded),
    isForced: options.force === true,
    progress: progressBar('tables'),
  })
  await recordRestore(loaded, urls, manifest)
  const { rows, migrated, setAside } = restored
  return {
    json: {
      from,
      created_at: manifest.created_at,
      rows,
      migrated,
      set_aside: setAside,
      issuer: manifest.issuer,
    },
    lines: [
      `Restored ${rows} rows of ${manifest.created_at}.`,
      ...(migrated.length === 0 ? [] : [`Then migrated: ${migrated.join(', ')}.`]),
      ...setAside.map((folder) => `The earlier files are in ${folder}.`),
      ...(manifest.issuer === oidc.issuer_url
        ? []
        : [
            `The backup is of ${manifest.issuer}, and this deployment is ${oidc.issuer_url}: ` +
              'clients accept its tokens only under the old issuer.',
          ]),
      'Revocations after the backup are lost. See docs/guides/operations/backup.md.',
    ],
  }
}

/** The audit chain of the control plane says that it was restored. */
async function recordRestore(
  { settings, plane }: LoadedSettings,
  urls: DatabaseUrls,
  { created_at, version }: Manifest,
): Promise<void> {
  const database = await openDatabase({
    settings: { ...settings.database, min_connections: 0 },
    urls,
    plane,
    log: silentLogger,
  })
  try {
    // The control plane is found before its tenant is known.
    await database.system(async (tx) => {
      const controlPlane = await findControlPlane(tx)
      if (controlPlane === undefined) return
      appendAudit(tx, [
        withoutCaller({
          id: systemRandom(systemClock).uuid(),
          tenantId: controlPlane.id,
          type: 'admin.deployment.restored',
          occurredAt: systemClock.now(),
          resource: { type: 'tenant', id: controlPlane.id },
          data: { backup_created_at: created_at, backup_version: version },
        }),
      ])
    })
  } finally {
    await database.close()
  }
}

function keysFolderOf({ settings, dataDir }: LoadedSettings, options: KeyOptions): string | null {
  const { keys, withoutKeys = false } = options
  if (keys !== undefined && withoutKeys) throw new Error('name --keys or --without-keys, not both')
  if (withoutKeys) return null
  if (settings.kms === undefined) return keys ?? localKeysFolder(dataDir)
  if (keys !== undefined) return keys
  throw new Error(
    'the keys belong to the configured kms: name its folder (--keys DIR), or --without-keys',
  )
}

/** `tenant_assets.folder`. Null: none, or the images are in an object store, which has separate backups. */
function assetsFolderOf({ settings }: LoadedSettings): string | null {
  const { folder } = settings.tenant_assets as { readonly folder?: string | undefined }
  return folder === undefined ? null : resolve(folder)
}

function connectionTo(
  { settings: { database } }: LoadedSettings,
  url: string,
  application: string,
): ConstructorParameters<typeof Client>[0] {
  return {
    connectionString: url,
    application_name: application,
    keepAlive: true,
    connectionTimeoutMillis: database.connect_timeout_secs * 1000,
    ...tlsOptions(url, database.require_ssl),
  }
}

/** A lost connection reads like a pool's, with the setting of its URL. */
async function reaching<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
    throw isConnectionLoss(cause) ? new DatabaseUnreachable(url, cause) : error
  }
}

function userOf(url: string): string {
  return decodeURIComponent(new URL(url).username)
}

function packageVersion(): string {
  const path = new URL('../../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
}
