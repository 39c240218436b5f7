/** DPoP proofs: a client shows that it holds the key its tokens are bound to. RFC 9449. */
import { createHash } from 'node:crypto'
import { isSignedBy, readCompactJws, readPublicJwk, readSeconds } from './client-jws.js'

const ID_LENGTH_MAX = 256
/** `iat` may lie this far ahead of our clock (reliability.md, FAPI check-list). */
const AHEAD_SECS_MAX = 60

export type ProofClaims = {
  readonly jkt: string
  readonly id: string
  readonly issuedAtSecs: number
  readonly nonce: string | null
}

export type ProofContext = {
  readonly httpMethod: string
  readonly httpUrl: string
  readonly nowSecs: number
  /** `dpop.proof_max_age_secs`. */
  readonly ageSecsMax: number
  /** With an access token: the proof must name it, and be by the key it is bound to. */
  readonly accessToken: string | null
}

/**
 * The checks of RFC 9449 section 4.3 that need nothing but the proof. Single use of the id and the
 * server nonce are left to the caller.
 * @returns what is wrong, as a sentence for the client, instead of claims.
 */
export function readProof(
  proof: string,
  { httpMethod, httpUrl, nowSecs, ageSecsMax, accessToken }: ProofContext,
): ProofClaims | { readonly fault: string } {
  const jws = readCompactJws(proof)
  if (jws === null) return { fault: 'the proof is not one compact JWS' }
  if (typeof jws.header['typ'] !== 'string' || jws.header['typ'].toLowerCase() !== 'dpop+jwt')
    return { fault: 'typ must be dpop+jwt' }
  const key = readPublicJwk(jws.header['jwk'])
  if (key === null) return { fault: 'jwk must be a public P-256 or Ed25519 key' }
  if (!isSignedBy(jws, key)) return { fault: 'the signature does not fit alg and jwk' }

  const { jti, htm, htu, iat, nonce, ath, exp, nbf } = jws.payload
  if (typeof jti !== 'string' || jti === '' || jti.length > ID_LENGTH_MAX)
    return { fault: 'jti must be a string of 1 to 256 characters' }
  if (htm !== httpMethod) return { fault: 'htm is not the method of this request' }
  if (typeof htu !== 'string' || comparableUrl(htu) !== comparableUrl(httpUrl))
    return { fault: 'htu is not the address of this request' }
  const issuedAtSecs = readSeconds(iat)
  if (issuedAtSecs === null) return { fault: 'iat must be a number of seconds' }
  if (issuedAtSecs > nowSecs + AHEAD_SECS_MAX) return { fault: 'iat lies in the future' }
  if (issuedAtSecs < nowSecs - ageSecsMax) return { fault: 'the proof is too old' }
  if (!isAbsentOr(exp, (secs) => secs > nowSecs)) return { fault: 'the proof has expired' }
  if (!isAbsentOr(nbf, (secs) => secs <= nowSecs + AHEAD_SECS_MAX))
    return { fault: 'the proof is not valid yet' }
  if (nonce !== undefined && typeof nonce !== 'string') return { fault: 'nonce must be a string' }
  if (accessToken !== null && ath !== accessTokenHash(accessToken))
    return { fault: 'ath is not the hash of the access token' }
  return { jkt: key.thumbprint, id: jti, issuedAtSecs, nonce: nonce ?? null }
}

/** The `ath` claim: SHA-256 of the access token's ASCII, base64url (RFC 9449 section 4.2). */
export function accessTokenHash(accessToken: string): string {
  return createHash('sha256').update(accessToken, 'ascii').digest('base64url')
}

/** Scheme, host and path, normalised (RFC 9449 section 4.3 check 9); query and fragment do not count. */
function comparableUrl(url: string): string | null {
  if (!URL.canParse(url)) return null
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

function isAbsentOr(value: unknown, holds: (secs: number) => boolean): boolean {
  if (value === undefined) return true
  const secs = readSeconds(value)
  return secs !== null && holds(secs)
}
