/** Issues, refreshes, judges and introspects tokens. decisions.md 7.2, 7.3, 7.6. */
import type { VaultExports } from '../../vault/vault/protocol.js'
import type { Registry } from 'prom-client'
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Standing } from '../../../storage/oauth/token-sessions.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { Documents } from '../../platform/outbound-http/documents.js'
import { keys, type KeysProtocol } from '../signing-keys/protocol.js'
import { grantAgent } from './grants/agent-login.js'
import { grantOrganization } from './grants/organization-token.js'
import { grantCode } from './grants/authorization-code.js'
import { readAssertion } from './clients/client-assertion.js'
import { grantBackchannel } from './grants/device-and-ciba.js'
import { createBearer } from './verify/access-token-verifier.js'
import { briefMemory } from '../../platform/batching/ttl-cache.js'
import {
  type PresentedClient,
  presentsClient,
  readClient,
  triesBasic,
} from './clients/client-authentication.js'
import { grantClientCredentials } from './grants/client-credentials.js'
import { type Client, createClients, type KnownClient } from './clients/clients.js'
import { grantDelegated } from './grants/delegation.js'
import { describeRepeated, type OAuthForm, readForm } from './form.js'
import { foundTogether } from './issue/batched-lookups.js'
import { inspectorOf, introspect } from './verify/introspection.js'
import { tokenMetrics } from './metrics.js'
import { proofJudge } from './verify/dpop-verifier.js'
import { proofNonces } from './verify/dpop-nonces.js'
import {
  GRANT_TYPES,
  type GrantType,
  INTROSPECTION_SCOPE,
  type Issued,
  type OAuthRefused,
  type ProofRefused,
  type SecretIssued,
  TOKEN_EXCHANGE,
  type TokenRequest,
  type TokensProtocol,
  tokens,
} from './protocol.js'
import { grantRefresh } from './grants/refresh-token.js'
import { type Asker, logRefusal, refuse, refuseScope } from './refusals.js'
import { revoke } from './verify/revocation.js'
import type { DpopSettings, JwtSettings } from './settings.js'
import { StandingGrants } from './issue/prepared-grants-cache.js'
import { tenantCommits } from '../../platform/batching/group-commit.js'
import { grantExchange } from './grants/token-exchange.js'
import { tokenSigner } from './issue/token-signer.js'

/** Parameters that name something that is used once. */
const SINGLE_USE = new Set(['refresh_token', 'code', 'device_code', 'auth_req_id'])
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const CIBA = 'urn:openid:params:grant-type:ciba'
/** Nobody is asked to allow anything in particular. */
const WITHOUT_DETAILS: ReadonlySet<GrantType> = new Set(['client_credentials', TOKEN_EXCHANGE])
const ACCESS_SCHEME_NAME = /^(bearer|dpop)( |$)/i
const ACCESS_SCHEME = /^(bearer|dpop) +([A-Za-z0-9._~+/-]+=*)$/i

