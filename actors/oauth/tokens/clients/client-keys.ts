/** The public keys of an application, from its `jwks` or its `jwks_uri` (RFC 7517). */
import type { ClientRow } from '../../../../storage/oauth/applications.js'
import { importPublicJwk } from '../../../platform/jose/external-jwk.js'
import { type ExternalJws, isSignedBy } from '../../../platform/jose/external-jws.js'
import type { Documents } from '../../../platform/outbound-http/documents.js'

/** Limit of keys to try, since each one costs a verification. */
const KEYS_READ_MAX = 20

/** True if one of the application's keys made the signature. */
export async function isSignedByApplication(
  documents: Pick<Documents, 'fetch'>,
  { jwks, jwksUri }: Pick<ClientRow, 'jwks' | 'jwksUri'>,
  jws: ExternalJws,
): Promise<boolean> {
  if (jwksUri === null) return isSignedByOneOf(jws, jwks?.keys ?? [])
  if (await isSignedByOneOf(jws, await keysAt(documents, jwksUri, false))) return true
  // The client may have rotated its keys since the last fetch (OpenID Connect Core section 10.1.1).
  return isSignedByOneOf(jws, await keysAt(documents, jwksUri, true))
}

/**
 * True if one of the keys made the signature. A `kid` selects the key; a key without one has its thumbprint. Skips
 * unsupported keys: a set may contain other types (RFC 7517 section 5).
 */
export async function isSignedByOneOf(
  jws: ExternalJws,
  jwks: readonly unknown[],
): Promise<boolean> {
  const { kid } = jws.header
  for (const jwk of jwks.slice(0, KEYS_READ_MAX)) {
    const key = await importPublicJwk(jwk)
    if (key === undefined) continue
    const { kid: stated } = jwk as { readonly kid?: unknown }
    const own = typeof stated === 'string' ? stated : key.thumbprint
    if ((kid === undefined || kid === own) && (await isSignedBy(jws, key))) return true
  }
  return false
}

/** The keys at `jwks_uri`, or an empty list if the fetch fails. */
async function keysAt(
  documents: Pick<Documents, 'fetch'>,
  jwksUri: string,
  refresh: boolean,
): Promise<readonly unknown[]> {
  const fetched = await documents.fetch(jwksUri, { refresh })
  if (fetched.tag === 'failed') return []
  const { keys } = (fetched.document ?? {}) as { readonly keys?: unknown }
  return Array.isArray(keys) ? keys : []
}
