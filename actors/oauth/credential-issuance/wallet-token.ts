/** Verifies the access token of a wallet's request, and what it may request (OpenID4VCI section 8, RFC 6750). */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import {
  CREDENTIAL_DETAILS_TYPE,
  type CredentialConfigurationId,
  credentialIssuersOf,
  isCredentialConfiguration,
} from '../../domain/credentials/catalogue.js'
import { isDirect, type Principal } from '../../domain/principal.js'
import { readJws } from '../../platform/jose/external-jws.js'
import type { TokensProtocol, Unauthenticated } from '../tokens/protocol.js'
import type { Issuer } from './issuers.js'
import {
  type CredentialRefused,
  credentialRefused,
  type NoToken,
  type ScopeMissing,
  type WalletRequest,
} from './protocol.js'

const CREDENTIALS = /^(bearer|dpop) +([A-Za-z0-9._~+/-]+=*)$/i

/** Credentials of one configuration that the token may request by their identifiers. */
type GrantedDetail = {
  readonly configurationId: string
  readonly identifiers: readonly string[]
}

export type WalletToken = {
  readonly tag: 'wallet_token'
  readonly principal: Principal
  readonly details: readonly GrantedDetail[]
}

export type WalletTokenNeeds = {
  readonly tokens: ActorRef<TokensProtocol>
  /** `oidc.issuer_url`, exactly as in tokens: the authorization server, and the public base URL. */
  readonly baseUrl: string
  readonly rootTenantSlug: string | undefined
}

type PresentedToken = {
  readonly tag: 'presented'
  readonly token: string
  readonly principal: Principal
}

/** Verifies the token of a request, whatever its audience is. */
async function presentedToken(
  { tokens }: Pick<WalletTokenNeeds, 'tokens'>,
  { authorization, dpopProof, httpMethod, httpUrl }: WalletRequest,
  context: MessageContext,
): Promise<PresentedToken | NoToken | Unauthenticated> {
  if (authorization === null) return { tag: 'no_token' }
  const [, scheme, token] = CREDENTIALS.exec(authorization) ?? []
  if (scheme === undefined || token === undefined)
    return refused('the Authorization header contains no access token')
  const verified = await tokens.authenticate(
    {
      token,
      scheme: scheme.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer',
      dpopProof,
      httpMethod,
      httpUrl,
      // The caller checks the audience, because each credential issuer is a separate resource.
      anyAudience: true,
    },
    context,
  )
  if (verified.tag === 'refused') return verified
  return { tag: 'presented', token, principal: verified.principal }
}

/** The response of a root issuer without configurations. */
export async function offersNothing(
  needs: Pick<WalletTokenNeeds, 'tokens'>,
  request: WalletRequest,
  context: MessageContext,
): Promise<NoToken | Unauthenticated | CredentialRefused> {
  const token = await presentedToken(needs, request, context)
  return token.tag === 'presented'
    ? credentialRefused(
        'unknown_credential_configuration',
        'this credential issuer offers no credentials',
      )
    : token
}

/** A direct token of a person, for this issuer or for the whole service. */
export async function walletToken(
  needs: WalletTokenNeeds,
  { tenant }: Issuer,
  request: WalletRequest,
  context: MessageContext,
): Promise<WalletToken | NoToken | Unauthenticated> {
  const { baseUrl, rootTenantSlug } = needs
  const presented = await presentedToken(needs, request, context)
  if (presented.tag !== 'presented') return presented
  const { token, principal } = presented
  const audiences = [baseUrl, ...credentialIssuersOf(baseUrl, tenant.slug, rootTenantSlug)]
  const isOurs =
    principal.tenantId === tenant.id &&
    // The user consented to scopes of an API resource by the descriptions of its tenant.
    principal.resourceIds === undefined &&
    principal.audience.some((one) => audiences.includes(one))
  if (!isOurs) return refused('the token is for another credential issuer')
  if (principal.subjectType !== 'human' || !isDirect(principal))
    return refused('credentials are issued for direct tokens of a person')
  return { tag: 'wallet_token', principal, details: detailsOf(token) }
}

/** The claim `authorization_details` of a token whose signature is verified. */
function detailsOf(token: string): readonly GrantedDetail[] {
  const details = readJws(token)?.claims['authorization_details']
  if (!Array.isArray(details)) return []
  return (details as readonly Record<string, unknown>[]).flatMap((detail) => {
    const { type, credential_configuration_id: id, credential_identifiers: identifiers } = detail
    if (type !== CREDENTIAL_DETAILS_TYPE || typeof id !== 'string' || !Array.isArray(identifiers))
      return []
    const texts = identifiers.filter((one): one is string => typeof one === 'string')
    return [{ configurationId: id, identifiers: texts }]
  })
}

function refused(description: string): Unauthenticated {
  return { tag: 'refused', error: 'unauthorized', description }
}

type RequestedCredential = { readonly configurationId: CredentialConfigurationId }

/** Reads which credential a request names (section 8.2), if the token allows it. */
export function readRequestedCredential(
  body: Readonly<Record<string, unknown>>,
  { principal, details }: WalletToken,
): RequestedCredential | CredentialRefused | ScopeMissing {
  const { credential_identifier: identifier, credential_configuration_id: configuration } = body
  if ((identifier === undefined) === (configuration === undefined))
    return credentialRefused(
      'invalid_credential_request',
      'exactly one of credential_identifier and credential_configuration_id is needed',
    )
  if (typeof (identifier ?? configuration) !== 'string')
    return credentialRefused(
      'invalid_credential_request',
      'the credential is not named by a string',
    )
  // Section 8.2: encrypted responses are not offered.
  if (body['credential_response_encryption'] !== undefined)
    return credentialRefused(
      'invalid_encryption_parameters',
      'encrypted credential responses are not supported',
    )
  if (identifier !== undefined) {
    const detail = details.find(({ identifiers }) => identifiers.includes(identifier as string))
    return detail !== undefined && isCredentialConfiguration(detail.configurationId)
      ? { configurationId: detail.configurationId }
      : credentialRefused(
          'unknown_credential_identifier',
          'the token response had no such credential_identifier',
        )
  }
  if (!isCredentialConfiguration(configuration))
    return credentialRefused(
      'unknown_credential_configuration',
      'use a configuration of credential_configurations_supported of the issuer',
    )
  if (details.some(({ configurationId }) => configurationId === configuration))
    return credentialRefused(
      'invalid_credential_request',
      'use one of the credential_identifiers of the token response',
    )
  return principal.scopes.includes(configuration)
    ? { configurationId: configuration }
    : { tag: 'scope_missing', scopes: [configuration] }
}
