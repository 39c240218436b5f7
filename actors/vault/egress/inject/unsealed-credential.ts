/**
 * Cache of unsealed credentials. Calls with one credential that start within a second share an unsealed secret. It is
 * wiped when the second is over and the last of these calls has ended, and immediately when the credential changes. So
 * a secret does not stay in memory forever under steady load.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import {
  credentialSecretContext,
  type HeldCredentialRow,
} from '../../../../storage/vault/vault-credentials.js'
import { readAuthScheme, type SignedScheme, tokenSourceOf } from '../../../domain/vault/egress.js'
import type { ManagedOutcome, ManagedTokens, RejectedToken } from '../../vault/protocol.js'
import { inject, type Injection } from './injection.js'
import { SecretEncodings } from '../redact/redaction.js'
import type { HeldBytes } from '../admission/shares.js'

/** New calls share an unsealed secret for this long. A secret without calls is wiped after at most this long. */
const SHARED_MS = 1_000

export type Signing = { readonly scheme: SignedScheme; readonly secret: unknown }

export interface UnsealedCredential {
  /** The header or query parameter of the request. */
  readonly injection: Injection
  /** Set where requests are signed: the scheme, and the document of its secret. */
  readonly signing: Signing | null
  /** The byte strings that redaction removes from the response. */
  readonly encodings: SecretEncodings
  /** The access token, of a credential that gets one for itself. */
  readonly token: RejectedToken | null
  /** Called once per `unseal`, at the end of the call. */
  release(): void
}

/** Thrown when the access token of the credential is unavailable. */
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
   * @param rejected the access token in place of which another one is wanted.
   * @throws {TokenUnavailable}
   * @throws when the secret cannot be unsealed.
   */
  unseal(
    tenantId: string,
    row: HeldCredentialRow,
    rejected?: RejectedToken,
  ): Promise<UnsealedCredential> | UnsealedCredential
  /** Wipes secrets of the tenant that no running call uses. */
  forget(tenantId: string): void
  /** Number of secrets in memory. */
  readonly size: number
}

export function createCredentialCache(
  sealer: Sealer,
  clock: Clock,
  managed: Pick<ManagedTokens, 'get'>,
  memoryOf?: (tenantId: string) => HeldBytes,
): CredentialCache {
  const shared = new Map<string, CachedCredential>()
  const inMemory = new Set<CachedCredential>()

  /** Wipes the secret. The redaction tables of long secrets count against the tenant's memory share. */
  function prepare(
    cached: CachedCredential,
    { authScheme }: HeldCredentialRow,
    secret: Uint8Array,
    former?: Uint8Array,
  ) {
    try {
      const scheme = readAuthScheme(authScheme)
      if (scheme === null) throw new Error(`no secret is sent by the auth_scheme ${authScheme}`)
      if (scheme.kind === 'signed') {
        // What redaction searches for differs from call to call.
        cached.signing = { scheme: scheme.text, secret: documentIn(secret) }
        return
      }
      const held = memoryOf?.(cached.tenantId)
      cached.held = held
      cached.injection = inject(scheme, secret)
      const reserve = (count: number) => held?.take(count) ?? true
      cached.encodings = new SecretEncodings(
        former === undefined ? secret : [secret, former],
        scheme,
        reserve,
      )
    } finally {
      secret.fill(0)
    }
  }

  async function load(tenantId: string, row: HeldCredentialRow, cached: CachedCredential) {
    prepare(cached, row, await sealer.open(tenantId, credentialSecretContext(row.id), row.secret!))
  }

  function begin(tenantId: string, row: HeldCredentialRow): CachedCredential {
    shared.get(row.id)?.expire()
    const cached = new CachedCredential(tenantId, row, () => {
      inMemory.delete(cached)
      if (shared.get(row.id) === cached) shared.delete(row.id)
    })
    cached.sharedUntilMs = clock.monotonicMs() + SHARED_MS
    inMemory.add(cached)
    shared.set(row.id, cached)
    cached.loading = load(tenantId, row, cached).then(() => {
      cached.loading = null
    })
    return cached
  }

  /** The managed token has its own cache, so each call unseals a copy. */
  async function loadToken(
    tenantId: string,
    row: HeldCredentialRow,
    source: string,
    rejected?: RejectedToken,
  ) {
    const outcome = await managed.get(tenantId, source, rejected)
    if (outcome.tag !== 'token') throw new TokenUnavailable(outcome)
    const cached = new CachedCredential(tenantId, row, () => void inMemory.delete(cached))
    cached.users = 1
    const { accessToken, previous } = outcome
    const former = previous === null ? undefined : Buffer.from(previous, 'utf8')
    prepare(cached, row, Buffer.from(accessToken, 'utf8'), former)
    if (row.tokenOf === null) cached.token = outcome
    inMemory.add(cached)
    return cached
  }

  return {
    unseal(tenantId, row, rejected) {
      const source = tokenSourceOf(row)
      if (source !== null) return loadToken(tenantId, row, source, rejected)
      const known = shared.get(row.id)
      const isFresh = known !== undefined && clock.monotonicMs() < known.sharedUntilMs
      const cached = isFresh && known.isOf(row) ? known : begin(tenantId, row)
      cached.users += 1
      return cached.loading === null ? cached : whenLoaded(cached, cached.loading)
    },
    forget(tenantId) {
      for (const cached of inMemory) if (cached.tenantId === tenantId) cached.expire()
    },
    get size() {
      return inMemory.size
    },
  }
}

