/**
 * Token exchange for what is in the vault: `resource` names a credential, `requested_token_type` its
 * secret or, of an `oauth2` one, the upstream's access token. RFC 8693; decisions.md 4 and 22.
 */
import type { ExportKind, VaultExports } from '../../../vault/vault/protocol.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { isUuid } from '../../../domain/ids.js'
import { ACCESS_TOKEN_URN } from './token-exchange-rules.js'
import type { OAuthForm } from '../form.js'
import type { OAuthRefused, SecretIssued } from '../protocol.js'
import { refuse, refuseScope } from '../refusals.js'
import type { Presented } from './presented-tokens.js'

export const VAULT_SECRET_URN = 'urn:svc:params:oauth:token-type:vault-secret'
const CREDENTIAL_URN = 'urn:svc:vault:credential:'
const USE_SCOPE = 'vault:read'

export type VaultTarget = {
  readonly tag: 'vault_target'
  readonly credentialId: string
  readonly kind: ExportKind
}

/** Null: the request is about a token of this service. */
export function readVaultTarget(
  form: OAuthForm,
  requested: string,
): VaultTarget | OAuthRefused | null {
  const resources = form.all('resource')
  const wantsSecret = requested === VAULT_SECRET_URN
  // RFC 8141 section 3.1: the scheme and the first two parts are the same in any case.
  const isCredential = (text: string) => text.toLowerCase().startsWith(CREDENTIAL_URN)
  if (!wantsSecret && !resources.some(isCredential)) return null
  if (resources.length === 0)
    return refuse('invalid_request', `resource is missing: ${CREDENTIAL_URN}<id>`)
  const [resource = ''] = resources
  const credentialId = resource.slice(CREDENTIAL_URN.length).toLowerCase()
  if (resources.length > 1 || !isCredential(resource) || !isUuid(credentialId))
    return refuse('invalid_target', `resource must be one ${CREDENTIAL_URN}<id>`)
  if (form.get('may_act') !== null)
    return refuse('invalid_request', 'may_act is for tokens of this service')
  if (form.get('scope') !== null)
    return refuse('invalid_scope', 'a credential has the scope that its owner gave it')
  return { tag: 'vault_target', credentialId, kind: wantsSecret ? 'secret' : 'access_token' }
}

export async function exportCredential(
  { vault }: { readonly vault: Pick<VaultExports, 'export'> },
  { subject, verdict }: Presented,
  { credentialId, kind }: VaultTarget,
  address: string,
  context: MessageContext,
): Promise<SecretIssued | OAuthRefused> {
  const { principal } = subject
  if (principal.actors.length === 0)
    return refuse('policy_denied', 'a delegated token is needed: the one of an agent that acts')
  if (verdict.tag !== 'kept')
    return refuse('policy_denied', 'the token must be the agent’s own: take it over first')
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
      return refuse('invalid_target', 'there is no such credential, or no grant to use it')
    case 'denied':
      return refuse('policy_denied', outcome.detail)
    case 'wrong_kind':
      return refuse('invalid_request', outcome.detail)
    case 'prohibited':
      return refuse('policy_denied', 'the token endpoint of the upstream may not be asked')
    case 'refused':
      return refuse('invalid_target', `the upstream refused the credential: ${outcome.error}`)
    case 'malformed':
      return refuse('server_error', `the upstream’s answer is not usable: ${outcome.fault}`)
    case 'unavailable':
      return {
        ...refuse('temporarily_unavailable', `the upstream gave no token: ${outcome.fault}`),
        retryAfterSecs: outcome.retryAfterSecs ?? 5,
      }
  }
}
