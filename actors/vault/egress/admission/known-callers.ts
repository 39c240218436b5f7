/**
 * What a tenant's callers may use, as the database said less than a second ago. It lets a process admit a call in memory:
 * the process holds a block of calls for it, and records the call a few milliseconds later, together with others. The
 * block of a grant or lease with limits holds a part of them, which its calls use up.
 *
 * A change of a credential, a grant or a lease drops what is known. Every refusal comes from the database.
 */
import type { HeldCredentialRow } from '../../../../storage/vault/vault-credentials.js'
import type { Principal } from '../../../domain/principal.js'
import type { AuthorityRow } from '../../../../storage/vault/egress-authorities.js'
import type { Block } from './block.js'
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
const TEMPLATES_MAX = 512

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
  /** The templates of the last call, which the next one mostly needs too. */
  latest: LatestTemplates | null
}

type LatestTemplates = {
  readonly principal: Principal
  readonly address: string | null
  readonly authorityId: string
  readonly templates: CallTemplates
}

function inUse(block: Block | null | undefined): Block | null {
  return block === null || block === undefined || block.isRetired ? null : block
}

/** The block enforces the limits of its grant or lease, whose row counts what the block holds as used. */
function withinBlock(
  authorities: readonly AuthorityRow[],
  block: Block | null,
): readonly AuthorityRow[] {
  if (block === null || block.limits === null) return authorities
  return authorities.map((each) =>
    each.id === block.authority.id ? { ...each, maxRequests: null, maxBytes: null } : each,
  )
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

  /**
   * A credential, grant or lease has changed: nothing that was read before is used any more.
   * @returns the blocks that hold a part of a limit. They are to be closed, because another process may need it.
   */
  forget(): Block[] {
    this.#generation += 1
    const blocks: Block[] = []
    for (const { block } of this.#known.values()) {
      if (block !== null && block.limits !== null && block.retire()) blocks.push(block)
    }
    return blocks
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
    // A whole literal: objects that extend a spread have a V8 hidden class each.
    this.#known.set(key, {
      key,
      row: latest.row,
      authorities: withinBlock(latest.authorities, kept),
      readMs: latest.readMs,
      generation: latest.generation,
      usedMs: Math.max(usedMs, current?.usedMs ?? usedMs),
      block: kept,
      isRefreshing: false,
      latest: latest.latest,
    })
  }

  /** Removes callers without recent calls. @returns their blocks, which are to be closed. */
  takeIdle(nowMs: number, idleMs = IDLE_MS): Block[] {
    const blocks: Block[] = []
    for (const [key, { usedMs, block }] of this.#known) {
      if (nowMs - usedMs < idleMs || block?.isSettled === false) continue
      this.#known.delete(key)
      if (block?.retire() === true) blocks.push(block)
    }
    if (this.#known.size === 0) this.#templates.clear()
    return blocks
  }

  /** The templates of the events of a call. */
  templatesOf(known: KnownCaller, facts: CallFacts): CallTemplates {
    const { principal, address } = facts.caller
    const authorityId = facts.authority.id
    const { latest } = known
    if (
      latest !== null &&
      latest.principal === principal &&
      latest.address === address &&
      latest.authorityId === authorityId
    ) {
      return latest.templates
    }
    const key = `${principal.tokenId} ${address} ${facts.credentialId} ${authorityId}`
    let templates = this.#templates.get(key)
    if (templates === undefined) {
      if (this.#templates.size >= TEMPLATES_MAX) {
        this.#templates.delete(this.#templates.keys().next().value!)
      }
      templates = new CallTemplates(facts)
      this.#templates.set(key, templates)
    }
    known.latest = { principal, address, authorityId, templates }
    return templates
  }
}
