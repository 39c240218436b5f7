/** The PAR endpoint: validates a request before the browser is redirected (RFC 9126 section 2). */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import { insertAuthorizationRequest } from '../../../../storage/oauth/authorization-requests.js'
import type { AssuranceLevel } from '../../../domain/assurance.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { ANOTHER_TENANT, CONFLICTING_TENANT, namedTenant } from '../clients/named-tenant.js'
import type { SigningKeysProtocol } from '../../signing-keys/protocol.js'
import type { TenantsProtocol } from '../../../identity/users/tenants/protocol.js'
import { knownAudience } from '../issue/audience.js'
import { metered } from '../clients/client-quotas.js'
import { type OAuthForm, readForm } from '../form.js'
import { refuse } from '../refusals.js'
import type { OidcSettings } from '../settings.js'
import type {
  ClientIdentified,
  OAuthRefused,
  ProofRefused,
  TokenRequest,
  TokensProtocol,
} from '../protocol.js'
import { demandedPerson } from './interaction.js'
import { targetOf, UNKNOWN_AUDIENCE } from './target.js'
import { validateRequest } from './validate-request.js'
import { type Pushed, type PushRefused, REQUEST_URI_PREFIX } from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

/** 43 characters in base64url. */
const HANDLE_BYTES = 32

type PushNeeds = WriteNeeds & {
  readonly tokens: ActorRef<TokensProtocol>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly issuer: string
  readonly oidc: Pick<OidcSettings, 'par_ttl_secs'>
  readonly levelMax: AssuranceLevel
  /** An active application of an active tenant. */
  readonly clientOf: (
    clientId: string,
    context: MessageContext,
  ) => Promise<AuthorizingClientRow | null>
}

export async function pushAuthorizationRequest(
  needs: PushNeeds,
  message: TokenRequest,
  context: MessageContext,
): Promise<Pushed | PushRefused | OAuthRefused | ProofRefused> {
  const form = readForm(message.form)
  if ('repeated' in form)
    return refuse('invalid_request', 'a parameter is repeated', 'parameter_repeated')
  const identified = await needs.tokens.identifyClient(
    { ...message, quota: 'token', takesRequestObject: true },
    context,
  )
  if (identified.tag !== 'identified') return identified
  return metered(await pushFor(needs, message, form, identified, context), identified.windows)
}

async function pushFor(
  { database, tenants, keys, clock, random, issuer, oidc, levelMax, clientOf }: PushNeeds,
  message: TokenRequest,
  outer: OAuthForm,
  identified: ClientIdentified,
  context: MessageContext,
): Promise<Pushed | PushRefused | OAuthRefused> {
  const client = identified.kind === 'agent' ? null : await clientOf(identified.clientId, context)
  if (client === null)
    return refuse(
      'unauthorized_client',
      'only applications can send authorization requests',
      'grant_not_allowed',
    )
  const form = requestFormOf(outer, identified, client)
  if ('tag' in form) return form
  if (outer.get('request_uri') !== null)
    return refuse(
      'invalid_request',
      'a pushed request must not contain request_uri',
      'parameter_invalid',
    )
  // Checked here, because the authorization endpoint ignores other parameters of a pushed request.
  const { host } = new URL(message.httpUrl)
  const named = await namedTenant(tenants, form, client, host, context)
  if (named === 'conflicting')
    return refuse('invalid_request', CONFLICTING_TENANT, 'tenant_unknown')
  if (named === 'another') return refuse('invalid_request', ANOTHER_TENANT, 'tenant_unknown')
  const target = await targetOf({ database, issuer }, form, client, context)
  const { documentSha256 } = identified
  const verdict = validateRequest({ form, client, documentSha256, pushed: true, levelMax, target })
  if (verdict.tag !== 'valid') {
    const { error, description } = verdict
    return { tag: 'push_refused', error, description }
  }
  const { request } = verdict
  // The checks of the authorization endpoint apply here too (RFC 9126 section 2.1).
  const isOfResources = target !== undefined && 'resources' in target && target.resources.length > 0
  if (
    !isOfResources &&
    (await knownAudience(database, issuer, client, request.audience, context)) === null
  )
    return {
      tag: 'push_refused',
      error: 'invalid_target',
      description: UNKNOWN_AUDIENCE,
    }
  const person = await demandedPerson({ keys, issuer }, { client, request }, context)
  if ('fault' in person)
    return { tag: 'push_refused', error: 'invalid_request', description: person.fault }
  // RFC 9449 section 10.1: a proof at this endpoint binds the code like dpop_jkt.
  if (request.jkt !== null && identified.jkt !== null && request.jkt !== identified.jkt)
    return refuse(
      'invalid_request',
      'dpop_jkt does not match the key of the proof',
      'parameter_invalid',
    )
  const requestUri = REQUEST_URI_PREFIX + random.token(HANDLE_BYTES)
  const now = clock.now()
  await inTenant(database, client.tenantId, context, (tx) =>
    insertAuthorizationRequest(tx, {
      tenantId: client.tenantId,
      id: random.uuid(),
      handleSha256: sha256(requestUri),
      clientId: client.id,
      pushedId: null,
      request: { ...request, jkt: request.jkt ?? identified.jkt },
      createdAt: now,
      expiresAt: new Date(now.getTime() + oidc.par_ttl_secs * 1000),
    }),
  )
  return { tag: 'pushed', requestUri, expiresInSecs: oidc.par_ttl_secs }
}

/** The parameters of the request, from its request object if it has one (RFC 9126 section 3). */
function requestFormOf(
  outer: OAuthForm,
  { requestObject }: ClientIdentified,
  { requireSignedRequestObject, requestObjectSigningAlg: required }: AuthorizingClientRow,
): OAuthForm | PushRefused {
  const refused = (error: PushRefused['error'], description: string) =>
    ({ tag: 'push_refused', error, description }) as const
  if (requestObject === undefined)
    return requireSignedRequestObject
      ? refused('invalid_request', 'the application sends signed request objects only')
      : outer
  if ('fault' in requestObject)
    return refused('invalid_request_object', `request: ${requestObject.fault}`)
  const alg = requestObject.alg === 'ES256' ? 'ES256' : 'EdDSA'
  if (required !== null && alg !== required)
    return refused('invalid_request_object', `request: alg must be ${required}`)
  const form = readForm(requestObject.parameters)
  return 'repeated' in form
    ? refused('invalid_request_object', 'request: a parameter is repeated')
    : form
}
