/** Key files: one line of text, private ones readable by their owner alone. decisions.md 23. */
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { KEY_BYTES } from './noise.js'

export type KeyFileKind = 'public' | 'private' | 'master'

const PREFIXES: Record<KeyFileKind, string> = {
  public: 'svc-kms-public-v1',
  private: 'svc-kms-private-v1',
  master: 'svc-kms-master-v1',
}
const FILE_BYTES_MAX = 256
const OTHERS = 0o077

/** A key file that is missing, open to others or not what it should be. Says what to do. */
export class KeyFileRefused extends Error {
  override readonly name = 'KeyFileRefused'
}

/** @throws {KeyFileRefused} */
export async function readKeyFile(kind: KeyFileKind, path: string): Promise<Uint8Array> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    throw new KeyFileRefused(`key file ${path} cannot be read (${error.code ?? error.message})`)
  })
  try {
    // Permissions and content of the same open file, so that nobody swaps it in between.
    const { mode, size } = await file.stat()
    if (kind !== 'public' && (mode & OTHERS) !== 0) {
      throw new KeyFileRefused(
        `key file ${path} is open to others (mode ${(mode & 0o777).toString(8)}): ` +
          `run chmod 600 ${path}, and make new keys if anybody may have read it`,
      )
    }
    if (size > FILE_BYTES_MAX) throw new KeyFileRefused(`key file ${path} is too long for a key`)
    const key = parseKeyLine(kind, await file.readFile('utf8'))
    if (key === undefined) {
      throw new KeyFileRefused(`key file ${path} is not one line '${PREFIXES[kind]} <base64>'`)
    }
    return key
  } finally {
    await file.close()
  }
}

/** Writes a new key file, flushed to disk. @throws EEXIST: a key is never overwritten. */
export async function writeKeyFile(
  kind: KeyFileKind,
  path: string,
  key: Uint8Array,
): Promise<void> {
  const file = await open(path, 'wx', kind === 'public' ? 0o644 : 0o600)
  try {
    await file.writeFile(formatKeyLine(kind, key))
    await file.sync()
  } finally {
    await file.close()
  }
}

export function formatKeyLine(kind: KeyFileKind, key: Uint8Array): string {
  return `${PREFIXES[kind]} ${Buffer.from(key).toString('base64')}\n`
}

/** The key in a line, undefined for anything else. */
export function parseKeyLine(kind: KeyFileKind, text: string): Uint8Array | undefined {
  const line = text.endsWith('\n') ? text.slice(0, -1) : text
  const [prefix, base64, ...more] = line.split(' ')
  if (prefix !== PREFIXES[kind] || base64 === undefined || more.length > 0) return undefined
  const key = Buffer.from(base64, 'base64')
  const isCanonical = key.toString('base64') === base64
  return isCanonical && key.length === KEY_BYTES ? new Uint8Array(key) : undefined
}

/** Where the files of one kms lie. The first three are the kms's own, the last two the service's. */
export const keyPaths = (directory: string) => ({
  serverPrivate: join(directory, 'server.private'),
  /** Every `*.public` in it admits one client. */
  clients: join(directory, 'clients'),
  master: (version: number) => join(directory, `master-${version}.key`),
  serverPublic: join(directory, 'server.public'),
  clientPrivate: join(directory, 'client.private'),
})

/** Versions of the master keys in a directory, ascending. */
export async function masterVersions(directory: string): Promise<number[]> {
  const names = await readdir(directory)
  return names
    .map((name) => /^master-([1-9]\d{0,8})\.key$/.exec(name)?.[1])
    .filter((version) => version !== undefined)
    .map(Number)
    .sort((a, b) => a - b)
}
