/** The actor of all placements in the bench. Its message is about as large as a route's. */
import { defineActor } from '../../runtime/kernel/actor.js'
import { address, type Ask } from '../../runtime/kernel/protocol.js'

export type Claim = { token: string; nonce: string; difficultyBits: number; tenantId: string }
export type Verdict = { tag: 'valid'; bits: number; tenantId: string }

export type VerifierProtocol = { verify: Ask<Claim, Verdict> }

export const verifier = address<VerifierProtocol>('verifier')

export const claim: Claim = {
  token: 'c2VhbGVkLWNoYWxsZW5nZS10b2tlbi1vZi1zb21lLWxlbmd0aA',
  nonce: '18446744073709551615',
  difficultyBits: 20,
  tenantId: '0192aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee',
}

export function verify({ difficultyBits, tenantId }: Claim): Verdict {
  return { tag: 'valid', bits: difficultyBits, tenantId }
}

export const verifierActor = defineActor<VerifierProtocol, Record<never, never>>({
  address: verifier,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 256 },
  create: () => ({ verify: async (message) => verify(message) }),
})
