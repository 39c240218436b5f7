/** POST /oauth/token. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { DENIED, PolicyDenied } from '../issue/access-policies.js'
import { clientOf, provenKey } from '../clients/client-of.js'
import {
  authenticatesClient,
  identifiesClient,
  readClientAuthentication,
} from '../clients/client-authentication.js'
import { metered } from '../clients/client-quotas.js'
import { type Client, isAdmitted } from '../clients/clients.js'
import type { OAuthForm } from '../form.js'
import {
  CIBA,
  DEVICE_CODE,
  type GrantType,
  isGrantType,
  JWT_BEARER,
  PRE_AUTHORIZED_CODE,
  TOKEN_EXCHANGE,
} from '../../../domain/oauth/grant-types.js'
import type { Issued, OAuthRefused, ProofRefused, SecretIssued, TokenRequest } from '../protocol.js'
import { formOf, refuse, refusedRequester, type Requester, whyOf } from '../refusals.js'
import { guardedTools, type TokenTools } from '../tools.js'
import { grantCode } from './authorization-code.js'
import { grantClientCredentials } from './client-credentials.js'
import { grantBackchannel } from './device-and-ciba.js'
import { grantIdJag } from './id-jag.js'
import { grantIdentityAssertion } from './identity-assertion.js'
import { grantPreAuthorized } from './pre-authorized-code.js'
import {
  admittedClient,
  asksIdJag,
  assertionRefused,
  BEYOND_RULE,
  BeyondRule,
  foreignTarget,
  grantWorkload,
  withinRule,
  workloadAssertion,
} from './workload.js'
import { grantRefresh } from './refresh-token.js'
import { type ExchangeProof, grantExchange } from './token-exchange.js'

type Outcome = Issued | SecretIssued | OAuthRefused | ProofRefused
type Run<Known extends Client | null> = (
  tools: TokenTools,
  client: Known,
  form: OAuthForm,
  proof: ExchangeProof,
  context: MessageContext,
) => Promise<Outcome>

/** Everything that is decided for a grant. */
type Grant = {
  /**
   * What a client may do that a rule of a trusted issuer admits: get a token for itself, use what another granted to its
   * application, or nothing. The tools of such a request keep to the rule (`withinRule`).
   */
  readonly workload: 'for itself' | 'within its rule' | 'refused'
  /** `refused`: the grant has none (RFC 9396 section 6 forbids to ignore them). `granted`: those that were granted. */
  readonly details: 'refused' | 'granted'
} & (
  | { readonly client: 'required'; readonly run: Run<Client> }
  | { readonly client: 'optional' | 'or actor_token'; readonly run: Run<Client | null> }
)

// biome-ignore format: a table
const GRANTS: Readonly<Record<GrantType, Grant>> = {
  authorization_code: { client: 'required', workload: 'within its rule', details: 'granted', run: grantCode },
  client_credentials: { client: 'required', workload: 'for itself', details: 'refused', run: grantClientCredentials },
  refresh_token: { client: 'required', workload: 'within its rule', details: 'granted', run: grantRefresh },
  // The actor token alone can identify the agent.
  [TOKEN_EXCHANGE]: { client: 'or actor_token', workload: 'within its rule', details: 'refused', run: (tools, client, form, ...of) => (asksIdJag(form) ? grantIdJag : grantExchange)(tools, client, form, ...of) },
  // With an assertion a workload asks for itself. An identity assertion speaks for a person.
  [JWT_BEARER]: { client: 'required', workload: 'within its rule', details: 'refused', run: grantIdentityAssertion },
  [DEVICE_CODE]: { client: 'required', workload: 'within its rule', details: 'granted', run: grantBackchannel(DEVICE_CODE) },
  [CIBA]: { client: 'required', workload: 'within its rule', details: 'granted', run: grantBackchannel(CIBA) },
  // OpenID4VCI section 6.1: a wallet may be unknown. Its code is what authorizes it.
  [PRE_AUTHORIZED_CODE]: { client: 'optional', workload: 'refused', details: 'granted', run: grantPreAuthorized },
}

export async function issueToken(
  tools: TokenTools,
  request: TokenRequest,
  context: MessageContext,
) {
  const form = formOf(request.form)
  if ('tag' in form) return form
  const requester: Requester = { grantType: form.get('grant_type'), client: null }
  const outcome = await runGrant(tools, request, form, requester, context).catch(asOAuthRefusal)
  if (outcome.tag !== 'oauth_refused' && outcome.tag !== 'proof_refused') return outcome
  const presented = readClientAuthentication(request.authorization, form)
  const sent = refusedRequester(requester, presented)
  const refused = 'requester' in outcome ? outcome.requester : undefined
  return { ...outcome, requester: { ...sent, ...(refused && whyOf(refused)) } }
}

