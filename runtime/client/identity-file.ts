/**
 * An agent's identity in a file: its registration, its private key and its tokens. A process that
 * can read the file can act as the agent. The file is therefore readable only by its owner (0600,
 * in a folder 0700), and refused otherwise. It is always written as a whole.
 */
import { constants, type Stats } from 'node:fs'
import { lstat, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { holdingLock } from './file-lock.js'
import { replaceFile } from './replace-file.js'

const FOLDER_MODE = 0o700
const OTHERS = 0o077
const OTHERS_WRITE = 0o022
const STICKY = 0o1000
const VERSION = 1

export type StoredToken = {
  /** UUID of the tenant. */
  readonly tenant_id: string
  /** The requested scope. Empty: all that the agent may have. */
  readonly asked_scope: string
  readonly scope: string
  readonly access_token: string
  /** Unix seconds. */
  readonly expires_at: number
}

export type StoredDelegation = {
  readonly delegation_id: string
  readonly subject: string
  readonly scope: string
  readonly access_token: string
  /** Unix seconds. */
  readonly expires_at: number
  readonly refresh_token: string | null
}

export type StoredIdentity = {
  readonly version: typeof VERSION
  readonly base_url: string
  readonly issuer: string
  readonly name: string
  /** Null until the registration has a response. */
  readonly agent_id: string | null
  readonly home_tenant_id: string | null
  /** The default tenant for tokens: the workspace, else the home tenant. */
  readonly tenant_id: string | null
  /** PKCS#8 PEM. */
  readonly private_key: string
  readonly tokens: readonly StoredToken[]
  /** Newest first. */
  readonly delegations: readonly StoredDelegation[]
}

/**
 * Undefined when the file does not exist. @throws when others may read it, or when it is not an
 * identity file.
 */
export async function readIdentity(path: string): Promise<StoredIdentity | undefined> {
  await judgeFolder(dirname(path))
  let file: Awaited<ReturnType<typeof open>>
  try {
    // No symbolic links: another user may have created one.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    if (codeOf(error) === 'ELOOP') {
      throw new Error(`${path} is a symbolic link: name the file itself`, { cause: error })
    }
    throw error
  }
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw new Error(`${path} is not a file`)
    judgeOwner(path, stats)
    if ((stats.mode & OTHERS) !== 0) {
      throw new Error(
        `${path} contains a private key and other users can read it: run chmod 600 ${path}`,
      )
    }
    return identityOf(path, await file.readFile('utf8'))
  } finally {
    await file.close()
  }
}

/** Replaces the file in one step, so that no reader and no crash sees a partial file. */
export async function writeIdentity(path: string, identity: StoredIdentity): Promise<void> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE })
  await judgeFolder(folder)
  await replaceFile(path, `${JSON.stringify(identity, null, 2)}\n`)
}

/**
 * Runs work on the file while no other process does: two renewals with one refresh token look like
 * theft. A lock whose holder has died is taken over.
 * @throws when the lock stays held for a minute.
 */
export async function holdingIdentity<T>(path: string, work: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE })
  return holdingLock(`${path}.lock`, work)
}

/** Other users must not be able to replace the file. */
async function judgeFolder(folder: string): Promise<void> {
  let stats: Stats
  try {
    stats = await lstat(folder)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    throw error
  }
  if (!stats.isDirectory()) throw new Error(`${folder} is not a folder`)
  judgeOwner(folder, stats)
  if ((stats.mode & OTHERS_WRITE) !== 0 && (stats.mode & STICKY) === 0) {
    throw new Error(`other users can write to ${folder}: run chmod 700 ${folder}`)
  }
}

function judgeOwner(path: string, { uid }: Stats): void {
  const own = process.getuid?.()
  if (own === undefined || uid === own || uid === 0) return
  throw new Error(`${path} belongs to another user`)
}

function identityOf(path: string, text: string): StoredIdentity {
  let read: Partial<StoredIdentity> | null
  try {
    read = JSON.parse(text) as Partial<StoredIdentity> | null
  } catch {
    throw new Error(`${path} is not JSON`)
  }
  if (read?.version !== VERSION || !isText(read.private_key) || !isText(read.base_url)) {
    throw new Error(`${path} is not an identity file of svc agent`)
  }
  return {
    version: VERSION,
    base_url: read.base_url,
    issuer: read.issuer ?? read.base_url,
    name: read.name ?? '',
    agent_id: read.agent_id ?? null,
    home_tenant_id: read.home_tenant_id ?? null,
    tenant_id: read.tenant_id ?? null,
    private_key: read.private_key,
    tokens: read.tokens ?? [],
    delegations: read.delegations ?? [],
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
