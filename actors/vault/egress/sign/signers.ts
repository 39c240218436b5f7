/** The signers, by `auth_scheme`. A new scheme is a row. */
import type { Random } from '../../../../runtime/kernel/random.js'
import type { AssumedRoles } from './aws/assumed-role.js'
import { awsSigner } from './aws/aws-sigv4.js'
import { hmacSigner } from './hmac.js'
import { type HttpSigning, httpSignatureSigner } from './http-signature.js'
import type { Signers } from './signer.js'

type SignerNeeds = {
  readonly random: Random
  readonly roles: AssumedRoles
  readonly httpSigning: HttpSigning
}

export function createSigners({ random, roles, httpSigning }: SignerNeeds): Signers {
  return {
    aws_sigv4: awsSigner(roles),
    hmac: hmacSigner(random),
    http_signature: httpSignatureSigner(httpSigning, random),
  }
}
