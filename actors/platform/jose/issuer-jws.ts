/** JWTs of other issuers, with the algorithms that they use (RFC 7515, RFC 7518, RFC 8725). jose verifies them. */
import { compactVerify, type CryptoKey, errors, importJWK } from 'jose'
import { ISSUER_ALGORITHMS } from '../../domain/entities/trusted-issuer.js'
import { hasPrivateMember } from './external-jwk.js'
import { JWS_CHARACTERS_MAX, parseJwsObject } from './external-jws.js'

const COMPACT = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+$/
/** Keys of issuers that state no `alg`: RSA keys serve both. */
const ALGORITHMS_OF: Readonly<Record<string, readonly IssuerAlgorithm[]>> = {
  'EC P-256': ['ES256'],
  'OKP Ed25519': ['EdDSA'],
  'RSA undefined': ['RS256', 'PS256'],
}

export type IssuerAlgorithm = (typeof ISSUER_ALGORITHMS)[number]

/** A token of another issuer. Nothing in it is trustworthy before `isSignedByIssuer`. */
export type IssuerJws = {
  readonly alg: IssuerAlgorithm
  readonly kid: string | undefined
  readonly typ: unknown
  readonly claims: Readonly<Record<string, unknown>>
  readonly compact: string
}

export type IssuerKey = Readonly<Partial<Record<IssuerAlgorithm, CryptoKey>>>

/** Reads a token. The step that fails, with its reason, for a token that is ambiguous or has a foreign algorithm. */
export function readIssuerJws(
  compact: string,
): IssuerJws | { readonly step: 'size' | 'parse' | 'algorithm'; readonly detail: string } {
  if (compact.length > JWS_CHARACTERS_MAX)
    return { step: 'size', detail: `the token has more than ${JWS_CHARACTERS_MAX} characters` }
  const read = readCompactJwt(compact)
  if (typeof read === 'string') return { step: 'parse', detail: read }
  const { alg, ...parts } = read
  return isAlgorithm(alg)
    ? { alg, ...parts, compact }
    : { step: 'algorithm', detail: `alg must be one of ${ISSUER_ALGORITHMS.join(', ')}` }
}

/** The parts of a compact JWT, or why it is ambiguous. */
export function readCompactJwt(
  compact: string,
): (Pick<IssuerJws, 'kid' | 'typ' | 'claims'> & { readonly alg: unknown }) | string {
  const [, head, payload] = COMPACT.exec(compact) ?? []
  const header = head && parseJwsObject(head)
  const claims = payload && parseJwsObject(payload)
  if (!header || !claims) return 'it is not a well-formed signed JWT'
  const { alg, kid, typ } = header
  if ('crit' in header) return 'crit is not supported'
  if (kid !== undefined && typeof kid !== 'string') return 'kid must be a text'
  return { alg, kid, typ, claims }
}

/** The media type of an ID-JAG, with or without its prefix (RFC 7515 section 4.1.9). */
const ID_JAG_TYPE = /^(?:application\/)?oauth-id-jag\+jwt$/i

/** True for the type of an identity assertion authorization grant (ID-JAG). */
export const isIdJagType = (typ: unknown): boolean =>
  typeof typ === 'string' && ID_JAG_TYPE.test(typ)

/** True for a token that speaks for a person. Its type says it, and its issuer must be trusted for that. */
export function isIdentityAssertion(compact: string): boolean {
  const read = compact.length <= JWS_CHARACTERS_MAX ? readCompactJwt(compact) : ''
  return typeof read !== 'string' && isIdJagType(read.typ)
}

/** True if the key made the signature with the algorithm of the header. jose refuses RSA keys of less than 2048 bits. */
export async function isSignedByIssuer(
  { alg, compact }: IssuerJws,
  keys: IssuerKey,
): Promise<boolean> {
  const key = keys[alg]
  if (key === undefined) return false
  try {
    await compactVerify(compact, key, { algorithms: [alg] })
    return true
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof TypeError) return false
    throw error
  }
}

/** Imports a public key for the algorithms that it can have. Undefined for private, symmetric and other keys. */
export async function importIssuerKey(
  jwk: Readonly<Record<string, unknown>>,
): Promise<IssuerKey | undefined> {
  if (hasPrivateMember(jwk)) return undefined
  const { kty, crv, alg } = jwk
  const possible = ALGORITHMS_OF[`${String(kty)} ${String(crv)}`] ?? []
  const chosen = possible.filter(
    (one) => alg === undefined || alg === one || (alg === 'Ed25519' && one === 'EdDSA'),
  )
  if (chosen.length === 0) return undefined
  try {
    const imported = await Promise.all(
      chosen.map(async (one) => [one, await importJWK({ ...jwk, alg: one }, one)] as const),
    )
    return Object.fromEntries(imported) as IssuerKey
  } catch {
    return undefined
  }
}

function isAlgorithm(alg: unknown): alg is IssuerAlgorithm {
  return typeof alg === 'string' && (ISSUER_ALGORITHMS as readonly string[]).includes(alg)
}
