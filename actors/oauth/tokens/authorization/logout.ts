/** RP-initiated logout (OpenID Connect RP-Initiated Logout 1.0 sections 2 and 3). */
import { STATE_CHARACTERS_MAX } from './validate-request.js'
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import { isUuid } from '../../../domain/ids.js'
import { findAuthorizingClient, findByMetadataUrl } from '../../../../storage/oauth/applications.js'
import { listLogoutFrames } from '../../../../storage/oauth/logouts.js'
import { endSessionRow } from '../../../../storage/oauth/token-sessions.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { BrowserSessionsProtocol } from '../../../identity/sign-in/sessions/protocol.js'
import type { SigningKeysProtocol } from '../../signing-keys/protocol.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import { readForm } from '../form.js'
import type { TokensProtocol } from '../protocol.js'
import { readIdTokenHint } from './id-token-hint.js'
import { withParameters } from './locations.js'
import type { EndSessionRequest, Refused, SessionEnded } from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

type LogoutNeeds = {
  readonly database: Database
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly sessions: ActorRef<BrowserSessionsProtocol>
  readonly tokens: ActorRef<TokensProtocol>
  readonly clock: Clock
  readonly issuer: string
}

/**
 * Ends the session of the `id_token_hint`, independent of the browser's cookie. The user is redirected
 * to post_logout_redirect_uri only if it is registered. Otherwise a page confirms the sign-out.
 */
// Also the operation `endSessionByForm`.
export async function endSession(
  { database, keys, sessions, clock, issuer }: LogoutNeeds,
  { parameters, sessionToken }: EndSessionRequest,
  context: MessageContext,
): Promise<SessionEnded | Refused> {
  const form = readForm(parameters)
  if ('repeated' in form) return refusal('a parameter is repeated', null)
  const uiLocales = form.get('ui_locales')
  const refused = (description: string) => refusal(description, uiLocales)
  const token = form.get('id_token_hint')
  if (token === null) return refused('id_token_hint is missing')
  const hint = await readIdTokenHint(keys, issuer, token, context)
  if (hint === null) return refused('id_token_hint is not an ID token of this service')
  const clientId = form.get('client_id')
  if (clientId !== null && clientId !== hint.clientId)
    return refused('client_id is not the audience of the ID token')

  const { tenantId, sessionId } = hint
  const own = await sessions.read({ token: sessionToken }, context)
  // A later sign-in may have replaced the session: the same user's session in this browser ends too.
  const ownSession =
    own.tag === 'open' && own.session.tenantId === tenantId && own.session.sub === hint.subject
  const ids = new Set(ownSession ? [sessionId, own.session.id] : [sessionId])
  // Another site can send a browser here with its ID token, so only the sessions of this browser have frames.
  const ownId = ownSession ? own.session.id : null
  const told =
    ownId === null
      ? []
      : await inTenant(database, tenantId, context, (tx) => listLogoutFrames(tx, tenantId, ownId))
  const frames = told.map(({ uri, sessionId: sid }) => withParameters(uri, { iss: issuer, sid }))
  for (const id of ids) {
    await sessions.end({ session: { tenantId, id }, reason: 'client_logout' }, context)
    await database.tenant(tenantId, (tx) => {
      tx.forget([id])
      return endSessionRow(tx, tenantId, id, 'client_logout', clock.now())
    })
  }

  // The tenant is unknown until the application is found, so the look-up crosses tenants.
  const client = await database.system(async (tx) => {
    const { clientId } = hint
    const id = isUuid(clientId) ? clientId : (await findByMetadataUrl(tx, tenantId, clientId))?.id
    return id === undefined ? undefined : findAuthorizingClient(tx, id)
  }, context)
  const known = client !== undefined && client.tenantId === tenantId
  const tenant = known ? brandingOf(tenantId, client.tenantName, client.tenantSettings) : null
  const redirectUri = form.get('post_logout_redirect_uri')
  const registered =
    known && redirectUri !== null && client.postLogoutRedirectUris.includes(redirectUri)
  const state = form.get('state')
  const short = (state?.length ?? 0) <= STATE_CHARACTERS_MAX
  const location = registered ? withParameters(redirectUri, { state: short ? state : null }) : null
  return { tag: 'ended', location, frames, tenant, uiLocales, ownSession }
}

function refusal(description: string, uiLocales: string | null): Refused {
  return { tag: 'refused', error: 'invalid_request', description, uiLocales }
}
