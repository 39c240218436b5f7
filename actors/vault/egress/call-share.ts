/** The share of one call: its place among concurrent calls, and the memory that it holds. */
import {
  type FairShare,
  isRefused,
  type Release,
  type ShareGroup,
} from '../../../runtime/kernel/fairness/fair-share.js'
import type { Principal } from '../../domain/principal.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import { type HeldBytes, keysOf } from './admission/shares.js'
import type { NotRelayed, ProxyRequest } from './protocol.js'
import type { Relay } from './relay/relay.js'
import { NotSent } from './sending.js'

export type ShareNeeds = {
  /** Places of concurrent calls. */
  readonly calls: FairShare
  readonly groups: TenantGroups
  readonly memoryOf: (tenantId: string, giveUp: () => boolean) => HeldBytes
}

/**
 * Runs a call within its share, or refuses it. The share is released when the call has its outcome and its other parts
 * have left it, or when it gives up.
 */
export function withinShare<Outcome>(
  needs: ShareNeeds,
  principal: Principal,
  request: ProxyRequest,
  run: (share: Share) => Promise<Outcome>,
): Promise<Outcome | NotRelayed> | NotRelayed {
  const known = needs.groups.of(principal.tenantId)
  if (known instanceof Promise)
    return known.then((groups) => withinGroups(needs, principal, request, groups, run))
  return withinGroups(needs, principal, request, known, run)
}

function withinGroups<Outcome>(
  { memoryOf, calls }: ShareNeeds,
  principal: Principal,
  { isBodyHeld, bodyBytes }: ProxyRequest,
  groups: readonly ShareGroup[],
  run: (share: Share) => Promise<Outcome>,
): Promise<Outcome | NotRelayed> | NotRelayed {
  const giveUp = () => share.giveUp()
  const share = new Share(memoryOf(principal.tenantId, giveUp))
  const release = calls.tryAcquire(keysOf(principal), 1, { groups, giveUp })
  if (isRefused(release)) return release.refused === 'agent' ? TOO_MANY : BUSY
  share.enter(release)
  if (isBodyHeld === true && !share.held.take(bodyBytes ?? 0)) {
    share.leave()
    return BUSY
  }
  return running(share, run)
}

async function running<Outcome>(
  share: Share,
  run: (share: Share) => Promise<Outcome>,
): Promise<Outcome | NotRelayed> {
  try {
    return await run(share)
  } catch (error) {
    if (error instanceof GivenUp) return BUSY
    if (error instanceof NotSent && error.outcome.tag !== 'relayed') return error.outcome
    throw error
  } finally {
    share.isAnswered = true
    share.leave()
  }
}

/** The share of a call, reference-counted by its running parts. */
export class Share {
  readonly held: HeldBytes
  /** Its caller has an outcome, so it keeps its place until it ends. */
  isAnswered = false
  relay: Relay | undefined
  #isGivenUp = false
  #onGivenUp: (() => void) | undefined
  #release: Release = () => {}
  #parts = 0

  constructor(held: HeldBytes) {
    this.held = held
  }

  enter(release = this.#release): void {
    this.#release = release
    this.#parts += 1
  }

  /** Another tenant has its place or its memory now. */
  get isGivenUp(): boolean {
    return this.#isGivenUp
  }

  /** Ends a call without an answer for a tenant that has no place. */
  giveUp(): boolean {
    if (this.isAnswered || this.#isGivenUp) return false
    this.#isGivenUp = true
    this.#onGivenUp?.()
    this.relay?.giveUp()
    this.held.release()
    return true
  }

  /**
   * The result of a wait, which ends immediately when the call is given up.
   * @param discard takes a result that comes too late.
   * @throws {GivenUp}
   */
  whileHeld<T>(waiting: Promise<T>, discard: (late: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#onGivenUp = () => reject(new GivenUp())
      if (this.#isGivenUp) this.#onGivenUp()
      waiting.then((value) => (this.#isGivenUp ? discard(value) : resolve(value)), reject)
    })
  }

  leave(): void {
    this.#parts -= 1
    if (this.#parts > 0) return
    this.#release()
    this.held.release()
  }
}

/** The place was taken back before the request was sent. */
export class GivenUp extends Error {
  override readonly name = 'GivenUp'
}

const TOO_MANY: NotRelayed = { tag: 'too_many_calls' }
export const BUSY: NotRelayed = { tag: 'busy' }
