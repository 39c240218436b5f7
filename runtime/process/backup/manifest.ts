/** The files of a backup: what the manifest lists, and how they are written and verified. */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { createInterface } from 'node:readline'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { z } from 'zod'
import type { SequenceState } from '../../../storage/platform/backup/tables.js'

const MANIFEST_FILE = 'manifest.json'
export const KEYS_FOLDER = 'keys'
export const ASSETS_FOLDER = 'assets'
/** The version of the layout of a backup. */
const FORMAT = 1
const MANIFEST_BYTES_MAX = 16 * 1024 * 1024

/** Relative, without a step up: a manifest must not name files outside of its folder. */
const Path = z
  .string()
  .max(512)
  .refine((path) => path !== '' && !path.startsWith('/') && !path.split('/').includes('..'))
const StoredFile = z.object({
  path: Path,
  bytes: z.int().min(0),
  /** SHA-256, hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
export type StoredFile = z.infer<typeof StoredFile>

const Manifest = z.object({
  format: z.literal(FORMAT),
  created_at: z.iso.datetime(),
  /** The version of the package that wrote the backup. */
  version: z.string(),
  issuer: z.string(),
  database: z.object({
    server_version: z.string(),
    migrations: z.array(z.object({ name: z.string(), checksum: z.string() })),
    tables: z.array(
      z.object({
        name: z.string(),
        columns: z.array(z.string()),
        rows: z.int().min(0),
        file: StoredFile,
      }),
    ),
    sequences: z.array(
      z.object({
        name: z.string(),
        last_value: z.string().regex(/^-?\d+$/),
        is_called: z.boolean(),
      }),
    ),
    /** The roles that the service used, for the operator of another server. */
    roles: z.array(z.string()),
    /** The data keys in the database are wrapped by these. */
    master_key_ids: z.array(z.string()),
  }),
  /** Null: the backup has no keys. */
  keys: z.array(StoredFile).nullable(),
  /** Null: no folder of assets was configured. */
  assets: z.array(StoredFile).nullable(),
})
export type Manifest = z.infer<typeof Manifest>

export const FORMAT_VERSION = FORMAT

export function sequencesOf({ database }: Manifest): SequenceState[] {
  return database.sequences.map(({ name, last_value: lastValue, is_called: isCalled }) => ({
    name,
    lastValue,
    isCalled,
  }))
}

/** @throws with a message for an operator. */
export async function readManifest(folder: string): Promise<Manifest> {
  const path = join(folder, MANIFEST_FILE)
  const { size } = await stat(path).catch(() => {
    throw new Error(`${folder} is not a backup, or an incomplete one: it has no ${MANIFEST_FILE}`)
  })
  if (size > MANIFEST_BYTES_MAX) throw new Error(`${path} is too long for a manifest`)
  const parsed = Manifest.safeParse(parsedJson(await readFile(path, 'utf8'), path))
  if (!parsed.success) throw new Error(`${path}: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}

function parsedJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${path} is not JSON`)
  }
}

/** Written last: a backup without it is incomplete. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const file = await open(join(folder, MANIFEST_FILE), 'wx', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(manifest, null, 2)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Writes lines as JSON strings, one per line, compressed. */
export async function writeLines(
  folder: string,
  path: string,
  pages: AsyncIterable<readonly string[]>,
): Promise<StoredFile & { readonly rows: number }> {
  let rows = 0
  const text = async function* () {
    for await (const page of pages) {
      rows += page.length
      yield `${page.map((line) => JSON.stringify(line)).join('\n')}\n`
    }
  }
  const { measure, measured } = meter()
  const target = createWriteStream(join(folder, path), { mode: 0o600, flags: 'wx', flush: true })
  await pipeline(text, createGzip({ level: 6 }), measure, target)
  return { path, ...measured(), rows }
}

/** The lines of a file that `writeLines` wrote, in pages. */
export async function* readLines(folder: string, path: string): AsyncGenerator<readonly string[]> {
  const text = createReadStream(join(folder, path)).pipe(createGunzip())
  let page: string[] = []
  for await (const line of createInterface({ input: text, crlfDelay: Infinity })) {
    page.push(JSON.parse(line) as string)
    if (page.length < 500) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

/** Copies a file and its measures. The copy is closed to other users. */
export async function copyMeasured(from: string, to: string): Promise<Omit<StoredFile, 'path'>> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  const { measure, measured } = meter()
  const target = createWriteStream(to, { mode: 0o600, flags: 'wx', flush: true })
  await pipeline(createReadStream(from), measure, target)
  return measured()
}

/** Copies the files of a folder, and of its folders. Sockets, links and files that are removed in the meantime are left out. */
export async function copyFolder(from: string, to: string, prefix: string): Promise<StoredFile[]> {
  const entries = await readdir(from, { recursive: true, withFileTypes: true })
  const files: StoredFile[] = []
  for (const entry of entries.filter((one) => one.isFile())) {
    const inside = join(entry.parentPath, entry.name).slice(from.length + 1)
    const path = `${prefix}/${inside.replaceAll(sep, '/')}`
    try {
      files.push({ path, ...(await copyMeasured(join(from, inside), join(to, inside))) })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      await rm(join(to, inside), { force: true })
    }
  }
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Compares every file of a backup with the manifest. @throws with the first one that differs. */
export async function verifyFiles(folder: string, manifest: Manifest): Promise<number> {
  const files = [
    ...manifest.database.tables.map(({ file }) => file),
    ...(manifest.keys ?? []),
    ...(manifest.assets ?? []),
  ]
  for (const { path, bytes, sha256 } of files) {
    const { measure, measured } = meter()
    measure.resume()
    await pipeline(createReadStream(join(folder, path)), measure).catch((error: unknown) => {
      throw new Error(`${path} of the backup cannot be read`, { cause: error })
    })
    const found = measured()
    if (found.bytes !== bytes || found.sha256 !== sha256) {
      throw new Error(`${path} is not the file that was backed up: its checksum differs`)
    }
  }
  return files.length
}

function meter() {
  const hash = createHash('sha256')
  let bytes = 0
  const measure = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      hash.update(chunk)
      done(null, chunk)
    },
  })
  return { measure, measured: () => ({ bytes, sha256: hash.digest('hex') }) }
}
