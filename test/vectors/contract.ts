/** The published test vectors, read from their file, for implementations in other languages. */
import { readFileSync } from 'node:fs'

/** From dist/test/vectors to the data next to the source. */
const DATA = new URL('../../../test/vectors/contract.json', import.meta.url)

export type ContractVectors = {
  readonly key: {
    readonly secret_hex: string
    readonly public_key: string
    readonly did: string
    readonly fingerprint: string
  }
  readonly issuer: string
  readonly tenant_id: string
  readonly ownership: {
    readonly anchor_type: string
    readonly bytes: number
    readonly sha256: string
    readonly key_ownership_proof: string
  }
  readonly challenge: {
    readonly agent_id: string
    readonly challenge_id: string
    readonly nonce: string
    readonly expires_at: number
    readonly bytes: number
    readonly sha256: string
    readonly signature: string
  }
  readonly work: {
    readonly challenge_token: string
    readonly smallest: readonly {
      readonly difficulty_bits: number
      readonly nonce: string
      readonly digest_prefix: string
    }[]
  }
  readonly webhook: {
    readonly secret: string
    readonly body: string
    readonly suite: string
    readonly timestamp: number
    readonly max_age: number
    readonly delivery_id: string
    readonly event_type: string
    readonly derived_key_hex: string
    readonly signature_256: string
  }
}

export const contract = JSON.parse(readFileSync(DATA, 'utf8')) as ContractVectors
