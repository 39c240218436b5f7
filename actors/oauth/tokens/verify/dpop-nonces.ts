/**
 * Stateless DPoP nonces (RFC 9449 section 8): a nonce is its time of issue, encrypted. Every process
 * can read the nonces of the others, and no other party can make one.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import { SYSTEM_TENANT_ID } from '../../../../storage/platform/sealing/seal.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'

/** Lifetime of the current nonce, in seconds. */
const BUCKET_SECS = 60
/** A nonce is accepted for at least this many whole buckets after its own. */
const BUCKETS_ACCEPTED = 4
/** Tolerance for clocks of other processes that run ahead, in buckets. */
const BUCKETS_AHEAD = 1
const LENGTH_MAX = 256
const CONTEXT = 'dpop:nonce'

export interface DpopNonces {
  current(): Promise<string>
  isFresh(nonce: string): Promise<boolean>
}

type DpopNoncesNeeds = {
  readonly clock: Clock
  readonly sealer: Sealer
}

export function createDpopNonces({ clock, sealer }: DpopNoncesNeeds): DpopNonces {
  let cached: { bucket: number; nonce: Promise<string> } | undefined
  const bucketNow = () => Math.floor(clock.nowSecs() / BUCKET_SECS)

  async function make(bucket: number): Promise<string> {
    const sealed = await sealer.seal(SYSTEM_TENANT_ID, CONTEXT, Buffer.from(String(bucket)))
    return Buffer.from(sealed).toString('base64url')
  }

  return {
    current() {
      const bucket = bucketNow()
      if (cached?.bucket === bucket) return cached.nonce
      const fresh = { bucket, nonce: make(bucket) }
      fresh.nonce.catch(() => {
        if (cached === fresh) cached = undefined
      })
      cached = fresh
      return fresh.nonce
    },
    async isFresh(nonce) {
      if (nonce.length > LENGTH_MAX || !/^[A-Za-z0-9_-]+$/.test(nonce)) return false
      const bucket = await open(nonce)
      if (bucket === null) return false
      const age = bucketNow() - bucket
      return age >= -BUCKETS_AHEAD && age <= BUCKETS_ACCEPTED
    },
  }

  async function open(nonce: string): Promise<number | null> {
    try {
      const sealed = Buffer.from(nonce, 'base64url')
      const bucket = await sealer.open(SYSTEM_TENANT_ID, CONTEXT, sealed)
      return Number(Buffer.from(bucket).toString('utf8'))
    } catch {
      // Forged, or encrypted with a deleted key: the client gets a new nonce.
      return null
    }
  }
}
