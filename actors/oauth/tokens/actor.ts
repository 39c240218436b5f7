/** Issues, verifies, introspects and revokes tokens. See docs/concepts/tokens.md. */
import type { VaultExports } from '../../vault/vault/protocol.js'
import type { Registry } from 'prom-client'
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { ApiResource } from '../../domain/entities/api-resource.js'
import type { TokenStatus } from '../../../storage/oauth/token-sessions.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { Documents } from '../../platform/outbound-http/documents.js'
import { signingKeys, type SigningKeysProtocol } from '../signing-keys/protocol.js'
import { consoleClientOf } from '../clients/console-client.js'
import { CONSOLE_CLIENT_ID } from '../../domain/people/console-client.js'
import { grantAgent } from './grants/agent-login.js'
import { grantOrganization } from './grants/organization-token.js'
import { grantCode } from './grants/authorization-code.js'
import { readAssertion } from './clients/client-assertion.js'
import { grantBackchannel } from './grants/device-and-ciba.js'
import { createAccessPolicies, DENIED, PolicyDenied } from '../access-policies/enforcement.js'
import { createApiKeyVerifier } from './verify/api-key-verifier.js'
import { createAccessTokenVerifier } from './verify/access-token-verifier.js'
import { ttlCache } from '../../platform/batching/ttl-cache.js'
import {
  type ClientAuthentication,
  identifiesClient,
  readClientAuthentication,
  triesBasic,
} from './clients/client-authentication.js'
import { grantClientCredentials } from './grants/client-credentials.js'
import { type Client, createClients, type KnownClient, publicClientId } from './clients/clients.js'
import { grantDelegated } from './grants/delegation.js'
import { describeRepeated, type OAuthForm, readForm } from './form.js'
import { resourceLookup } from './issue/api-resource.js'
import { batchedLookups } from './issue/batched-lookups.js'
import { type Inspector, inspectorOf, introspect } from './verify/introspection.js'
import { tokenMetrics } from './metrics.js'
import type { MetadataClients } from '../client-id-metadata/metadata-clients.js'
import type { TenancySettings } from '../../domain/tenants/resolution.js'
import { asId } from '../../domain/ids.js'
import { tenants, type TenantsProtocol } from '../../identity/tenants/protocol.js'
import { rateLimits, type RateLimitsProtocol } from '../../operations/rate-limits/protocol.js'
import { authenticateMetadataClient, presentedUrl } from './clients/metadata-client.js'
import { clientQuotas, metered } from './clients/client-quotas.js'
import { createDpopVerifier } from './verify/dpop-verifier.js'
import { createDpopNonces } from './verify/dpop-nonces.js'
import {
  GRANT_TYPES,
  type GrantType,
  INTROSPECTION_SCOPE,
  PRE_AUTHORIZED_CODE,
  type PolicyRefusal,
  type Issued,
  type OAuthRefused,
  type ProofRefused,
  type SecretIssued,
  TOKEN_EXCHANGE,
  type TokenRequest,
  type TokensProtocol,
  tokens,
} from './protocol.js'
import { grantPreAuthorized } from './grants/pre-authorized-code.js'
import { grantRefresh } from './grants/refresh-token.js'
import {
  refusedClient,
  type Requester,
  refuse,
  refusedRequester,
  refuseScope,
  whyOf,
} from './refusals.js'
import { revoke } from './verify/revocation.js'
import type { DpopSettings, JwtSettings, RefreshFamilyCacheSettings } from './settings.js'
import { DeadFamilies } from './grants/dead-families.js'
import { PreparedGrantsCache } from './issue/prepared-grants-cache.js'
import { groupCommit } from '../../platform/batching/group-commit.js'
import { grantExchange } from './grants/token-exchange.js'
import { tokenSigner } from './issue/token-signer.js'

/** Parameters whose values can be used only once. */
const SINGLE_USE = new Set([
  'refresh_token',
  'code',
  'device_code',
  'auth_req_id',
  'pre-authorized_code',
])
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const CIBA = 'urn:openid:params:grant-type:ciba'
/** Grants without user interaction, which cannot grant authorization_details. */
const WITHOUT_DETAILS: ReadonlySet<GrantType> = new Set(['client_credentials', TOKEN_EXCHANGE])
const ACCESS_SCHEME_NAME = /^(bearer|dpop)( |$)/i
const ACCESS_SCHEME = /^(bearer|dpop) +([A-Za-z0-9._~+/-]+=*)$/i

