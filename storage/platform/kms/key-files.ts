/** Key files: one line of text. Private key files are accessible only to their owner. */
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { KEY_BYTES } from './noise.js'

type KeyFileKind = 'public' | 'private' | 'master'

const PREFIXES: Record<KeyFileKind, string> = {
  public: 'svc-kms-public-v1',
  private: 'svc-kms-private-v1',
  master: 'svc-kms-master-v1',
}
const FILE_BYTES_MAX = 256
const OTHERS = 0o077

/** A key file is missing, malformed, or accessible to other users. The message has the remedy. */
export class KeyFileRefused extends Error {
  override readonly name = 'KeyFileRefused'
}

/** @throws {KeyFileRefused} */
export async function readKeyFile(kind: KeyFileKind, path: string): Promise<Uint8Array> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    throw new KeyFileRefused(`key file ${path} cannot be read (${error.code ?? error.message})`)
  })
  try {
    // Checks permissions and content of one open file, so that it cannot be replaced in between.
    const { mode, size } = await file.stat()
    if (kind !== 'public' && (mode & OTHERS) !== 0) {
      throw new KeyFileRefused(
        `key file ${path} is accessible to other users (mode ${(mode & 0o777).toString(8)}): ` +
          `run chmod 600 ${path}, and create new keys if another user may have read it`,
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

/** Writes a new key file and flushes it to disk. @throws EEXIST, because keys are never overwritten. */
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

/** Parses a key line. Undefined if it is invalid. */
export function parseKeyLine(kind: KeyFileKind, text: string): Uint8Array | undefined {
  const line = text.endsWith('\n') ? text.slice(0, -1) : text
  const [prefix, base64, ...more] = line.split(' ')
  if (prefix !== PREFIXES[kind] || base64 === undefined || more.length > 0) return undefined
  const key = Buffer.from(base64, 'base64')
  const isCanonical = key.toString('base64') === base64
  return isCanonical && key.length === KEY_BYTES ? new Uint8Array(key) : undefined
}

/** The key files of a kms. The first three belong to the kms, the last two to the service. */
export const keyPaths = (directory: string) => ({
  serverPrivate: join(directory, 'server.private'),
  /** Each `*.public` file admits one client. */
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
