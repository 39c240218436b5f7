/**
 * Keeps the signing keys in memory and in the database.
 *
 * Keys in memory are fresh for 30 s. The first use after that reads the database again, and so does a
 * notification of another process. A process that cannot read stops signing after 300 s, since its key
 * may have been retired, but still publishes and verifies.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Kms, KmsHealth } from '../../../storage/platform/kms/kms.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import {
  type SigningKeysProtocol,
  type KeysState,
  DEFAULT_ALGORITHMS,
  type DefaultAlgorithm,
  signingKeys,
  type SigningAlgorithm,
} from './protocol.js'
import { credentialKeys } from './credential-keys.js'
import { KeyKeeper } from './keeper.js'
import type { Ring, Signer } from './ring.js'
import { type KeyRow, planFirstUse, planMaintenance, planRotation } from './rules.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

/** A frozen kms does not delay the report of the keys in memory. */
const KMS_ANSWER_MS = 500
const KMS_LATE: KmsHealth = { state: 'down', reason: 'it does not answer' }
const UNAVAILABLE = { tag: 'keys_unavailable' } as const

type SigningKeysNeeds = WriteNeeds & {
  readonly sealer: Sealer
  readonly kms: Kms
  /** From [jwt]. */
  readonly settings: {
    readonly default_algorithm: DefaultAlgorithm
    readonly key_rotation_days: number
  }
}

export const signingKeysActor = defineActor<SigningKeysProtocol, SigningKeysNeeds>({
  address: signingKeys,
  asks: {},
  mailbox: { capacity: 16_384, inflightMax: 1_024 },
  lane: {
    rotateSigningKeys: () => 'rotation',
    maintain: () => 'rotation',
  },
  create: (needs, { log }) => {
    const keeper = new KeyKeeper(needs, log)
    const { settings, clock, kms } = needs
    const ofTenants = credentialKeys(needs, log, keeper)
    const turnEnd = turnEnds()
    let making: Promise<unknown> | undefined
    /** The first signature with RS256 makes its keys. Concurrent ones wait for the same keys. */
    async function firstSigner(
      algorithm: SigningAlgorithm,
      context: MessageContext,
    ): Promise<Signer | undefined> {
      if (algorithm !== 'RS256') return undefined
      making ??= keeper
        .change((rows) => planFirstUse(rows, algorithm), null, context)
        .finally(() => (making = undefined))
      await making
      return keeper.fresh?.signers.get(algorithm)
    }
    return {
      ...ofTenants.handlers,
      async sign({ typ, claims, algorithm = settings.default_algorithm }, context) {
        await turnEnd()
        const ring = keeper.fresh ?? (await keeper.forSigning())
        const signer = ring?.signers.get(algorithm) ?? (await firstSigner(algorithm, context))
        if (signer === undefined) return UNAVAILABLE
        const { kid } = signer.key
        return { tag: 'signed', token: signer.sign(typ, claims), kid, algorithm }
      },
      async keySet() {
        return (keeper.fresh ?? (await keeper.forVerifying()))?.keySet ?? UNAVAILABLE
      },
      async verificationKey({ kid }) {
        const found = (keeper.fresh ?? (await keeper.forVerifying()))?.verification.get(kid)
        if (found !== undefined) return found
        // Another process may have created this key a moment ago.
        const ring = await keeper.lookAgain()
        if (ring === undefined) return UNAVAILABLE
        return ring.verification.get(kid) ?? { tag: 'unknown' }
      },
      async rotateSigningKeys(demand, context) {
        const { caller } = demand
        const by = caller === undefined ? null : { caller, requestId: context.requestId }
        const plan = (rows: readonly KeyRow[]) => planRotation(rows, clock.now(), demand)
        const outcome = await keeper.change(plan, by, context)
        if (outcome === undefined) return UNAVAILABLE
        if (outcome.tag === 'too_early') {
          return { tag: 'rotated_too_recently', retryAfterSecs: outcome.waitSecs }
        }
        context.log.info({ compromised: demand.compromised }, 'signing keys rotated on demand')
        return { tag: 'rotated', current: keeper.current() }
      },
      async maintain(_, context) {
        const days = settings.key_rotation_days
        const plan = (rows: readonly KeyRow[]) => planMaintenance(rows, clock.now(), days)
        const outcome = await keeper.change(plan, null, context)
        if (outcome === undefined || outcome.tag === 'too_early') return UNAVAILABLE
        return { ...outcome, tag: 'maintained' }
      },
      async state() {
        const ring = keeper.fresh ?? (await keeper.forSigning())
        const late = sleep(KMS_ANSWER_MS, KMS_LATE, { ref: false })
        return stateOf(ring, await Promise.race([kms.health(), late]))
      },
      async changed() {
        ofTenants.expire()
        await keeper.look()
        return undefined
      },
    }
  },
})

function stateOf(ring: Ring | undefined, health: Awaited<ReturnType<Kms['health']>>): KeysState {
  const signing = ring !== undefined && DEFAULT_ALGORITHMS.every((each) => ring.signers.has(each))
  const kms = health.state
  const missing = ring === undefined ? 'no signing keys are loaded' : ring.shut
  const reason = signing && health.state === 'up' ? null : missing
  return {
    tag: 'keys_state',
    signing,
    kms,
    reason: reason ?? (health.state === 'down' ? health.reason : null),
  }
}

/**
 * Defers work to the end of the event loop turn, so that all signatures of a turn run in a row. A P-256
 * signature reads a 150 KiB table: the next signature finds it in the CPU cache, other work evicts it.
 */
function turnEnds(): () => Promise<void> {
  let end: Promise<void> | undefined
  return () => {
    end ??= new Promise((resolve) => {
      setImmediate(() => {
        end = undefined
        resolve()
      })
    })
    return end
  }
}
