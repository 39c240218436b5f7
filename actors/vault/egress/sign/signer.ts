/**
 * A signer adds a signature to a call, last, over exactly what goes on the wire. It removes what the caller sent in its
 * place: programs with a placeholder key sign too.
 */
import type { SignedScheme } from '../../../domain/vault/egress.js'
import type { SecretDocument } from '../../../domain/vault/secret-documents/documents.js'
import type { HeaderPair, ProxyOutcome } from '../protocol.js'

/** A call without a signature of the service. */
export type UnsignedCall = {
  readonly method: string
  readonly origin: string
  /** Host, with a port other than 443. */
  readonly host: string
  /** Path and query. */
  readonly path: string
  /** Sanitized; names are lower case. What the caller sent as a signature is among them. */
  readonly headers: readonly HeaderPair[]
  /** Null without a body, and where the signer does not read it. */
  readonly body: Uint8Array | null
  readonly now: Date
  readonly tenantId: string
  readonly credentialId: string
  /** Null or absent for another caller than an agent. */
  readonly agentId?: string | null | undefined
  /** What the upstream asked to be in the signature. */
  readonly nonce?: string | undefined
  /** The caller gets the signature and sends the call: `exact` where a person approved this call and no other. */
  readonly handedOut?: 'granted' | 'exact' | undefined
}

export type SignedCall = {
  readonly tag: 'signed'
  readonly path: string
  readonly headers: readonly HeaderPair[]
  /** The secret and what was made of it: redaction removes them from the response. */
  readonly secrets: readonly (string | Uint8Array)[]
}

/** A response of an upstream that may have refused a signature. */
export type RefusingAnswer = {
  readonly status: number
  /** As received. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The beginning of the body. */
  readonly text: string
}

export interface Signer<S extends SignedScheme = SignedScheme> {
  /** Whether the body is signed, and so read before the call. Default: it is. */
  readonly readsBody?: (
    call: Pick<UnsignedCall, 'headers' | 'origin'>,
    secret: SecretDocument<S>,
  ) => boolean
  readonly sign: (
    call: UnsignedCall,
    secret: SecretDocument<S>,
  ) => SignOutcome | Promise<SignOutcome>
  /** What a second try signs instead, after this answer. Null: the caller gets the answer. */
  readonly again?: (answer: RefusingAnswer, call: UnsignedCall) => Partial<UnsignedCall> | null
}

export type SignOutcome = SignedCall | { readonly tag: 'refused'; readonly outcome: ProxyOutcome }

export type Signers = { readonly [S in SignedScheme]: Signer<S> }

/** Names of signature fields that callers may send; `_` counts as `-` (CGI). */
const SIGNATURE_FIELD = /^(?:authorization|signature.*|content-digest|x-amz-.*)$/

/** The fields without a caller's signature, and without the fields that the signer sets. */
export function withoutSignature(
  headers: readonly HeaderPair[],
  own: Iterable<string> = [],
  signatureField = SIGNATURE_FIELD,
): readonly HeaderPair[] {
  const set = new Set([...own].map(plainName))
  return headers.filter(([name]) => {
    const plain = plainName(name)
    return !signatureField.test(plain) && !set.has(plain)
  })
}

const plainName = (name: string) => name.toLowerCase().replaceAll('_', '-')
