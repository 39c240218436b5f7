/** The public keys of an application, from its `jwks` or its `jwks_uri` (RFC 7517). */
import type { ClientRow } from '../../../../storage/oauth/applications.js'
import type { Documents } from '../../../platform/outbound-http/documents.js'
import { isSignedByOneOf, type NamedKey } from './client-assertion.js'
import { readPublicJwk } from './client-key.js'
import type { DecodedJwt } from '../../../platform/jose/jwt.js'

/** Limit of keys to try, since each one costs a verification. */
const KEYS_READ_MAX = 20

/** True if one of the application's keys made the signature. */
export async function isSignedByApplication(
  documents: Pick<Documents, 'fetch'>,
  { jwks, jwksUri }: Pick<ClientRow, 'jwks' | 'jwksUri'>,
  jwt: DecodedJwt,
): Promise<boolean> {
  if (jwksUri === null) return isSignedByOneOf(jwt, namedKeys(jwks?.keys ?? []))
  if (isSignedByOneOf(jwt, await keysAt(documents, jwksUri, false))) return true
  // The client may have rotated its keys since the last fetch (OpenID Connect Core section 10.1.1).
  return isSignedByOneOf(jwt, await keysAt(documents, jwksUri, true))
}

/** Skips unsupported keys: a set may contain other types (RFC 7517 section 5). */
export function namedKeys(jwks: readonly unknown[]): readonly NamedKey[] {
  return jwks.slice(0, KEYS_READ_MAX).flatMap((jwk) => {
    const key = readPublicJwk(jwk)
    if (key === null) return []
    const { kid } = jwk as { readonly kid?: unknown }
    return [{ kid: typeof kid === 'string' ? kid : key.thumbprint, key }]
  })
}

/** The keys at `jwks_uri`, or an empty list if the fetch fails. */
async function keysAt(
  documents: Pick<Documents, 'fetch'>,
  jwksUri: string,
  refresh: boolean,
): Promise<readonly NamedKey[]> {
  const fetched = await documents.fetch(jwksUri, { refresh })
  if (fetched.tag === 'failed') return []
  const { keys } = (fetched.document ?? {}) as { readonly keys?: unknown }
  return Array.isArray(keys) ? namedKeys(keys) : []
}
