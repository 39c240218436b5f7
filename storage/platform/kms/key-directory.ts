/** The key directory of the kms: its Noise key, public keys of clients, master keys. */
import { timingSafeEqual } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { Random } from '../../../runtime/kernel/random.js'
import { KeyFileRefused, keyPaths, masterVersions, readKeyFile, writeKeyFile } from './key-files.js'
import { type MasterKeys, masterKeys } from './master-keys.js'
import { generateKeyPair, KEY_BYTES, type KeyPair, keyPairOf } from './noise.js'

const OTHERS = 0o077

export type KeyDirectory = {
  readonly server: KeyPair
  readonly master: MasterKeys
  readonly admits: (clientPublicKey: Uint8Array) => boolean
}

/**
 * Reads the keys of a kms.
 * @throws {KeyFileRefused} if a file is missing or accessible to other users.
 */
export async function readKeyDirectory(directory: string, random: Random): Promise<KeyDirectory> {
  const { mode } = await stat(directory).catch(() => {
    throw new KeyFileRefused(`no key directory ${directory}: run svc kms keygen --dir ${directory}`)
  })
  if ((mode & OTHERS) !== 0) {
    throw new KeyFileRefused(
      `key directory ${directory} is accessible to other users: run chmod 700 ${directory}`,
    )
  }
  const paths = keyPaths(directory)
  const server = keyPairOf(await readKeyFile('private', paths.serverPrivate))
  const clients = await readClients(paths.clients)
  const versions = await masterVersions(directory)
  if (versions.length === 0) throw new KeyFileRefused(`no master key in ${directory}`)
  const bytes = await Promise.all(
    versions.map(async (version) => ({
      version,
      bytes: await readKeyFile('master', paths.master(version)),
    })),
  )
  const master = masterKeys(bytes, random)
  for (const key of bytes) key.bytes.fill(0)
  return {
    server,
    master,
    admits: (key) => clients.filter((client) => timingSafeEqual(client, key)).length > 0,
  }
}

/** A value that changes when files are added or removed. */
export async function directoryVersion(directory: string): Promise<string> {
  const paths = [directory, keyPaths(directory).clients]
  const stats = await Promise.all(paths.map((path) => stat(path, { bigint: true })))
  return stats.map(({ mtimeNs }) => mtimeNs).join(' ')
}

/**
 * Creates the keys of a new kms and of its first client, `service`. The directory appears atomically.
 * @throws EEXIST if the directory is not empty. Keys are never overwritten.
 */
export async function generateKeyDirectory(directory: string, random: Random): Promise<void> {
  const parent = dirname(resolve(directory))
  const draft = join(parent, `.${basename(directory)}-${random.token(6)}`)
  const paths = keyPaths(draft)
  await mkdir(parent, { recursive: true, mode: 0o700 })
  await mkdir(draft, { mode: 0o700 })
  try {
    await mkdir(paths.clients, { mode: 0o700 })
    const server = generateKeyPair()
    const client = generateKeyPair()
    await writeKeyFile('private', paths.serverPrivate, server.secretKey)
    await writeKeyFile('public', paths.serverPublic, server.publicKey)
    await writeKeyFile('private', paths.clientPrivate, client.secretKey)
    await writeKeyFile('public', join(paths.clients, 'service.public'), client.publicKey)
    await writeKeyFile('master', paths.master(1), random.bytes(KEY_BYTES))
    await syncDirectory(draft)
    // Replaces an empty directory, and fails if it contains a file.
    await rename(draft, directory)
    await syncDirectory(parent)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
    throw Object.assign(new Error(`${directory} is not empty: keys are never overwritten`), {
      code: 'EEXIST',
    })
  }
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  await handle.sync().finally(() => handle.close())
}

/** Adds a master key, which wraps from now on. Older ones are kept for unwrapping. */
export async function rotateMasterKey(directory: string, random: Random): Promise<number> {
  const versions = await masterVersions(directory)
  const newest = versions.at(-1)
  if (newest === undefined) throw new KeyFileRefused(`no master key in ${directory}`)
  await writeKeyFile('master', keyPaths(directory).master(newest + 1), random.bytes(KEY_BYTES))
  await syncDirectory(directory)
  return newest + 1
}

async function readClients(directory: string): Promise<Uint8Array[]> {
  const names = await readdir(directory).catch(() => [])
  const files = names.filter((name) => name.endsWith('.public'))
  if (files.length === 0) throw new KeyFileRefused(`no client key (*.public) in ${directory}`)
  return Promise.all(files.map((name) => readKeyFile('public', join(directory, name))))
}
