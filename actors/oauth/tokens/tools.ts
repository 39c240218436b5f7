/** What the handlers of the tokens actor share: verifiers, caches and the signer. */
import type { Registry } from 'prom-client'
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { ApiResource } from '../../domain/entities/api-resource.js'
import type { TokenStatus } from '../../../storage/oauth/token-sessions.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { TenancySettings } from '../../domain/tenants/resolution.js'
import type { TenantsProtocol } from '../../identity/users/tenants/protocol.js'
import type { RateLimitsProtocol } from '../../operations/rate-limits/protocol.js'
import { groupCommit } from '../../platform/batching/group-commit.js'
import { ttlCache } from '../../platform/batching/ttl-cache.js'
import type { Documents } from '../../platform/outbound-http/documents.js'
import type { VaultExports } from '../../vault/vault/protocol.js'
import { createAccessPolicies } from './issue/access-policies.js'
import type { MetadataClients } from './clients/metadata/metadata-clients.js'
import type { TrustedIssuersProtocol } from '../trusted-issuers/protocol.js'
import type { SigningKeysProtocol } from '../signing-keys/protocol.js'
import { clientQuotas } from './clients/client-quotas.js'
import { createClients, type KnownClient } from './clients/clients.js'
import { DeadFamilies } from './grants/dead-families.js'
import { resourceLookup } from './issue/api-resource.js'
import { batchedLookups } from './issue/batched-lookups.js'
import { PreparedGrantsCache } from './issue/prepared-grants-cache.js'
import { tokenSigner } from './issue/token-signer.js'
import { tokenMetrics } from './metrics.js'
import type { DpopSettings, JwtSettings, RefreshFamilyCacheSettings } from './settings.js'
import { createAccessTokenVerifier } from './verify/access-token-verifier.js'
import { createApiKeyVerifier } from './verify/api-key-verifier.js'
import { createDpopNonces } from './verify/dpop-nonces.js'
import { createDpopVerifier } from './verify/dpop-verifier.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

export type TokensNeeds = WriteNeeds & {
  readonly keys: ActorRef<SigningKeysProtocol>
  /** Absent without rate limits. */
  readonly throttle?: ActorRef<RateLimitsProtocol> | undefined
  readonly coordination: Pick<Coordination, 'once'>
  readonly sealer: Sealer
  /** Fetches the `jwks_uri` of clients. */
  readonly documents: Pick<Documents, 'fetch'>
  readonly registry: Registry
  /** `oidc.issuer_url`, exactly as in tokens. */
  readonly issuer: string
  readonly jwt: JwtSettings
  readonly dpop: DpopSettings
  /** Default: off. */
  readonly refreshFamilyCache?: RefreshFamilyCacheSettings | undefined
  /** The tenant of a request by a client that its metadata document identifies. */
  readonly tenants: ActorRef<TenantsProtocol>
  /** Clients that are identified by their metadata documents. Absent without such clients. */
  readonly documented?: {
    readonly tenancy: TenancySettings
    readonly metadataClients: MetadataClients
  }
  /** `console.enabled`: whether the console redeems its codes. */
  readonly console: boolean
  /** `credentials.enabled`: whether pre-authorized codes are redeemed. */
  readonly credentials: boolean
  /** `access_control.enabled`: whether access policies are evaluated. */
  readonly accessControl: boolean
  /** `api_keys.enabled`: whether API keys are accepted. */
  readonly apiKeys: boolean
  /** Absent: no token of another issuer is accepted. */
  readonly trustedIssuers?: ActorRef<TrustedIssuersProtocol> | undefined
  /** Exports vault credentials by token exchange. */
  readonly vault: Pick<VaultExports, 'export'>
}

export type TokenTools = ReturnType<typeof tokenTools>

export function tokenTools(needs: TokensNeeds) {
  const { database, clock, random, issuer, keys } = needs
  const statuses = ttlCache<TokenStatus>(clock)
  const knownClients = ttlCache<KnownClient>(clock)
  const origins = ttlCache<boolean>(clock)
  const knownResources = ttlCache<ApiResource>(clock)
  const accessPolicies = needs.accessControl ? createAccessPolicies(needs) : null
  const apiKeys = needs.apiKeys ? createApiKeyVerifier({ database, clock, issuer }) : null
  const dpopVerifier = createDpopVerifier({
    clock,
    coordination: needs.coordination,
    nonces: createDpopNonces({ clock, sealer: needs.sealer }),
    settings: needs.dpop,
  })
  const cached = [statuses, knownClients, origins, knownResources, apiKeys, accessPolicies]
  return {
    ...needs,
    dpopVerifier,
    accessPolicies,
    apiKeys,
    clients: createClients({ ...needs, memory: knownClients, origins }),
    quotas: clientQuotas(needs.throttle),
    signer: tokenSigner({ keys, clock, random, issuer, database }),
    metrics: tokenMetrics(needs.registry),
    commits: groupCommit(database),
    preparedGrants: new PreparedGrantsCache(issuer),
    lookups: batchedLookups(database),
    deadFamilies: new DeadFamilies(needs.refreshFamilyCache),
    resources: resourceLookup(database, knownResources),
    verifier: createAccessTokenVerifier({
      apiKeys,
      keys,
      database,
      clock,
      issuer,
      dpopVerifier,
      statuses,
    }),
    invalidate(ids: readonly string[] | 'all'): undefined {
      for (const each of cached) each?.invalidate(ids)
    },
  }
}

/** The tools of a request: with access policies, a signer that refuses what they refuse. */
export const guardedTools = (
  tools: TokenTools,
  address: string | null,
  { requestId }: MessageContext,
): TokenTools =>
  tools.accessPolicies === null || address === null
    ? tools
    : { ...tools, signer: tools.accessPolicies.guard(tools.signer, address, requestId) }
