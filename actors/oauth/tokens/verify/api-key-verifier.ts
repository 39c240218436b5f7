/** Verifies API keys that are presented as bearer tokens (docs/reference/oauth.md, API keys). */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import {
  type ApiKeyRow,
  findApiKeyOfSecret,
  markApiKeyUsed,
} from '../../../../storage/oauth/api-keys.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { isAddressWithin } from '../../../domain/commerce/networks.js'
import type { Principal } from '../../../domain/principal.js'
import { ttlCache } from '../../../platform/batching/ttl-cache.js'
import { isApiKey } from '../../../domain/oauth/api-key.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { creatorScopes } from '../../../platform/oauth/creator-scopes.js'
import type { Authenticate, Authenticated, Unauthenticated } from '../protocol.js'

/** A use is recorded at most this often. */
const USE_NOTED_EVERY_MS = 300_000
const NOTED_MAX = 20_000

export interface ApiKeyVerifier {
  authenticate(
    request: Authenticate,
    context: MessageContext,
  ): Promise<Authenticated | Unauthenticated>
  /** The key without the status cache. Null if it is not valid now. */
  inspect(
    key: string,
  ): Promise<{ readonly principal: Principal; readonly issuedAtSecs: number } | null>
  invalidate(ids: readonly string[] | 'all'): void
}

type ApiKeyVerifierNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly issuer: string
}

/** A key with the scopes that it has now. */
type ValidKey = ApiKeyRow & { readonly previous: boolean; readonly held: readonly string[] }

export function createApiKeyVerifier({
  database,
  clock,
  issuer,
}: ApiKeyVerifierNeeds): ApiKeyVerifier {
  /** By hash. A deleted key is refused here immediately, and within a second in other processes. */
  const known = ttlCache<ValidKey | undefined>(clock)
  /** When the last recorded use of a key was, in monotonic milliseconds. */
  const noted = new Map<string, number>()

  /** The secret tells the tenant, so the look-up crosses tenants. Not cancelled: callers share it. */
  const read = (hash: Uint8Array): Promise<ValidKey | undefined> =>
    database.system(async (tx) => {
      const row = await findApiKeyOfSecret(tx, hash)
      if (row === undefined) return undefined
      const scopes = await creatorScopes(tx, row.tenantId, row.maker)
      return { ...row, held: row.scopes.filter((scope) => scopes.includes(scope)) }
    })

  /** Checked at each use: a cached row may end while it is cached. */
  function isValid(key: ValidKey): boolean {
    const now = clock.now()
    if (key.expiresAt <= now) return false
    return !key.previous || (key.previousExpiresAt !== null && key.previousExpiresAt > now)
  }

  function noteUse({ tenantId, id }: ValidKey, { log }: MessageContext): void {
    const nowMs = clock.monotonicMs()
    const last = noted.get(id)
    if (last !== undefined && nowMs - last < USE_NOTED_EVERY_MS) return
    if (noted.size >= NOTED_MAX) noted.delete(noted.keys().next().value!)
    noted.set(id, nowMs)
    database
      .tenant(tenantId, (tx) => markApiKeyUsed(tx, tenantId, id, clock.now()))
      .catch((error: unknown) => {
        noted.delete(id)
        log.warn({ err: error }, 'the last use of an API key was not recorded')
      })
  }

  const principalOf = (key: ValidKey): Principal => ({
    subject: key.id,
    subjectType: 'service',
    tenantId: key.tenantId,
    organizationId: null,
    clientId: key.id,
    scopes: key.held,
    audience: [issuer],
    actors: [],
    delegationId: null,
    sessionId: null,
    acr: null,
    authTimeSecs: null,
    jkt: null,
    apiKey: true,
    tokenId: key.id,
    expiresAtSecs: Math.floor(key.expiresAt.getTime() / 1000),
  })

  return {
    async authenticate({ token, scheme, address, anyAudience }, context) {
      if (scheme !== 'Bearer' || anyAudience === true || !isApiKey(token))
        return refused('unauthorized', 'the token is not valid')
      const hash = sha256(token)
      const found = await known.get(
        Buffer.from(hash).toString('base64url'),
        [],
        () => read(hash),
        (row) => (row === undefined ? [] : [row.id, row.tenantId]),
      )
      if (found === undefined || !isValid(found))
        return refused('unauthorized', 'the API key is unknown, revoked or expired')
      if (found.held.length === 0)
        return refused('token_revoked', 'the creator of the API key no longer has its scopes')
      const { allowedAddresses } = found
      if (allowedAddresses.length > 0 && !isAddressWithin(address ?? '', allowedAddresses))
        return refused('policy_denied', 'the API key is not accepted from this address')
      noteUse(found, context)
      return { tag: 'authenticated', principal: principalOf(found) }
    },

    async inspect(key) {
      const found = await read(sha256(key))
      if (found === undefined || !isValid(found) || found.held.length === 0) return null
      const issuedAtSecs = Math.floor(found.createdAt.getTime() / 1000)
      return { principal: principalOf(found), issuedAtSecs }
    },

    invalidate: (ids) => known.invalidate(ids),
  }
}

function refused(error: Unauthenticated['error'], description: string): Unauthenticated {
  return { tag: 'refused', error, description }
}
