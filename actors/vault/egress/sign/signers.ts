/** The signers, by `auth_scheme`. A new scheme is a row. */
import type { Random } from '../../../../runtime/kernel/random.js'
import { hmacSigner } from './hmac.js'
import type { Signers } from './signer.js'

export function createSigners({ random }: { readonly random: Random }): Signers {
  return {
    hmac: hmacSigner(random),
  }
}
