/** Reads an `id_token_hint`. Expired ID tokens are accepted, forged ones are not. */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import { DependencyUnavailable } from '../../../../runtime/kernel/dependency.js'
import type { SigningKeysProtocol } from '../../signing-keys/protocol.js'
import { ID_TOKEN_TYPE } from '../issue/id-token.js'
import { decodeJwt, hasType, verifySignature } from '../../../platform/jose/jwt.js'

type IdTokenHint = {
  readonly subject: string
  readonly clientId: string
  readonly sessionId: string
  readonly tenantId: string
}

/** Null if the service did not sign the token, or its key no longer exists. */
export async function readIdTokenHint(
  keys: ActorRef<SigningKeysProtocol>,
  issuer: string,
  token: string,
  context: MessageContext,
): Promise<IdTokenHint | null> {
  const decoded = decodeJwt(token)
  if (decoded.tag === 'refused') return null
  const { header, claims } = decoded.jwt
  if (header.kid === undefined || !hasType(header, ID_TOKEN_TYPE)) return null
  const found = await keys.verificationKey({ kid: header.kid }, context)
  if (found.tag === 'keys_unavailable')
    throw new DependencyUnavailable('no verification keys are available')
  if (found.tag === 'unknown') return null
  const publicKey = createPublicKey({ key: { ...found.jwk } as JsonWebKey, format: 'jwk' })
  if (!verifySignature(decoded.jwt, { algorithm: found.algorithm, publicKey })) return null
  const { iss, sub, aud, sid, tenant_id: tenantId } = claims
  if (iss !== issuer || !isText(sub) || !isText(aud) || !isText(sid) || !isText(tenantId))
    return null
  return { subject: sub, clientId: aud, sessionId: sid, tenantId }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
