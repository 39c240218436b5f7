/** Reads an `id_token_hint`. Expired ID tokens are accepted, forged ones are not. */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import { DependencyUnavailable } from '../../../../runtime/kernel/dependency.js'
import type { SigningKeysProtocol } from '../../signing-keys/protocol.js'
import { ID_TOKEN_TYPE } from '../issue/id-token.js'
import { ownPublicKey, verifyOwnJwt } from '../../../platform/jose/own-jwt.js'

type IdTokenHint = {
  readonly subject: string
  readonly clientId: string
  readonly sessionId: string
  readonly tenantId: string
  readonly claims: Readonly<Record<string, unknown>>
}

/** Null if the service did not sign the token, or its key no longer exists. */
export async function readIdTokenHint(
  keys: ActorRef<SigningKeysProtocol>,
  issuer: string,
  token: string,
  context: MessageContext,
): Promise<IdTokenHint | null> {
  const jwt = await verifyOwnJwt(token, ID_TOKEN_TYPE, async (kid) => {
    const found = await keys.verificationKey({ kid }, context)
    if (found.tag === 'keys_unavailable')
      throw new DependencyUnavailable('no verification keys are available')
    if (found.tag === 'unknown') return null
    return { algorithm: found.algorithm, publicKey: ownPublicKey(found.jwk) }
  })
  if (jwt === null) return null
  const { iss, sub, aud, sid, tenant_id: tenantId } = jwt.claims
  if (iss !== issuer || !isText(sub) || !isText(aud) || !isText(sid) || !isText(tenantId))
    return null
  return { subject: sub, clientId: aud, sessionId: sid, tenantId, claims: jwt.claims }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