async function runGrant(
  tools: TokenTools,
  request: TokenRequest,
  form: OAuthForm,
  requester: Requester,
  context: MessageContext,
): Promise<Outcome> {
  const grantType = grantTypeOf(tools, requester)
  const assertion = typeof grantType === 'object' ? null : workloadAssertion(grantType, form)
  const needed = typeof grantType === 'object' ? 'optional' : GRANTS[grantType].client
  const isNeeded =
    needed === 'or actor_token' ? form.get('actor_token') === null : needed === 'required'
  const found =
    assertion !== null
      ? workloadOf(tools, request, form, assertion, context)
      : !isNeeded && !identifiesClient(request.authorization, form)
        ? null
        : clientOf(tools, request, form, context)
  const counted = await tools.quotas.count(
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
      : await runCounted(tools, request, form, { grantType, client }, context)
  return metered(outcome, windows)
}

/** The client for which the assertion of a grant stands. It needs no other authentication. */
async function workloadOf(
  tools: TokenTools,
  request: TokenRequest,
  form: OAuthForm,
  assertion: string,
  context: MessageContext,
): Promise<Client | OAuthRefused> {
  const clientId = form.get('client_id')
  const presented = { assertion, clientId, presentedAs: null }
  const named = { form, host: new URL(request.httpUrl).host }
  const client = await admittedClient(tools, presented, named, context)
  if ('refused' in client) return assertionRefused('invalid_grant', client, clientId)
  if (!authenticatesClient(request.authorization, form)) return client
  // RFC 7521 section 4.1: the client may authenticate besides.
  const own = await clientOf(tools, request, form, context)
  if ('tag' in own || own.row.id === client.row.id) return 'tag' in own ? own : client
  const { tenantId } = client.row
  return assertionRefused('invalid_grant', { refused: 'client', tenantId }, clientId)
}

function grantTypeOf(
  { credentials }: TokenTools,
  { grantType }: Requester,
): GrantType | OAuthRefused {
  if (grantType === null)
    return refuse('invalid_request', 'grant_type is missing', 'parameter_missing')
  const isOffered = grantType !== PRE_AUTHORIZED_CODE || credentials
  if (isGrantType(grantType) && isOffered) return grantType
  return refuse(
    'unsupported_grant_type',
    'this grant type is not supported',
    'grant_type_unsupported',
  )
}

/** A token request after client authentication. */
async function runCounted(
  tools: TokenTools,
  request: TokenRequest,
  form: OAuthForm,
  { grantType, client }: { readonly grantType: GrantType; readonly client: Client | null },
  context: MessageContext,
): Promise<Outcome> {
  const { dpopProof, address } = request
  const refusal = tools.dpopVerifier.missing
  const needsProof = client?.kind === 'application' && client.row.dpopBoundAccessTokens
  if (dpopProof === null && needsProof) return refusal('this client needs a DPoP proof')
  const key = await provenKey(tools, request)
  if ('tag' in key) return key
  const grant = GRANTS[grantType]
  if (grant.details === 'refused' && form.get('authorization_details') !== null)
    return refuse(
      'invalid_authorization_details',
      'this grant does not support authorization_details',
      'details_unsupported',
    )
  const own = guardedTools(tools, address, context)
  const proof = { ...key, refusal, address }
  if (client === null) {
    if (grant.client === 'required') throw new Error('the grant needs a client')
    return grant.run(own, null, form, proof, context)
  }
  if (!isAdmitted(client)) return grant.run(own, client, form, proof, context)
  const foreign = foreignTarget(own, client, form)
  if (foreign !== undefined) return foreign
  const limited = withinRule(own, client)
  switch (workloadAssertion(grantType, form) === null ? grant.workload : 'for itself') {
    case 'for itself':
      return grantWorkload(limited, client, form, { proof, grantType }, context)
    case 'within its rule':
      return grant.run(limited, client, form, proof, context)
    case 'refused':
      return BEYOND_RULE
  }
}

function asOAuthRefusal(error: unknown): OAuthRefused {
  if (error instanceof BeyondRule) return BEYOND_RULE
  if (error instanceof PolicyDenied) return refuse('policy_denied', DENIED, 'access_policy')
  throw error
}
