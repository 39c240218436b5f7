/** The claims of ID tokens (OpenID Connect Core sections 2 and 3.1.3.6). */
import { hash } from 'node:crypto'
import type { SigningAlgorithm } from '../../signing-keys/protocol.js'

export const ID_TOKEN_TYPE = 'JWT'

type IdTokenFacts = {
  readonly issuer: string
  readonly subject: string
  readonly tenantId: string
  readonly clientId: string
  readonly sessionId: string
  readonly nowSecs: number
  readonly lifetimeSecs: number
  readonly authTimeSecs: number
  /** Null in the ID token of a refresh (OpenID Connect Core section 12.2). */
  readonly nonce: string | null
  readonly acr: string
  readonly amr: readonly string[]
  readonly accessToken: string
  readonly algorithm: SigningAlgorithm
  /** User claims that the `claims` parameter requests for the ID token. */
  readonly personal: Readonly<Record<string, unknown>>
}

export function idTokenClaims(facts: IdTokenFacts): Readonly<Record<string, unknown>> {
  const { nowSecs } = facts
  return {
    // First, so that no requested claim replaces a protocol claim.
    ...facts.personal,
    iss: facts.issuer,
    sub: facts.subject,
    aud: facts.clientId,
    azp: facts.clientId,
    exp: nowSecs + facts.lifetimeSecs,
    iat: nowSecs,
    auth_time: facts.authTimeSecs,
    ...(facts.nonce === null ? {} : { nonce: facts.nonce }),
    acr: facts.acr,
    amr: facts.amr,
    at_hash: accessTokenLeftHash(facts.accessToken, facts.algorithm),
    sid: facts.sessionId,
    tenant_id: facts.tenantId,
  }
}

/** `at_hash`: left half of the SHA-256 (ES256, RS256) or SHA-512 (EdDSA) hash (OpenID Connect Core section 3.1.3.6). */
function accessTokenLeftHash(accessToken: string, algorithm: SigningAlgorithm): string {
  const digest = hash(algorithm === 'EdDSA' ? 'sha512' : 'sha256', accessToken, 'buffer')
  return digest.subarray(0, digest.length / 2).toString('base64url')
}
