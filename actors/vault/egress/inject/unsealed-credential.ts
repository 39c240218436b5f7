/**
 * Secrets while calls use them. Calls that run side by side with one credential share what was opened
 * for the first of them; it is wiped when the last of them ends. Nobody is let in who comes later
 * than a moment after it was opened, so that under steady load nothing stays open for ever.
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
import { Needles } from '../redact/redaction.js'
import { HeldBytes } from '../admission/shares.js'

/** How long after it was opened a secret is shared with calls that come. */
const SHARED_MS = 1_000

export interface Opened {
  /** How it goes into the request. */
  readonly injection: Injection
  /** What answers are searched for. */
  readonly needles: Needles
  /** The call has ended. Once for each time it was given out. */
  release(): void
}

/** Thrown where the secret is the access token of another credential, and there is none. */
export class NoToken extends Error {
  override readonly name = 'NoToken'
  readonly why: Exclude<ManagedOutcome, { tag: 'token' }>

  constructor(why: Exclude<ManagedOutcome, { tag: 'token' }>) {
    super(`there is no access token: ${why.tag}`)
    this.why = why
  }
}

export interface Openings {
  /**
   * @throws {NoToken}
   * @throws when the secret does not open.
   */
  open(tenantId: string, row: HeldCredentialRow): Promise<Opened>
  /** Secrets in memory. */
  readonly size: number
}

export function createOpenings(
  sealer: Sealer,
  clock: Clock,
  managed: Pick<ManagedTokens, 'get'>,
  bytes?: FairShare,
): Openings {
  const shared = new Map<string, Opening>()
  const held = new Set<Opening>()

  /** Tables for long secrets count as bytes that the tenant holds. */
  function needlesOf(tenantId: string, secret: Uint8Array, authScheme: string, opening: Opening) {
    const held = bytes === undefined ? undefined : new HeldBytes(bytes, tenantId)
    opening.held = held
    return new Needles(secret, authScheme, (count) => held?.take(count) ?? true)
  }

  async function unseal(tenantId: string, row: HeldCredentialRow, opening: Opening) {
    const secret = await sealer.open(tenantId, credentialSecretContext(row.id), row.secret!)
    try {
      opening.injection = inject(row.authScheme, secret)
      opening.needles = needlesOf(tenantId, secret, row.authScheme, opening)
    } finally {
      secret.fill(0)
    }
  }

  function begin(tenantId: string, row: HeldCredentialRow): Opening {
    const opening = new Opening(row, clock.monotonicMs(), () => {
      held.delete(opening)
      if (shared.get(row.id) === opening) shared.delete(row.id)
    })
    held.add(opening)
    shared.set(row.id, opening)
    opening.ready = unseal(tenantId, row, opening)
    return opening
  }

  /** An access token is shared by whoever keeps it, so each call has its own copy. */
  async function carry(tenantId: string, row: HeldCredentialRow, tokenOf: string) {
    const outcome = await managed.get(tenantId, tokenOf)
    if (outcome.tag !== 'token') throw new NoToken(outcome)
    const secret = Buffer.from(outcome.accessToken, 'utf8')
    const opening = new Opening(row, clock.monotonicMs(), () => void held.delete(opening))
    opening.users = 1
    opening.injection = inject(row.authScheme, secret)
    opening.needles = needlesOf(tenantId, secret, row.authScheme, opening)
    secret.fill(0)
    held.add(opening)
    return opening
  }

  return {
    async open(tenantId, row) {
      if (row.tokenOf !== null) return carry(tenantId, row, row.tokenOf)
      const known = shared.get(row.id)
      const isFresh = known !== undefined && clock.monotonicMs() - known.openedMs < SHARED_MS
      const opening = isFresh && known.isOf(row) ? known : begin(tenantId, row)
      opening.users += 1
      try {
        await opening.ready
      } catch (error) {
        opening.release()
        throw error
      }
      return opening
    },
    get size() {
      return held.size
    },
  }
}

class Opening implements Opened {
  injection: Injection = { header: null, query: null }
  needles: Needles = Needles.NONE
  ready: Promise<void> = Promise.resolve()
  users = 0
  held: HeldBytes | undefined = undefined
  readonly openedMs: number
  readonly #sealed: Uint8Array
  readonly #authScheme: string
  readonly #onUnused: () => void

  constructor(row: HeldCredentialRow, openedMs: number, onUnused: () => void) {
    this.openedMs = openedMs
    this.#sealed = row.secret!
    this.#authScheme = row.authScheme
    this.#onUnused = onUnused
  }

  /** Whether it holds what the row holds now: the secret may have been replaced. */
  isOf({ secret, authScheme }: HeldCredentialRow): boolean {
    return authScheme === this.#authScheme && Buffer.compare(secret!, this.#sealed) === 0
  }

  release(): void {
    this.users -= 1
    if (this.users > 0) return
    this.needles.wipe()
    this.held?.release()
    this.injection = { header: null, query: null }
    this.#onUnused()
  }
}
