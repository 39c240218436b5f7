/**
 * What a tenant's callers may use, as the database said less than a second ago. It lets a process admit a call of a
 * grant or lease without limits in memory: the process holds a block of calls for it, and records the call a few
 * milliseconds later, together with others.
 *
 * A change of a credential, a grant or a lease drops what is known. Every refusal comes from the database.
 */
import type { HeldCredentialRow } from '../../../../storage/vault/vault-credentials.js'
import type { AuthorityRow } from '../../../../storage/vault/egress-authorities.js'
import { CallTemplates, type CallFacts } from './events.js'

/** A revocation is effective in every process within 1 s, also when its announcement is lost. */
const FRESH_MS = 900
/** Read again in the background after this, so that calls of a busy caller never wait for it. */
const REFRESH_MS = 300
/** The block must be renewed well before other processes consider this one dead. */
const RENEW_MS = 20_000
const RENEWED_MS_MAX = 60_000
/** A block without calls is closed. */
const IDLE_MS = 3_000
/** Credentials are stamped as used at most this often, and once more when the block is closed. */
const STAMP_MS = 1_000
const TEMPLATES_MAX = 512

/** A block of calls that this process may send before it records them. */
export class Block {
  readonly id: string
  readonly credentialId: string
  readonly authorityId: string
  readonly callsMax: number
  /** Calls that are sent and not recorded. */
  unrecorded = 0
  renewedMs: number
  usedMs: number
  stampedMs: number
  isStampDue = false
  #isRetired = false

  constructor(
    id: string,
    credentialId: string,
    authorityId: string,
    callsMax: number,
    nowMs: number,
  ) {
    this.id = id
    this.credentialId = credentialId
    this.authorityId = authorityId
    this.callsMax = callsMax
    this.renewedMs = nowMs
    this.usedMs = nowMs
    this.stampedMs = nowMs
  }

  /** No call is admitted any more; the block is closed once its calls are recorded. */
  get isRetired(): boolean {
    return this.#isRetired
  }

  /** @returns true the first time. */
  retire(): boolean {
    const isFirst = !this.#isRetired
    this.#isRetired = true
    return isFirst
  }

  get hasRoom(): boolean {
    return this.unrecorded < this.callsMax
  }

  /** True if the credential is to be stamped as used with the next record. */
  takeStamp(nowMs: number): boolean {
    this.isStampDue = nowMs - this.stampedMs < STAMP_MS
    if (!this.isStampDue) this.stampedMs = nowMs
    return !this.isStampDue
  }
}

/** What one caller may do with one credential. */
export type KnownCaller = {
  readonly key: string
  readonly row: HeldCredentialRow
  readonly authorities: readonly AuthorityRow[]
  readonly readMs: number
  readonly generation: number
  usedMs: number
  block: Block | null
  isRefreshing: boolean
}

function inUse(block: Block | null | undefined): Block | null {
  return block === null || block === undefined || block.isRetired ? null : block
}

export class KnownCallers {
  readonly #known = new Map<string, KnownCaller>()
  readonly #templates = new Map<string, CallTemplates>()
  #generation = 0

  get size(): number {
    return this.#known.size
  }

  /** What is read now is valid until this changes. */
  get generation(): number {
    return this.#generation
  }

  find(key: string): KnownCaller | undefined {
    return this.#known.get(key)
  }

  /** A credential, grant or lease has changed: nothing that was read before is used any more. */
  forget(): void {
    this.#generation += 1
  }

  isFresh({ readMs, generation, block }: KnownCaller, nowMs: number): boolean {
    if (generation !== this.#generation || nowMs - readMs >= FRESH_MS) return false
    if (block === null || block.isRetired) return false
    return nowMs - block.renewedMs < RENEWED_MS_MAX
  }

  /** True once, when it is time to read the caller's authorities again. */
  takeRefresh(known: KnownCaller, nowMs: number): boolean {
    if (known.isRefreshing || nowMs - known.readMs < REFRESH_MS) return false
    known.isRefreshing = true
    return true
  }

  /** The next call tries again. */
  refreshFailed(key: string): void {
    const known = this.#known.get(key)
    if (known !== undefined) known.isRefreshing = false
  }

  isRenewalDue({ renewedMs }: Block, nowMs: number): boolean {
    return nowMs - renewedMs >= RENEW_MS
  }

  /** Keeps what was read, or what another transaction has read later. */
  remember(known: KnownCaller): void {
    const { key, block, usedMs, readMs } = known
    const current = this.#known.get(key)
    const isOlder = current !== undefined && current.readMs > readMs
    const kept = inUse(block) ?? inUse(current?.block)
    const latest = isOlder ? current : known
    const lastUsedMs = Math.max(usedMs, current?.usedMs ?? usedMs)
    this.#known.set(key, { ...latest, block: kept, usedMs: lastUsedMs, isRefreshing: false })
  }

  /** Removes callers without recent calls. @returns their blocks, which are to be closed. */
  takeIdle(nowMs: number, idleMs = IDLE_MS): Block[] {
    const blocks: Block[] = []
    for (const [key, { usedMs, block }] of this.#known) {
      if (nowMs - usedMs < idleMs || (block?.unrecorded ?? 0) > 0) continue
      this.#known.delete(key)
      if (block?.retire() === true) blocks.push(block)
    }
    if (this.#known.size === 0) this.#templates.clear()
    return blocks
  }

  /** The templates of the caller's events. */
  templatesOf(facts: CallFacts): CallTemplates {
    const { principal, address } = facts.caller
    const key = `${principal.tokenId} ${address} ${facts.credentialId} ${facts.authority.id}`
    let templates = this.#templates.get(key)
    if (templates === undefined) {
      if (this.#templates.size >= TEMPLATES_MAX) {
        this.#templates.delete(this.#templates.keys().next().value!)
      }
      templates = new CallTemplates(facts)
      this.#templates.set(key, templates)
    }
    return templates
  }
}