function documentIn(secret: Uint8Array): unknown {
  const bytes = Buffer.from(secret.buffer, secret.byteOffset, secret.byteLength)
  return JSON.parse(bytes.toString('utf8'))
}

async function whenLoaded(
  cached: CachedCredential,
  loading: Promise<void>,
): Promise<UnsealedCredential> {
  try {
    await loading
    return cached
  } catch (error) {
    cached.expire()
    cached.release()
    throw error
  }
}

class CachedCredential implements UnsealedCredential {
  readonly tenantId: string
  injection: Injection = { header: null, query: null }
  signing: Signing | null = null
  encodings: SecretEncodings = SecretEncodings.NONE
  token: RejectedToken | null = null
  /** Null once it is unsealed. */
  loading: Promise<void> | null = null
  users = 0
  held: HeldBytes | undefined = undefined
  /** New calls join before this. 0: it is not shared any more. */
  sharedUntilMs = 0
  #timer: NodeJS.Timeout | undefined = undefined
  readonly #sealed: Uint8Array
  readonly #authScheme: string
  readonly #onWiped: () => void

  constructor(tenantId: string, row: HeldCredentialRow, onWiped: () => void) {
    this.tenantId = tenantId
    this.#sealed = row.secret!
    this.#authScheme = row.authScheme
    this.#onWiped = onWiped
  }

  /** False when the secret was rotated since the unsealing. */
  isOf({ secret, authScheme }: HeldCredentialRow): boolean {
    if (authScheme !== this.#authScheme) return false
    return secret === this.#sealed || Buffer.compare(secret!, this.#sealed) === 0
  }

  release(): void {
    this.users -= 1
    if (this.users > 0) return
    if (this.sharedUntilMs === 0) this.#wipe()
    else this.#timer ??= setTimeout(() => this.expire(), SHARED_MS).unref()
  }

  /** No call joins any more. Wiped when the last call that uses it has ended. */
  expire(): void {
    this.sharedUntilMs = 0
    if (this.users === 0) this.#wipe()
  }

  #wipe(): void {
    clearTimeout(this.#timer)
    this.encodings.wipe()
    this.held?.release()
    this.injection = { header: null, query: null }
    this.signing = null
    this.#onWiped()
  }
}
