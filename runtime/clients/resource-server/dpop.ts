/** DPoP proofs at a resource server (RFC 9449 sections 4.3, 7 and 9). */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { calculateJwkThumbprint, EmbeddedJWK, errors, jwtVerify } from 'jose'
import type { Clock } from '../../kernel/clock.js'

const PROOF_CHARACTERS_MAX = 8192
const ID_CHARACTERS_MAX = 256
const MEMORY_ENTRIES_MAX = 100_000
/** A nonce is accepted for one to two of these. */
const NONCE_SECS = 120
const NONCE_BYTES = 16

/** Remembers the ids of proofs. Several processes of one resource server need a common store. */
export interface ReplayStore {
  /**
   * Marks an id as used. False if it is already marked. Must be atomic.
   * @param ttlSecs how long the id must be remembered
   */
  once(id: string, ttlSecs: number): boolean | Promise<boolean>
}

/** A store in memory for one process. Throws when it is full of ids that still count. */
export function memoryReplayStore(clock: Clock): ReplayStore {
  const used = new Map<string, number>()
  return {
    once(id, ttlSecs) {
      const nowMs = clock.monotonicMs()
      if ((used.get(id) ?? 0) > nowMs) return false
      // Ids expire roughly in the order of their insertion.
      for (const [old, untilMs] of used) {
        if (untilMs > nowMs) break
        used.delete(old)
      }
      if (used.size >= MEMORY_ENTRIES_MAX) throw new Error('the replay store is full')
      used.delete(id)
      used.set(id, nowMs + ttlSecs * 1000)
      return true
    },
  }
}

/** Nonces without storage: a time slot and its MAC (RFC 9449 section 9). */
export type Nonces = { current(): string; isFresh(nonce: unknown): boolean }

/** @param secret shared by the processes of one resource server; default random. */
export function createNonces(clock: Clock, secret: Uint8Array = randomBytes(32)): Nonces {
  const nonceOf = (slot: number) =>
    createHmac('sha256', secret).update(`dpop-nonce ${slot}`).digest().subarray(0, NONCE_BYTES)
  const slotNow = () => Math.floor(clock.nowSecs() / NONCE_SECS)
  return {
    current: () => nonceOf(slotNow()).toString('base64url'),
    isFresh(nonce) {
      if (typeof nonce !== 'string') return false
      const given = Buffer.from(nonce, 'base64url')
      if (given.length !== NONCE_BYTES) return false
      const slot = slotNow()
      return [slot, slot - 1].some((one) => timingSafeEqual(given, nonceOf(one)))
    },
  }
}

export type ProofRequest = {
  readonly proof: string
  readonly method: string
  /** The URL of the request as clients see it, without query and fragment. */
  readonly url: string
  readonly accessToken: string
  /** The thumbprint in `cnf.jkt` of the token. */
  readonly jkt: string
}

export type ProofNeeds = {
  readonly clock: Clock
  readonly replays: ReplayStore
  readonly nonces: Nonces | null
  readonly algorithms: readonly string[]
  /** Age of a proof and tolerance for a clock that runs ahead, in seconds. */
  readonly maxAgeSecs: number
  readonly aheadSecs: number
}

export type ProofFault = {
  readonly error: 'invalid_dpop_proof' | 'use_dpop_nonce'
  readonly description: string
}

/** Undefined for a proof that holds. Marks its id as used only then. */
export async function proofFault(
  { clock, replays, nonces, algorithms, maxAgeSecs, aheadSecs }: ProofNeeds,
  { proof, method, url, accessToken, jkt }: ProofRequest,
): Promise<ProofFault | undefined> {
  if (proof.length > PROOF_CHARACTERS_MAX) return invalid('The proof is too long.')
  const verified = await verifiedProof(proof, algorithms, clock)
  if (verified === null)
    return invalid(
      'The proof must be a JWT of type dpop+jwt, signed with the key in its jwk member.',
    )
  const { payload, thumbprint } = verified
  if (thumbprint !== jkt)
    return invalid('The proof is signed with another key than the token is bound to.')
  const { jti, htm, htu, iat, ath, nonce } = payload
  if (typeof jti !== 'string' || jti === '' || jti.length > ID_CHARACTERS_MAX)
    return invalid('jti must be a string of 1 to 256 characters.')
  if (htm !== method) return invalid('htm must be the method of the request.')
  if (typeof htu !== 'string' || !isSameAddress(htu, url))
    return invalid('htu must be the URL of the request.')
  if (ath !== createHash('sha256').update(accessToken, 'ascii').digest('base64url'))
    return invalid('ath must be the hash of the access token.')
  const nowSecs = clock.nowSecs()
  if (typeof iat !== 'number' || iat > nowSecs + aheadSecs || iat < nowSecs - maxAgeSecs)
    return invalid('iat must be the current time.')
  if (nonces !== null && !nonces.isFresh(nonce))
    return {
      error: 'use_dpop_nonce',
      description: 'The proof must contain the nonce of DPoP-Nonce.',
    }
  // The last check, so that a proof that is refused for another reason stays unused.
  const id = createHash('sha256').update(`${thumbprint} ${jti}`).digest('base64url')
  const isFirst = await replays.once(id, maxAgeSecs + aheadSecs)
  return isFirst ? undefined : invalid('The proof was used before.')
}

async function verifiedProof(proof: string, algorithms: readonly string[], clock: Clock) {
  try {
    const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
      typ: 'dpop+jwt',
      algorithms: [...algorithms],
      currentDate: clock.now(),
    })
    return { payload, thumbprint: await calculateJwkThumbprint(protectedHeader.jwk!) }
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof TypeError) return null
    if (error instanceof DOMException || error instanceof SyntaxError) return null
    throw error
  }
}

/** Scheme, host and path, normalized, without query and fragment (RFC 9449 section 4.3, check 9). */
function isSameAddress(one: string, other: string): boolean {
  if (!URL.canParse(one) || !URL.canParse(other)) return false
  const [a, b] = [new URL(one), new URL(other)]
  return a.origin !== 'null' && a.origin === b.origin && a.pathname === b.pathname
}

const invalid = (description: string): ProofFault => ({ error: 'invalid_dpop_proof', description })
