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
  clientsOf,
  DEVICE_CODE,
  type GrantType,
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
import { grantPreAuthorized } from './pre-authorized-code.js'
import { admittedClient, assertionRefused, grantWorkload, workloadAssertion } from './workload.js'
import { grantRefresh } from './refresh-token.js'
import { type ExchangeProof, grantExchange } from './token-exchange.js'

const assertionMissing = refuse('invalid_request', 'assertion is missing', 'parameter_missing')
/** Grants without user interaction, which cannot grant authorization_details. */
const WITHOUT_DETAILS: ReadonlySet<GrantType> = new Set([
  'client_credentials',
  JWT_BEARER,
  TOKEN_EXCHANGE,
])

type Outcome = Issued | SecretIssued | OAuthRefused | ProofRefused
type Grant = (
  tools: TokenTools,
  client: Client,
  form: OAuthForm,
  proof: ExchangeProof,
  context: MessageContext,
) => Promise<Outcome>

const GRANTS: Readonly<Record<GrantType, Grant>> = {
  authorization_code: grantCode,
  client_credentials: grantClientCredentials,
  refresh_token: grantRefresh,
  [TOKEN_EXCHANGE]: grantExchange,
  // Every assertion has a client: without one the request was refused before.
  [JWT_BEARER]: () => Promise.resolve(assertionMissing),
  [DEVICE_CODE]: (tools, ...request) => grantBackchannel(tools, DEVICE_CODE, ...request),
  [CIBA]: (tools, ...request) => grantBackchannel(tools, CIBA, ...request),
  [PRE_AUTHORIZED_CODE]: (tools, client, form, { jkt }, context) =>
    grantPreAuthorized(tools, client, form, jkt, context),
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
  // In a token exchange the actor token alone can identify the agent.
  const byActor = grantType === TOKEN_EXCHANGE && form.get('actor_token') !== null
  // OpenID4VCI section 6.1: a wallet may be unknown. Its code is what authorizes it.
  const mayBeUnknown = byActor || grantType === PRE_AUTHORIZED_CODE || typeof grantType === 'object'
  const found =
    assertion !== null
      ? workloadOf(tools, request, form, assertion, context)
      : mayBeUnknown && !identifiesClient(request.authorization, form)
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

/** True for a token of a workload for itself, which has the limits of its rule. */
const isForItself = (grantType: GrantType, form: OAuthForm) =>
  grantType === 'client_credentials' || workloadAssertion(grantType, form) !== null

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
  // RFC 9396 section 6: refuse details that cannot be granted instead of ignoring them.
  if (WITHOUT_DETAILS.has(grantType) && form.get('authorization_details') !== null)
    return refuse(
      'invalid_authorization_details',
      'this grant does not support authorization_details',
      'details_unsupported',
    )
  const own = guardedTools(tools, address, context)
  const proof = { ...key, refusal, address }
  if (client !== null && isAdmitted(client) && isForItself(grantType, form))
    return grantWorkload(own, client, form, { proof, grantType }, context)
  if (client !== null) return GRANTS[grantType](own, client, form, proof, context)
  return grantType === PRE_AUTHORIZED_CODE
    ? grantPreAuthorized(own, null, form, key.jkt, context)
    : grantExchange(own, null, form, proof, context)
}

function asOAuthRefusal(error: unknown): OAuthRefused {
  if (!(error instanceof PolicyDenied)) throw error
  return refuse('policy_denied', DENIED, 'access_policy')
}

function isGrantType(text: string): text is GrantType {
  return clientsOf(text) !== undefined
}