export type TokensNeeds = {
  readonly keys: ActorRef<KeysProtocol>
  readonly database: Database
  readonly coordination: Pick<Coordination, 'once'>
  readonly sealer: Sealer
  /** Key sets of clients. */
  readonly documents: Pick<Documents, 'fetch'>
  readonly clock: Clock
  readonly random: Random
  readonly registry: Registry
  /** `oidc.issuer_url`, exactly as it stands in tokens. */
  readonly issuer: string
  readonly jwt: JwtSettings
  readonly dpop: DpopSettings
  /** What the vault hands out for a token. */
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
  asks: { keys },
  mailbox: { capacity: 8192, inflightMax: 1024 },
  lane: {
    grantDelegated: ({ delegationId }) => delegationId,
    // Two uses of one refresh token or code take turns here; across processes the row decides.
    exchange: ({ form }) => form.find(([name]) => SINGLE_USE.has(name))?.[1],
  },
  // A failure is one statement's or one request's: there is no state that a restart would mend.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, random, issuer, dpop } = needs
    const standings = briefMemory<Standing>(clock)
    const knownClients = briefMemory<KnownClient>(clock)
    const metrics = tokenMetrics(needs.registry)
    const nonces = proofNonces({ clock, sealer: needs.sealer })
    const proofs = proofJudge({ clock, coordination: needs.coordination, nonces, settings: dpop })
    const signer = tokenSigner({ keys: needs.keys, clock, random, issuer })
    const origins = briefMemory<boolean>(clock)
    const clients = createClients({ ...needs, memory: knownClients, origins })
    const bearer = createBearer({ keys: needs.keys, database, clock, issuer, proofs, standings })
    const forget = (ids: readonly string[] | 'all') => {
      standings.forget(ids)
      knownClients.forget(ids)
      origins.forget(ids)
    }
    const issuing = {
      ...needs,
      signer,
      metrics,
      commits: tenantCommits(database),
      standing: new StandingGrants(issuer),
      found: foundTogether(database),
      bearer,
      standingChanged: forget,
    }

    const grants: Record<GrantType, Grant> = {
      authorization_code: (client, form, jkt, context) =>
        grantCode(issuing, client, form, { jkt, refusal: proofs.missing }, context),
      client_credentials: (client, form, jkt, context) =>
        grantClientCredentials(issuing, client, form, jkt, context),
      refresh_token: (client, form, jkt, context) =>
        grantRefresh(issuing, client, form, { jkt, refusal: proofs.missing }, context),
      [TOKEN_EXCHANGE]: (...asked) => exchangeToken(...asked),
      [DEVICE_CODE]: (client, form, jkt, context) =>
        grantBackchannel(issuing, DEVICE_CODE, client, form, jkt, context),
      [CIBA]: (client, form, jkt, context) =>
        grantBackchannel(issuing, CIBA, client, form, jkt, context),
    }

    function exchangeToken(
      client: Client | null,
      form: OAuthForm,
      jkt: string | null,
      context: MessageContext,
      address: string,
    ): Promise<Issued | SecretIssued | OAuthRefused | ProofRefused> {
      const proof = { jkt, refusal: proofs.missing, address }
      return grantExchange(issuing, client, form, proof, context)
    }

    /** At once where the client is remembered: most requests wait for nothing here. */
    function clientOf(
      { authorization }: TokenRequest,
      form: OAuthForm,
    ): Client | OAuthRefused | Promise<Client | OAuthRefused> {
      const presented = readClient(authorization, form)
      if (presented.method === 'refused')
        return refuse(presented.error, presented.description, triesBasic(authorization))
      const orRefused = (client: Client | null) =>
        client ?? refuse('invalid_client', failureOf(presented), triesBasic(authorization))
      const client = clients.authenticate(presented)
      return client instanceof Promise ? client.then(orRefused) : orRefused(client)
    }

    /** What is wrong with an assertion by itself; whether the client exists and its key is told to nobody. */
    function failureOf(presented: PresentedClient): string {
      const failed = 'client authentication failed'
      if (presented.method !== 'assertion') return failed
      const read = readAssertion(presented.assertion, issuer, clock.nowSecs())
      return 'fault' in read ? `${failed}, client_assertion: ${read.fault}` : failed
    }

    function needsProof(client: Client | null): boolean {
      return client?.kind === 'application' && client.row.dpopBoundAccessTokens
    }

    /** The key of the proof that came. */
    async function keyOf(
      { httpMethod, httpUrl }: TokenRequest,
      dpopProof: string,
    ): Promise<{ jkt: string } | ProofRefused> {
      const judged = await proofs.judge({
        proof: dpopProof,
        httpMethod,
        httpUrl,
        accessToken: null,
        boundTo: null,
      })
      return judged.tag === 'proven' ? { jkt: judged.jkt } : judged
    }

    async function answerExchange(
      request: TokenRequest,
      form: OAuthForm,
      asker: Asker,
      context: MessageContext,
    ): Promise<Issued | SecretIssued | OAuthRefused | ProofRefused> {
      const { grantType } = asker
      if (grantType === null) return refuse('invalid_request', 'grant_type is missing')
      if (!isGrantType(grantType))
        return refuse('unsupported_grant_type', 'this grant type is not supported')
      // An agent may say who it is with its own token alone (decisions.md 7.6, token exchange).
      const byActor =
        grantType === TOKEN_EXCHANGE &&
        form.get('actor_token') !== null &&
        !presentsClient(request.authorization, form)
      const found = byActor ? null : clientOf(request, form)
      const client = found instanceof Promise ? await found : found
      if (client !== null && 'tag' in client) return client
      asker.client = client
      const { dpopProof } = request
      if (dpopProof === null && needsProof(client))
        return proofs.missing('this client needs a DPoP proof')
      const proof = dpopProof === null ? { jkt: null } : await keyOf(request, dpopProof)
      if ('tag' in proof) return proof
      // RFC 9396 section 6: what is not for the asking is refused, not left out in silence.
      if (WITHOUT_DETAILS.has(grantType) && form.get('authorization_details') !== null)
        return refuse('invalid_authorization_details', 'this grant gives no authorization_details')
      const address = request.address ?? ''
      return client === null
        ? exchangeToken(null, form, proof.jkt, context, address)
        : grants[grantType](client, form, proof.jkt, context, address)
    }

    return {
      authenticate: (presented, context) => bearer.authenticate(presented, context),

      proveKey: (presented) => proofs.judge({ accessToken: null, boundTo: null, ...presented }),

      grantAgent: (message, context) => grantAgent(issuing, message, context),

      grantOrganization: (message, context) => grantOrganization(issuing, message, context),

      grantDelegated: (message, context) => grantDelegated(issuing, message, context),

      async exchange(request, context) {
        const form = readForm(request.form)
        if ('repeated' in form) return refuse('invalid_request', describeRepeated(form))
        const asker: Asker = {
          grantType: form.get('grant_type'),
          client: null,
        }
        const outcome = await answerExchange(request, form, asker, context)
        if (outcome.tag === 'oauth_refused' || outcome.tag === 'proof_refused')
          logRefusal(context.log, outcome, asker, readClient(request.authorization, form))
        return outcome
      },

      async identifyClient(request) {
        const form = readForm(request.form)
        if ('repeated' in form) return refuse('invalid_request', describeRepeated(form))
        const client = await clientOf(request, form)
        if ('tag' in client) return client
        const { dpopProof } = request
        const proof = dpopProof === null ? { jkt: null } : await keyOf(request, dpopProof)
        if ('tag' in proof) return proof
        const { kind, confidential, row } = client
        return { tag: 'identified', kind, clientId: row.id, confidential, jkt: proof.jkt }
      },

      async introspect(request, context) {
        const form = readForm(request.form)
        if ('repeated' in form) return refuse('invalid_request', describeRepeated(form))
        const { authorization, dpopProof, httpMethod, httpUrl } = request
        const asBearer = ACCESS_SCHEME.exec(authorization ?? '')
        let inspector: { tenantId: string; clientId: string | null } | null
        if (asBearer === null && ACCESS_SCHEME_NAME.test(authorization ?? ''))
          return { tag: 'refused', error: 'unauthorized', description: 'this is no bearer token' }
        if (asBearer === null) {
          const client = await clientOf(request, form)
          if ('tag' in client) return client
          inspector = inspectorOf(client)
          if (inspector === null)
            return refuse('invalid_client', 'a public client may not introspect')
        } else {
          const scheme = asBearer[1]!.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer'
          const token = asBearer[2]!
          const judged = await bearer.authenticate(
            { token, scheme, dpopProof, httpMethod, httpUrl },
            context,
          )
          if (judged.tag === 'refused') return judged
          if (!judged.principal.scopes.includes(INTROSPECTION_SCOPE))
            return refuseScope(INTROSPECTION_SCOPE)
          inspector = { tenantId: judged.principal.tenantId, clientId: null }
        }
        const token = form.get('token')
        if (token === null) return refuse('invalid_request', 'token is missing')
        const answer = await introspect(
          { database, bearer, clock, issuer },
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
        if ('repeated' in form) return refuse('invalid_request', describeRepeated(form))
        const client = await clientOf(request, form)
        if ('tag' in client) return client
        const standingChanged = forget
        return revoke({ database, bearer, clock, random, standingChanged }, client, form, context)
      },

      async standingChanged({ ids }) {
        forget(ids)
        return undefined
      },
    }
  },
})

function isGrantType(text: string): text is GrantType {
  return (GRANT_TYPES as readonly string[]).includes(text)
}
