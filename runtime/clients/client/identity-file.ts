/**
 * An agent's identity in a file: its registration, its private key and its tokens. A process that
 * can read the file can act as the agent. The file is therefore readable only by its owner (0600,
 * in a folder 0700), and refused otherwise. It is always written as a whole.
 */
import { holdingOwnFile, readOwnFile, writeOwnFile } from './own-file.js'

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
  const text = await readOwnFile(path, 'a private key')
  return text === undefined ? undefined : identityOf(path, text)
}

/** Replaces the file in one step, so that no reader and no crash sees a partial file. */
export async function writeIdentity(path: string, identity: StoredIdentity): Promise<void> {
  await writeOwnFile(path, `${JSON.stringify(identity, null, 2)}\n`)
}

/** Runs work on the file while no other process does. */
export function holdingIdentity<T>(path: string, work: () => Promise<T>): Promise<T> {
  return holdingOwnFile(path, work)
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
