/**
 * Cache of unsealed credentials. Concurrent calls with one credential share an unsealed secret, which is
 * wiped when the last of them ends. A call joins only shortly after the unsealing, so that a secret does
 * not stay in memory for ever under steady load.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { FairShare } from '../../../../runtime/kernel/fairness/fair-share.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import {
  credentialSecretContext,
  type HeldCredentialRow,
} from '../../../../storage/vault/vault-credentials.js'
import type { ManagedOutcome, ManagedTokens } from '../../vault/managed-tokens.js'
import { inject, type Injection } from './injection.js'
import { SecretEncodings } from '../redact/redaction.js'
import { HeldBytes } from '../admission/shares.js'

/** New calls share an unsealed secret for this long. */
const SHARED_MS = 1_000

export interface UnsealedCredential {
  /** The header or query parameter of the request. */
  readonly injection: Injection
  /** The byte strings that redaction removes from the response. */
  readonly encodings: SecretEncodings
  /** Called once per `unseal`, at the end of the call. */
  release(): void
}

/** Thrown when the access token that the credential refers to (`token_of`) is unavailable. */
export class TokenUnavailable extends Error {
  override readonly name = 'TokenUnavailable'
  readonly why: Exclude<ManagedOutcome, { tag: 'token' }>

  constructor(why: Exclude<ManagedOutcome, { tag: 'token' }>) {
    super(`access token unavailable: ${why.tag}`)
    this.why = why
  }
}

export interface CredentialCache {
  /**
   * @throws {TokenUnavailable}
   * @throws when the secret cannot be unsealed.
   */
  unseal(tenantId: string, row: HeldCredentialRow): Promise<UnsealedCredential>
  /** Number of secrets in memory. */
  readonly size: number
}

export function createCredentialCache(
  sealer: Sealer,
  clock: Clock,
  managed: Pick<ManagedTokens, 'get'>,
  bytes?: FairShare,
): CredentialCache {
  const shared = new Map<string, CachedCredential>()
  const inMemory = new Set<CachedCredential>()

  /** The redaction tables of long secrets count against the tenant's memory share. */
  function encodingsFor(
    tenantId: string,
    secret: Uint8Array,
    authScheme: string,
    cached: CachedCredential,
  ) {
    const held = bytes === undefined ? undefined : new HeldBytes(bytes, tenantId)
    cached.held = held
    return new SecretEncodings(secret, authScheme, (count) => held?.take(count) ?? true)
  }

  async function load(tenantId: string, row: HeldCredentialRow, cached: CachedCredential) {
    const secret = await sealer.open(tenantId, credentialSecretContext(row.id), row.secret!)
    try {
      cached.injection = inject(row.authScheme, secret)
      cached.encodings = encodingsFor(tenantId, secret, row.authScheme, cached)
    } finally {
      secret.fill(0)
    }
  }

  function begin(tenantId: string, row: HeldCredentialRow): CachedCredential {
    const cached = new CachedCredential(row, clock.monotonicMs(), () => {
      inMemory.delete(cached)
      if (shared.get(row.id) === cached) shared.delete(row.id)
    })
    inMemory.add(cached)
    shared.set(row.id, cached)
    cached.ready = load(tenantId, row, cached)
    return cached
  }

  /** For `token_of`: the managed token has its own cache, so each call unseals a copy. */
  async function loadToken(tenantId: string, row: HeldCredentialRow, tokenOf: string) {
    const outcome = await managed.get(tenantId, tokenOf)
    if (outcome.tag !== 'token') throw new TokenUnavailable(outcome)
    const secret = Buffer.from(outcome.accessToken, 'utf8')
    const onUnused = () => void inMemory.delete(cached)
    const cached = new CachedCredential(row, clock.monotonicMs(), onUnused)
    cached.users = 1
    cached.injection = inject(row.authScheme, secret)
    cached.encodings = encodingsFor(tenantId, secret, row.authScheme, cached)
    secret.fill(0)
    inMemory.add(cached)
    return cached
  }

  return {
    async unseal(tenantId, row) {
      if (row.tokenOf !== null) return loadToken(tenantId, row, row.tokenOf)
      const known = shared.get(row.id)
      const isFresh = known !== undefined && clock.monotonicMs() - known.unsealedMs < SHARED_MS
      const cached = isFresh && known.isOf(row) ? known : begin(tenantId, row)
      cached.users += 1
      try {
        await cached.ready
      } catch (error) {
        cached.release()
        throw error
      }
      return cached
    },
    get size() {
      return inMemory.size
    },
  }
}

class CachedCredential implements UnsealedCredential {
  injection: Injection = { header: null, query: null }
  encodings: SecretEncodings = SecretEncodings.NONE
  ready: Promise<void> = Promise.resolve()
  users = 0
  held: HeldBytes | undefined = undefined
  readonly unsealedMs: number
  readonly #sealed: Uint8Array
  readonly #authScheme: string
  readonly #onUnused: () => void

  constructor(row: HeldCredentialRow, unsealedMs: number, onUnused: () => void) {
    this.unsealedMs = unsealedMs
    this.#sealed = row.secret!
    this.#authScheme = row.authScheme
    this.#onUnused = onUnused
  }

  /** False when the secret was rotated since the unsealing. */
  isOf({ secret, authScheme }: HeldCredentialRow): boolean {
    return authScheme === this.#authScheme && Buffer.compare(secret!, this.#sealed) === 0
  }

  release(): void {
    this.users -= 1
    if (this.users > 0) return
    this.encodings.wipe()
    this.held?.release()
    this.injection = { header: null, query: null }
    this.#onUnused()
  }
}
