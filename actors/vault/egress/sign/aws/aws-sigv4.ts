/** `aws_sigv4`: requests to AWS and compatible services, signed with Signature Version 4. */
import type { AwsSigV4Secret } from '../../../../domain/vault/secret-documents/aws-sigv4.js'
import { invalid } from '../../admission/rules.js'
import type { Signer, SignOutcome, UnsignedCall } from '../signer.js'
import type { AssumedRoles } from './assumed-role.js'
import type { Keys } from './canonical.js'
import { scopeOf } from './scope.js'
import { isUnsigned, keysIn, signedAgain, signedCall } from './signed-call.js'

export function awsSigner(roles: AssumedRoles): Signer<'aws_sigv4'> {
  return {
    readsBody: (call, secret) => !isUnsigned(call, scopeOf(secret, call)),
    async sign(call, secret): Promise<SignOutcome> {
      const scope = scopeOf(secret, call)
      if (scope === null) return { tag: 'refused', outcome: NO_SCOPE }
      const keys = await keysOf(call, secret, roles)
      return 'tag' in keys ? keys : signedCall(call, keys, scope)
    },
    again: signedAgain,
  }
}

const NO_SCOPE = invalid(
  '/url',
  'Region and service are not in the credential, in the signature of the request, or in the host.',
)

/** Keys of the secret, or of the role that they assume. */
async function keysOf(
  call: UnsignedCall,
  secret: AwsSigV4Secret,
  roles: AssumedRoles,
): Promise<Keys | Extract<SignOutcome, { tag: 'refused' }>> {
  if (secret.role_arn !== undefined) return roles.keysOf(call, secret)
  return keysIn(secret)
}
