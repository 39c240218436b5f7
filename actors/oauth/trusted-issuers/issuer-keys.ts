/**
 * Keys of trusted issuers: stated by the tenant, or fetched from where the tenant or the metadata of the issuer says. What a
 * token says about its keys (`jku`, `jwk`, `x5c`) is never followed.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { TrustedIssuer } from '../../domain/entities/trusted-issuer.js'
import { ttlCache } from '../../platform/batching/ttl-cache.js'
import { atMostEvery } from '../../../runtime/kernel/fairness/at-most-every.js'
import { importIssuerKey, type IssuerKey } from '../../platform/jose/issuer-jws.js'
import type { RemoteDocuments } from '../../platform/outbound-http/remote-documents.js'

const KEYS_MAX = 100
/** Tokens with unknown keys cause a fetch at most so often. */
const REFRESH_MS_MIN = 60_000
/** Keys in memory, of the issuers of all tenants. */
const IMPORTED_MAX = 5_000

type Members = Readonly<Record<string, unknown>>
export type KeySet = readonly (IssuerKey & { readonly kid: string | undefined })[]
export type KeysFound = KeySet | { readonly unreachable: string }

export interface IssuerKeys {
  /** @param refresh fetches again, for a token with an unknown key. */
  of(issuer: TrustedIssuer, refresh: boolean): Promise<KeysFound>
}

export function issuerKeys(documents: Pick<RemoteDocuments, 'get'>, clock: Clock): IssuerKeys {
  /** What was found a moment ago, so that many tokens cost one statement. */
  const known = ttlCache<KeysFound>(clock)
  /** Imported sets, by the document from which they come. */
  const imported = new Map<string, { readonly keys: Promise<KeySet>; readonly count: number }>()
  let held = 0
  const mayRefresh = atMostEvery(REFRESH_MS_MIN, clock)

  function importOnce(id: string, set: Members, use: string): Promise<KeySet> {
    const known = imported.get(id)
    if (known !== undefined) return known.keys
    const count = 1 + (set['keys'] as readonly unknown[]).length
    for (const [oldest, { count: ended }] of imported) {
      if (held + count <= IMPORTED_MAX) break
      imported.delete(oldest)
      held -= ended
    }
    held += count
    const keys = importSet(set, use)
    imported.set(id, { keys, count })
    return keys
  }

  async function get(
    url: string,
    refresh: boolean,
    check: (document: unknown) => string | undefined,
  ) {
    return documents.get({ kind: 'keys', url, check, stale: true, refresh })
  }

  async function addressOf(
    issuer: TrustedIssuer,
  ): Promise<string | { readonly unreachable: string }> {
    const stated = issuer.spiffe?.bundle_endpoint_url ?? issuer.jwksUri
    if (stated !== null) return stated
    const url = `${issuer.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
    const found = await get(url, false, (document) => metadataFault(document, issuer.issuer))
    return found.tag === 'found'
      ? (found.document['jwks_uri'] as string)
      : { unreachable: `${url}: ${found.fault}` }
  }

  async function find(issuer: TrustedIssuer, refresh: boolean): Promise<KeysFound> {
    const use = issuer.kind === 'spiffe' ? 'jwt-svid' : 'sig'
    if (issuer.jwks !== null)
      return importOnce(`${issuer.id} ${issuer.updatedAt.getTime()}`, issuer.jwks, use)
    const url = await addressOf(issuer)
    if (typeof url !== 'string') return url
    const found = await get(url, refresh, keySetFault)
    if (found.tag !== 'found') return { unreachable: `${url}: ${found.fault}` }
    return importOnce(`${use} ${found.sha256}`, found.document, use)
  }

  return {
    of(issuer, refresh) {
      const key = `${issuer.id} ${issuer.updatedAt.getTime()}`
      const again = refresh && mayRefresh(key)
      if (again) known.invalidate([issuer.id])
      return known.get(key, [issuer.id], () => find(issuer, again))
    },
  }
}

/** Why a document is no key set (RFC 7517 section 5). Undefined if it is one. */
export function keySetFault(document: unknown): string | undefined {
  const { keys } = (document ?? {}) as { readonly keys?: unknown }
  if (!Array.isArray(keys)) return 'the document has no keys'
  return keys.length > KEYS_MAX ? `the document has more than ${KEYS_MAX} keys` : undefined
}

function metadataFault(document: unknown, issuer: string): string | undefined {
  const { issuer: stated, jwks_uri: uri } = (document ?? {}) as Members
  // OpenID Connect Discovery section 4.3.
  if (stated !== issuer) return 'issuer of the metadata differs from the issuer'
  return typeof uri === 'string' && URL.canParse(uri) ? undefined : 'jwks_uri is missing'
}

/** Skips keys of other types and uses, and keys that cannot be imported: a set may contain any (RFC 7517 section 5). */
async function importSet({ keys }: Members, use: string): Promise<KeySet> {
  const found = await Promise.all(
    (keys as readonly Members[]).map(async (jwk) => {
      // A key of a SPIFFE bundle says its use. Others may leave it out.
      const stated = typeof jwk === 'object' && jwk !== null ? jwk['use'] : null
      const isOfUse = stated === use || (stated === undefined && use === 'sig')
      const key = isOfUse ? await importIssuerKey({ ...jwk, use: undefined }) : undefined
      return key && { ...key, kid: typeof jwk['kid'] === 'string' ? jwk['kid'] : undefined }
    }),
  )
  return found.filter((key) => key !== undefined)
}
