/** Verifies key proofs of the type `jwt` (OpenID4VCI appendix F.1). */
import { hasType, isSignedBy, isTime, readJws, untimely } from '../../platform/jose/external-jws.js'
import {
  hasPrivateMember,
  importPublicJwk,
  type ImportedKey,
} from '../../platform/jose/external-jwk.js'
import { BATCH_SIZE, KEY_PROOF_ALGORITHMS } from '../../domain/credentials/configurations.js'

const PROOF_TYPE = 'openid4vci-proof+jwt'
/** Accepted difference between `iat` and now, in seconds. */
const IAT_SECS_MAX = 300
const PROOF_CHARACTERS_MAX = 8_192

type ProofFault = { readonly fault: string }
type KeyProof = { readonly key: ImportedKey; readonly nonce: string }

type ProofDemands = {
  /** The credential issuer identifier. */
  readonly audience: string
  /** The `client_id` of the token. Null for a wallet without one, whose proof has no `iss`. */
  readonly clientId: string | null
  readonly nowSecs: number
}

/** The JWTs of the member `proofs`. */
export function readProofs(proofs: unknown): readonly string[] | ProofFault {
  if (typeof proofs !== 'object' || proofs === null || Array.isArray(proofs))
    return { fault: 'proofs is missing or not an object' }
  const types = Object.keys(proofs)
  if (types.length !== 1 || types[0] !== 'jwt')
    return { fault: 'proofs must have the member jwt alone' }
  const { jwt } = proofs as { jwt: unknown }
  if (!Array.isArray(jwt) || jwt.length === 0 || jwt.length > BATCH_SIZE)
    return { fault: `proofs.jwt must be an array of 1 to ${BATCH_SIZE} JWTs` }
  const isText = (one: unknown): one is string =>
    typeof one === 'string' && one.length <= PROOF_CHARACTERS_MAX
  return jwt.every(isText) ? jwt : { fault: 'proofs.jwt must hold compact JWTs' }
}

/** Verifies everything but the freshness of the nonce. */
export async function verifyProof(
  proof: string,
  demands: ProofDemands,
): Promise<KeyProof | ProofFault> {
  const jws = readJws(proof)
  if (jws === undefined) return { fault: 'a proof is not a compact JWT with alg and typ' }
  const { header, claims } = jws
  if (!hasType(jws, PROOF_TYPE)) return { fault: `the typ of a proof must be ${PROOF_TYPE}` }
  if (!(KEY_PROOF_ALGORITHMS as readonly string[]).includes(header.alg))
    return { fault: 'the alg of a proof is not supported' }
  if (header.kid !== undefined || header.jwk === undefined || header.hasChain)
    return { fault: 'a proof must carry its key in jwk alone, which is the only supported method' }
  if (hasPrivateMember(header.jwk)) return { fault: 'the jwk of a proof holds a private key' }
  const key = await importPublicJwk(header.jwk)
  if (key === undefined) return { fault: 'the jwk of a proof must be a P-256 or Ed25519 key' }
  if (!(await isSignedBy(jws, key))) return { fault: 'the signature of a proof is not valid' }
  const fault = faultOfClaims(claims, demands)
  if (fault !== undefined) return { fault }
  return { key, nonce: claims['nonce'] as string }
}

function faultOfClaims(
  claims: Readonly<Record<string, unknown>>,
  { audience, clientId, nowSecs }: ProofDemands,
): string | undefined {
  const { iss, aud, iat, nonce } = claims
  const audiences = Array.isArray(aud) ? aud : [aud]
  if (audiences.length !== 1 || audiences[0] !== audience)
    return 'the aud of a proof must be the credential issuer identifier'
  if (!isTime(iat)) return 'the iat of a proof must be a number of seconds'
  if (Math.abs(iat - nowSecs) > IAT_SECS_MAX)
    return `the iat of a proof is more than ${IAT_SECS_MAX} seconds away`
  if (clientId === null && iss !== undefined)
    return 'a proof of a wallet without a client_id must not have an iss'
  if (clientId !== null && iss !== undefined && iss !== clientId)
    return 'the iss of a proof must be the client_id'
  if (typeof nonce !== 'string' || nonce === '') return 'a proof has no nonce'
  return untimely(claims, nowSecs, IAT_SECS_MAX)
}