export type TokensNeeds = {
  readonly keys: ActorRef<SigningKeysProtocol>
  /** Absent without rate limits. */
  readonly throttle?: ActorRef<RateLimitsProtocol> | undefined
  readonly database: Database
  readonly coordination: Pick<Coordination, 'once'>
  readonly sealer: Sealer
  /** Fetches the `jwks_uri` of clients. */
  readonly documents: Pick<Documents, 'fetch'>
  readonly clock: Clock
  readonly random: Random
  readonly registry: Registry
  /** `oidc.issuer_url`, exactly as in tokens. */
  readonly issuer: string
  readonly jwt: JwtSettings
  readonly dpop: DpopSettings
  /** Default: off. */
  readonly refreshFamilyCache?: RefreshFamilyCacheSettings | undefined
  /** The tenant of a request by a client that its metadata document identifies. */
  readonly tenants: ActorRef<TenantsProtocol>
  /** Clients that are identified by their metadata documents. Absent if there are none. */
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
  /** Exports vault credentials by token exchange. */
  readonly vault: Pick<VaultExports, 'export'>
}

type Grant = (
  client: Client,
  form: OAuthForm,
  jkt: string | null,
  context: MessageContext,
  address: string,
) => Promise<Issued | SecretIssued | OAuthRefused | ProofRefused>

