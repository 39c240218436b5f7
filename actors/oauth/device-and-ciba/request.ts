/** Which application asks, for what, and whether it may ask: the same for every such request. */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { AuthorizingClientRow } from '../../../storage/oauth/applications.js'
import type { Database } from '../../../storage/platform/sql.js'
import { activeClient } from '../clients/active-client.js'
import type { TenantsProtocol } from '../../identity/tenants/protocol.js'
import { ANOTHER_TENANT, CONFLICTING_TENANT, namedTenant } from '../clients/named-tenant.js'
import { knownAudience, readAskedAudience } from '../tokens/issue/audience.js'
import { describeRepeated, type OAuthForm, readForm, readScope } from '../tokens/form.js'
import type {
  OAuthRefused,
  ProofRefused,
  TokenRequest,
  TokensProtocol,
} from '../tokens/protocol.js'
import { refuse } from '../tokens/refusals.js'

export type AskingNeeds = {
  readonly database: Database
  readonly tokens: ActorRef<TokensProtocol>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly issuer: string
}

export type Asking = {
  readonly tag: 'asking'
  readonly form: OAuthForm
  readonly client: AuthorizingClientRow
  /** Every one of them the application's. */
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
}

/** Authenticates the application and judges what it asks for. */
export async function readAsking(
  { database, tokens, tenants, issuer }: AskingNeeds,
  request: TokenRequest,
  grantType: string,
  context: MessageContext,
): Promise<Asking | OAuthRefused | ProofRefused> {
  const form = readForm(request.form)
  if ('repeated' in form) return refuse('invalid_request', describeRepeated(form))
  const identified = await tokens.ask('identifyClient', request, context)
  if (identified.tag !== 'identified') return identified
  const client =
    identified.kind === 'agent' ? null : await activeClient(database, identified.clientId, context)
  if (client === null || !client.grantTypes.includes(grantType))
    return refuse('unauthorized_client', 'the application does not have this grant')

  const { host } = new URL(request.httpUrl)
  const named = await namedTenant(tenants, form, client, host, context)
  if (named === 'conflicting') return refuse('invalid_request', CONFLICTING_TENANT)
  if (named === 'another') return refuse('invalid_request', ANOTHER_TENANT)

  // RFC 9396 section 5: there is no page here that shows them, so they are not granted in silence.
  if (form.get('authorization_details') !== null)
    return refuse(
      'invalid_authorization_details',
      'only the authorization endpoint takes authorization_details',
    )
  const scope = form.get('scope')
  // Nothing asked for is everything the application may have.
  const scopes = scope === null ? client.scopes : readScope(scope)
  if (scopes === null || !scopes.every((one) => client.scopes.includes(one)))
    return refuse('invalid_scope', 'a scope is malformed or not one of the application')
  const read = readAskedAudience(form)
  if ('fault' in read) return refuse('invalid_target', read.fault)
  const audience = await knownAudience(database, issuer, client, read.asked, context)
  if (audience === null) return refuse('invalid_target', 'the audience is not one of this tenant')
  return { tag: 'asking', form, client, scopes, audience }
}
