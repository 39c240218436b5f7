/**
 * Token exchange for vault credentials (RFC 8693): `resource` names a credential. The requested type
 * selects its secret or, for an `oauth2` credential, the access token of the upstream.
 */
import type { ExportKind, VaultExports } from '../../../vault/vault/protocol.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { isUuid } from '../../../domain/ids.js'
import { ACCESS_TOKEN_URN, type VerifiedExchange } from './token-exchange-rules.js'
import type { OAuthForm } from '../form.js'
import type { OAuthRefused, SecretIssued } from '../protocol.js'
import { refuse, refuseScope } from '../refusals.js'

export const VAULT_SECRET_URN = 'urn:svc:params:oauth:token-type:vault-secret'
const CREDENTIAL_URN = 'urn:svc:vault:credential:'
const USE_SCOPE = 'vault:read'

type VaultTarget = {
  readonly tag: 'vault_target'
  readonly credentialId: string
  readonly kind: ExportKind
}

/** Reads the credential of the request, or null if the request is for a token of this service. */
export function readVaultTarget(
  form: OAuthForm,
  requested: string,
): VaultTarget | OAuthRefused | null {
  const resources = form.all('resource')
  const wantsSecret = requested === VAULT_SECRET_URN
  // RFC 8141 section 3.1: the scheme and the namespace are case-insensitive.
  const isCredential = (text: string) => text.toLowerCase().startsWith(CREDENTIAL_URN)
  if (!wantsSecret && !resources.some(isCredential)) return null
  if (resources.length === 0)
    return refuse(
      'invalid_request',
      `resource is missing: ${CREDENTIAL_URN}<id>`,
      'parameter_missing',
    )
  const [resource = ''] = resources
  const credentialId = resource.slice(CREDENTIAL_URN.length).toLowerCase()
  if (resources.length > 1 || !isCredential(resource) || !isUuid(credentialId))
    return refuse(
      'invalid_target',
      `resource must be one ${CREDENTIAL_URN}<id>`,
      'resource_invalid',
    )
  if (form.get('may_act') !== null)
    return refuse('invalid_request', 'may_act is for tokens of this service', 'parameter_invalid')
  if (form.get('scope') !== null)
    return refuse(
      'invalid_scope',
      'scope is not allowed here: the credential has the scope that its owner set',
      'scope_not_allowed',
    )
  return { tag: 'vault_target', credentialId, kind: wantsSecret ? 'secret' : 'access_token' }
}

export async function exportCredential(
  { vault }: { readonly vault: Pick<VaultExports, 'export'> },
  { subject, verdict }: VerifiedExchange,
  { credentialId, kind }: VaultTarget,
  address: string,
  context: MessageContext,
): Promise<SecretIssued | OAuthRefused> {
  const { principal } = subject
  if (principal.actors.length === 0)
    return refuse(
      'policy_denied',
      'a delegated token is needed: one in which an agent acts',
      'export_denied',
    )
  if (verdict.tag !== 'kept')
    return refuse(
      'policy_denied',
      'the agent must exchange the token for its own first',
      'export_denied',
    )
  if (!principal.scopes.includes(USE_SCOPE)) return refuseScope(USE_SCOPE)
  const outcome = await vault.export(
    { caller: { principal, address }, credentialId, kind },
    context,
  )
  switch (outcome.tag) {
    case 'exported':
      return {
        tag: 'secret_issued',
        accessToken: outcome.token,
        issuedTokenType: kind === 'secret' ? VAULT_SECRET_URN : ACCESS_TOKEN_URN,
        tokenType: kind === 'secret' ? 'N_A' : 'Bearer',
        expiresInSecs: outcome.expiresInSecs,
        scope: outcome.scope,
      }
    case 'unknown_credential':
      return refuse(
        'invalid_target',
        'the credential does not exist, or there is no grant to use it',
        'resource_unknown',
      )
    case 'denied':
      return refuse('policy_denied', outcome.detail, 'export_denied')
    case 'wrong_kind':
      return refuse('invalid_request', outcome.detail, 'parameter_invalid')
    case 'prohibited':
      return refuse(
        'policy_denied',
        'the token endpoint of the upstream is not an allowed target',
        'export_denied',
      )
    case 'lapsed':
      return refuse(
        'invalid_target',
        'the upstream refused the refresh token: the credential needs a new one',
        'upstream_refused',
      )
    case 'refused':
      return refuse(
        'invalid_target',
        `the upstream refused the credential: ${outcome.error}`,
        'upstream_refused',
      )
    case 'malformed':
      return refuse(
        'server_error',
        `the upstream sent an invalid response: ${outcome.fault}`,
        'upstream_invalid',
      )
    case 'unavailable':
      return {
        ...refuse(
          'temporarily_unavailable',
          `the upstream returned no token: ${outcome.fault}`,
          'upstream_unavailable',
        ),
        retryAfterSecs: outcome.retryAfterSecs ?? 5,
      }
  }
}