export const tokensActor = defineActor<TokensProtocol, TokensNeeds>({
  address: tokens,
  asks: { keys: signingKeys, tenants, throttle: rateLimits },
  mailbox: { capacity: 8192, inflightMax: 1024 },
  lane: {
    grantDelegated: ({ delegationId }) => delegationId,
    // Concurrent uses of one refresh token or code are serialised here. Across processes the row decides.
    issue: ({ form }) => form.find(([name]) => SINGLE_USE.has(name))?.[1],
  },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, random, issuer, dpop } = needs
    const statuses = ttlCache<TokenStatus>(clock)
    const knownClients = ttlCache<KnownClient>(clock)
    const metrics = tokenMetrics(needs.registry)
    const nonces = createDpopNonces({ clock, sealer: needs.sealer })
    const dpopVerifier = createDpopVerifier({
      clock,
      coordination: needs.coordination,
      nonces,
      settings: dpop,
    })
    const signer = tokenSigner({ keys: needs.keys, clock, random, issuer, database })
    const origins = ttlCache<boolean>(clock)
    const knownResources = ttlCache<ApiResource>(clock)
    const clients = createClients({ ...needs, memory: knownClients, origins })
    const quotas = clientQuotas(needs.throttle)
    const accessPolicies = needs.accessControl ? createAccessPolicies(needs) : null
    const apiKeys = needs.apiKeys ? createApiKeyVerifier({ database, clock, issuer }) : null
    const verifier = createAccessTokenVerifier({
      apiKeys,
      keys: needs.keys,
      database,
      clock,
      issuer,
      dpopVerifier,
      statuses,
    })
    const invalidate = (ids: readonly string[] | 'all') => {
      statuses.invalidate(ids)
      knownClients.invalidate(ids)
      origins.invalidate(ids)
      knownResources.invalidate(ids)
      apiKeys?.invalidate(ids)
      accessPolicies?.invalidate(ids)
    }
    const issuing = {
      ...needs,
      signer,
      metrics,
      commits: groupCommit(database),
      preparedGrants: new PreparedGrantsCache(issuer),
      lookups: batchedLookups(database),
      deadFamilies: new DeadFamilies(needs.refreshFamilyCache),
      resources: resourceLookup(database, knownResources),
      verifier,
      invalidate,
    }

    type Issuing = typeof issuing
    const proofOf = (jkt: string | null) => ({ jkt, refusal: dpopVerifier.missing })
    /** The needs of a request: with access policies, a signer that refuses what they refuse. */
    const issuingFor = (address: string | null, { requestId }: MessageContext) =>
      accessPolicies === null || address === null
        ? issuing
        : { ...issuing, signer: accessPolicies.guard(signer, address, requestId) }

    const grantsWith = (issuing: Issuing): Record<GrantType, Grant> => ({
      authorization_code: (client, form, jkt, context) =>
        grantCode(issuing, client, form, proofOf(jkt), context),
      client_credentials: (client, form, jkt, context) =>
        grantClientCredentials(issuing, client, form, proofOf(jkt), context),
      refresh_token: (client, form, jkt, context) =>
        grantRefresh(issuing, client, form, proofOf(jkt), context),
      [TOKEN_EXCHANGE]: (...request) => exchangeToken(issuing, ...request),
      [DEVICE_CODE]: (client, form, jkt, context) =>
        grantBackchannel(issuing, DEVICE_CODE, client, form, proofOf(jkt), context),
      [CIBA]: (client, form, jkt, context) =>
        grantBackchannel(issuing, CIBA, client, form, proofOf(jkt), context),
      [PRE_AUTHORIZED_CODE]: (client, form, jkt, context) =>
        grantPreAuthorized(issuing, client, form, jkt, context),
    })
    const grants = grantsWith(issuing)

    function exchangeToken(
      issuing: Issuing,
      client: Client | null,
      form: OAuthForm,
      jkt: string | null,
      context: MessageContext,
      address: string,
    ): Promise<Issued | SecretIssued | OAuthRefused | ProofRefused> {
      const proof = { ...proofOf(jkt), address }
      return grantExchange(issuing, client, form, proof, context)
    }

    /** The client of a request. The request names no tenant, or the tenant of the client. */
    function clientOf(
      request: TokenRequest,
      form: OAuthForm,
      context: MessageContext,
    ): Client | OAuthRefused | Promise<Client | OAuthRefused> {
      const found = authenticated(request, form, context)
      const named = form.get('tenant_id')
      if (named === null) return found
      const orMisplaced = (client: Client | OAuthRefused) =>
        'kind' in client && client.kind === 'application' && client.row.tenantId !== asId(named)
          ? refuse(
              'invalid_request',
              'tenant_id is not the tenant of the client',
              'parameter_invalid',
            )
          : client
      return found instanceof Promise ? found.then(orMisplaced) : orMisplaced(found)
    }

    /** Synchronous for a cached client, which most requests have. */
    function authenticated(
      { authorization, httpUrl }: TokenRequest,
      form: OAuthForm,
      context: MessageContext,
    ): Client | OAuthRefused | Promise<Client | OAuthRefused> {
      const authentication = readClientAuthentication(authorization, form)
      if (authentication.method === 'refused')
        return refuse(
          authentication.error,
          authentication.description,
          authentication.reason,
          triesBasic(authorization),
        )
      const assertion =
        authentication.method === 'assertion'
          ? readAssertion(authentication.assertion, issuer, clock.nowSecs())
          : null
      const { documented } = needs
      const url = documented && presentedUrl(documented.metadataClients, authentication, assertion)
      if (documented !== undefined && url != null) {
        const { host } = new URL(httpUrl)
        return authenticateMetadataClient(
          { ...issuing, ...documented, tenants: needs.tenants },
          url,
          { presented: authentication, form, host },
          context,
        )
      }
      if (needs.console && authentication.clientId === CONSOLE_CLIENT_ID)
        return consoleClient(authentication, form)
      const orRefused = (client: Client | null) =>
        client ?? {
          ...refuse(
            'invalid_client',
            failureOf(authentication),
            'client_authentication_failed',
            triesBasic(authorization),
          ),
          requester: refusedClient(authentication, clients.whyRefused(authentication)),
        }
      const client = clients.authenticate(authentication)
      return client instanceof Promise ? client.then(orRefused) : orRefused(client)
    }

    async function consoleClient(
      { method }: ClientAuthentication,
      form: OAuthForm,
    ): Promise<Client | OAuthRefused> {
      const client = method === 'none' ? await consoleClientOf(issuing, form) : null
      return (
        client ??
        refuse('invalid_client', 'client authentication failed', 'client_authentication_failed')
      )
    }

    /** The fault in the content of an assertion. It never reveals whether the client or its key exists. */
    function failureOf(authentication: ClientAuthentication): string {
      const failed = 'client authentication failed'
      if (authentication.method !== 'assertion') return failed
      const read = readAssertion(authentication.assertion, issuer, clock.nowSecs())
      return 'fault' in read ? `${failed}, client_assertion: ${read.fault}` : failed
    }

    function needsProof(client: Client | null): boolean {
      return client?.kind === 'application' && client.row.dpopBoundAccessTokens
    }

    /** Verifies the DPoP proof of a request without an access token. */
    async function keyOf(
      { httpMethod, httpUrl }: TokenRequest,
      dpopProof: string,
    ): Promise<{ jkt: string } | ProofRefused> {
      const verified = await dpopVerifier.verify({
        proof: dpopProof,
        httpMethod,
        httpUrl,
        accessToken: null,
        boundTo: null,
      })
      return verified.tag === 'proven' ? { jkt: verified.jkt } : verified
    }

    function grantTypeOf({ grantType }: Requester): GrantType | OAuthRefused {
      if (grantType === null)
        return refuse('invalid_request', 'grant_type is missing', 'parameter_missing')
      const isOffered = grantType !== PRE_AUTHORIZED_CODE || needs.credentials
      if (isGrantType(grantType) && isOffered) return grantType
      return refuse(
        'unsupported_grant_type',
        'this grant type is not supported',
        'grant_type_unsupported',
      )
    }

    async function runGrant(
      request: TokenRequest,
      form: OAuthForm,
      requester: Requester,
      context: MessageContext,
    ): Promise<Issued | SecretIssued | OAuthRefused | ProofRefused> {
      const grantType = grantTypeOf(requester)
      // In a token exchange the actor token alone can identify the agent.
      const byActor = grantType === TOKEN_EXCHANGE && form.get('actor_token') !== null
      // OpenID4VCI section 6.1: a wallet may be unknown. Its code is what authorizes it.
      const mayBeUnknown =
        byActor || grantType === PRE_AUTHORIZED_CODE || typeof grantType === 'object'
      const found =
        mayBeUnknown && !identifiesClient(request.authorization, form)
          ? null
          : clientOf(request, form, context)
      const counted = await quotas.count(
        found instanceof Promise ? await found : found,
        { request, form, quota: 'token' },
        context,
      )
      if (counted.tag === 'oauth_refused') return counted
      const { client, windows } = counted
      requester.client = client
      const outcome =
        typeof grantType === 'object'
          ? grantType
          : await runCounted(request, form, { grantType, client }, context)
      return metered(outcome, windows)
    }

    /** A token request after client authentication. */
    async function runCounted(
      request: TokenRequest,
      form: OAuthForm,
      { grantType, client }: { readonly grantType: GrantType; readonly client: Client | null },
      context: MessageContext,
    ): Promise<Issued | SecretIssued | OAuthRefused | ProofRefused> {
      const { dpopProof, address } = request
      if (dpopProof === null && needsProof(client))
        return dpopVerifier.missing('this client needs a DPoP proof')
      const proof = dpopProof === null ? { jkt: null } : await keyOf(request, dpopProof)
      if ('tag' in proof) return proof
      // RFC 9396 section 6: refuse details that cannot be granted instead of ignoring them.
      if (WITHOUT_DETAILS.has(grantType) && form.get('authorization_details') !== null)
        return refuse(
          'invalid_authorization_details',
          'this grant does not support authorization_details',
          'details_unsupported',
        )
      const own = issuingFor(address, context)
      if (grantType === PRE_AUTHORIZED_CODE)
        return grantPreAuthorized(own, client, form, proof.jkt, context)
      if (client === null) return exchangeToken(own, null, form, proof.jkt, context, address)
      const granting = own === issuing ? grants : grantsWith(own)
      return granting[grantType](client, form, proof.jkt, context, address)
    }

    return {
      authenticate: (request, context) => verifier.authenticate(request, context),

      proveKey: (proof) => dpopVerifier.verify({ accessToken: null, boundTo: null, ...proof }),

      grantAgent: (message, context) =>
        grantAgent(issuingFor(message.address, context), message, context).catch(asRefusal),

      grantOrganization: (message, context) => grantOrganization(issuing, message, context),

      grantDelegated: (message, context) =>
        grantDelegated(issuingFor(message.address, context), message, context).catch(asRefusal),

      async issue(request, context) {
        const form = readForm(request.form)
        if ('repeated' in form)
          return refuse('invalid_request', describeRepeated(form), 'parameter_repeated')
        const requester: Requester = {
          grantType: form.get('grant_type'),
          client: null,
        }
        const outcome = await runGrant(request, form, requester, context).catch(asOAuthRefusal)
        if (outcome.tag !== 'oauth_refused' && outcome.tag !== 'proof_refused') return outcome
        const presented = readClientAuthentication(request.authorization, form)
        const sent = refusedRequester(requester, presented)
        const refused = 'requester' in outcome ? outcome.requester : undefined
        return { ...outcome, requester: { ...sent, ...(refused && whyOf(refused)) } }
      },

      async identifyClient(request, context) {
        const form = readForm(request.form)
        if ('repeated' in form)
          return refuse('invalid_request', describeRepeated(form), 'parameter_repeated')
        const found = await clientOf(request, form, context)
        const { quota } = request
        const counted = await quotas.count(found, { request, form, quota }, context)
        if (counted.tag === 'oauth_refused') return counted
        const { client, windows } = counted
        const { dpopProof } = request
        const proof = dpopProof === null ? { jkt: null } : await keyOf(request, dpopProof)
        if ('tag' in proof) return metered(proof, windows)
        const { kind, confidential, row } = client
        const documentSha256 = client.kind === 'application' ? client.documentSha256 : undefined
        const { jkt } = proof
        return metered(
          { tag: 'identified', kind, clientId: row.id, confidential, jkt, documentSha256 },
          windows,
        )
      },

      async introspect(request, context) {
        const form = readForm(request.form)
        if ('repeated' in form)
          return refuse('invalid_request', describeRepeated(form), 'parameter_repeated')
        const { authorization, dpopProof, httpMethod, httpUrl } = request
        const accessToken = ACCESS_SCHEME.exec(authorization ?? '')
        let inspector: Inspector | null
        if (accessToken === null && ACCESS_SCHEME_NAME.test(authorization ?? ''))
          return {
            tag: 'refused',
            error: 'unauthorized',
            description: 'the Authorization header contains no access token',
          }
        if (accessToken === null) {
          const found = await clientOf(request, form, context)
          // Resource servers introspect far more often than clients ask for tokens.
          const counted = await quotas.count(found, { request, form, quota: null }, context)
          if (counted.tag === 'oauth_refused') return counted
          inspector = inspectorOf(counted.client, publicClientId(counted.client))
          if (inspector === null)
            return refuse(
              'invalid_client',
              'a public client cannot introspect tokens',
              'client_method_wrong',
            )
        } else {
          const scheme = accessToken[1]!.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer'
          const token = accessToken[2]!
          const caller = await verifier.authenticate(
            { token, scheme, dpopProof, httpMethod, httpUrl, address: request.address },
            context,
          )
          if (caller.tag === 'refused') return caller
          if (!caller.principal.scopes.includes(INTROSPECTION_SCOPE))
            return refuseScope(INTROSPECTION_SCOPE)
          inspector = { tenantId: caller.principal.tenantId, clientId: null }
        }
        const token = form.get('token')
        if (token === null)
          return refuse('invalid_request', 'token is missing', 'parameter_missing')
        const answer = await introspect(
          { database, verifier, apiKeys, clock, issuer },
          inspector,
          token,
          context,
        )
        return { tag: 'introspected', answer }
      },

      async originListed({ origin, clientId }) {
        return { tag: (await clients.lists(origin, clientId)) ? 'listed' : 'not_listed' }
      },

      async revoke(request, context) {
        const form = readForm(request.form)
        if ('repeated' in form)
          return refuse('invalid_request', describeRepeated(form), 'parameter_repeated')
        const found = await clientOf(request, form, context)
        const counted = await quotas.count(found, { request, form, quota: 'token' }, context)
        if (counted.tag === 'oauth_refused') return counted
        const revoking = { database, verifier, clock, random, invalidate }
        const outcome = await revoke(revoking, counted.client, form, context)
        return metered(outcome, counted.windows)
      },

      async invalidate({ ids }) {
        invalidate(ids)
        return undefined
      },
    }
  },
})

/** @throws any other error unchanged. */
function asRefusal(error: unknown): PolicyRefusal {
  if (!(error instanceof PolicyDenied)) throw error
  return { tag: 'policy_denied' }
}

function asOAuthRefusal(error: unknown): OAuthRefused {
  if (!(error instanceof PolicyDenied)) throw error
  return refuse('policy_denied', DENIED, 'access_policy')
}

function isGrantType(text: string): text is GrantType {
  return (GRANT_TYPES as readonly string[]).includes(text)
}
