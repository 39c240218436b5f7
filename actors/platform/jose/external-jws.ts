/**
 * JWTs of others in compact form: client assertions, proofs, hints (RFC 7515 section 3.1, RFC 7519, RFC 8725). jose
 * verifies them. It accepts several spellings of one token, duplicate members and any size, so these are refused first.
 */
import { compactVerify, errors } from 'jose'
import { PROOF_ALGORITHMS, type ProofAlgorithm } from '../../oauth/tokens/protocol.js'
import type { ImportedKey } from './external-jwk.js'
import { parseStrictJson } from './strict-json.js'

/** Longer tokens are refused before they are parsed. In characters. */
export const JWS_CHARACTERS_MAX = 16_384
const JSON_DEPTH_MAX = 16
const KID_CHARACTERS_MAX = 128
/** Both algorithms have signatures of 64 bytes, whose last character carries two bits. */
const COMPACT = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]{85}[AQgw]$/
/** `Ed25519` (RFC 9864) and `EdDSA` (RFC 8037) are two names of one algorithm. */
const NAMES = { ES256: ['ES256'], EdDSA: ['EdDSA', 'Ed25519'] }

type JwsHeader = {
  readonly alg: ProofAlgorithm
  readonly typ: string | undefined
  readonly kid: string | undefined
  /** For proofs that carry their key (RFC 9449 section 4.2). Everything else ignores it. */
  readonly jwk: unknown
  /** True if it has a certificate or trust chain, for proofs that must have one key. */
  readonly hasChain: boolean
}

/** A token of another party. Nothing in it is trustworthy before `isSignedBy`. */
export type ExternalJws = {
  readonly header: JwsHeader
  readonly claims: Readonly<Record<string, unknown>>
  readonly compact: string
}

/**
 * Reads a compact JWT. Undefined for every ambiguous form: padding, stray bits, duplicate members, unknown algorithms.
 * Header members that it does not know are ignored, unless `crit` names them (RFC 7515 sections 4 and 4.1.11).
 */
export function readJws(compact: string): ExternalJws | undefined {
  if (compact.length > JWS_CHARACTERS_MAX) return undefined
  const [, head, payload] = COMPACT.exec(compact) ?? []
  const header = head && readHeader(parseJwsObject(head))
  const claims = payload && parseJwsObject(payload)
  return header && claims ? { header, claims, compact } : undefined
}

/** True if the key made the signature with the key's own algorithm. */
export async function isSignedBy(
  { compact }: ExternalJws,
  { algorithm, publicKey }: Pick<ImportedKey, 'algorithm' | 'publicKey'>,
): Promise<boolean> {
  try {
    await compactVerify(compact, publicKey, { algorithms: NAMES[algorithm] })
    return true
  } catch (error) {
    if (error instanceof errors.JOSEError) return false
    throw error
  }
}

/**
 * True if the header has the expected type: null is absent or `JWT`. The prefix `application/` is optional and the case
 * is ignored (RFC 7515 section 4.1.9).
 */
export function hasType({ header: { typ } }: ExternalJws, expected: string | null): boolean {
  const stated = typ?.toLowerCase().replace(/^application\//, '')
  return expected === null
    ? stated === undefined || stated === 'jwt'
    : stated === expected.toLowerCase()
}

function readHeader(header: Readonly<Record<string, unknown>> | undefined): JwsHeader | undefined {
  // The service understands no extension, so a critical one is refused, also b64, which jose understands.
  if (header === undefined || 'crit' in header) return undefined
  const { alg, typ, kid, jwk, x5c, trust_chain: trustChain } = header
  if (!isProofAlgorithm(alg)) return undefined
  if (typ !== undefined && typeof typ !== 'string') return undefined
  if (kid !== undefined && !isKid(kid)) return undefined
  return { alg, typ, kid, jwk, hasChain: x5c !== undefined || trustChain !== undefined }
}

function isProofAlgorithm(alg: unknown): alg is ProofAlgorithm {
  return typeof alg === 'string' && (PROOF_ALGORITHMS as readonly string[]).includes(alg)
}

/** A `kid` is only looked up in memory. The limits keep long or unprintable values out of logs. */
function isKid(kid: unknown): kid is string {
  return typeof kid === 'string' && kid.length <= KID_CHARACTERS_MAX && /^[!-~]+$/.test(kid)
}

/** Seconds since 1970, possibly with a fraction (RFC 7519 section 2). JSON also allows -1 and 1e400. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
}

/** Why the optional times of a proof forbid its use now (RFC 7519 sections 4.1.4 and 4.1.5). Null if they permit it. */
export function untimely(
  { exp, nbf }: Readonly<Record<string, unknown>>,
  nowSecs: number,
  aheadSecsMax: number,
): 'the proof has expired' | 'the proof is not valid yet' | undefined {
  if (exp !== undefined && (!isTime(exp) || exp <= nowSecs)) return 'the proof has expired'
  const isEarly = nbf !== undefined && (!isTime(nbf) || nbf > nowSecs + aheadSecsMax)
  return isEarly ? 'the proof is not valid yet' : undefined
}

/** The object in canonical base64url, without duplicate members: jose ignores both. */
export function parseJwsObject(text: string): Readonly<Record<string, unknown>> | undefined {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.toString('base64url') !== text) return undefined
  const value = parseStrictJson(bytes, JSON_DEPTH_MAX)
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}
