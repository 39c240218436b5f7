/** The choice of an account (OpenID Connect Core section 3.1.2.1, `prompt=select_account`). */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { chooseSession } from '../../../../storage/oauth/authorization-requests.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import type { BrowserSession } from '../../../identity/sign-in/sessions/protocol.js'
import { formTarget } from './locations.js'
import type { InteractionNeeds, PendingRequest } from './pending-request.js'
import type { AccountsShown, ChooseAccount } from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

/** The account that the user may continue with, or whether a choice is needed at all. */
type AccountChoice =
  /** The request does not ask for a choice, or the user has chosen. */
  | { readonly tag: 'made' }
  /** The browser has an account that fits the request. */
  | { readonly tag: 'due'; readonly session: BrowserSession }
  /** No account fits, so the user signs in, which is the choice. */
  | { readonly tag: 'sign_in' }

/** A sign-in after the request arrived is a choice too. */
export async function accountChoice(
  { sessions }: Pick<InteractionNeeds, 'sessions'>,
  { client, request, requestedAt, sessionToken, choice }: PendingRequest,
  sub: string | null,
  context: MessageContext,
): Promise<AccountChoice> {
  if (request.prompt.selectAccount !== true) return { tag: 'made' }
  const read = await sessions.read({ token: sessionToken }, context)
  if (read.tag !== 'open' || read.session.tenantId !== client.tenantId) return { tag: 'sign_in' }
  const { session } = read
  if (sub !== null && session.sub !== sub) return { tag: 'sign_in' }
  const isChosen = session.id === request.chosenSession || session.createdAt >= requestedAt
  return isChosen && choice === undefined ? { tag: 'made' } : { tag: 'due', session }
}

/** Notes the chosen session with the request, unless another session is now the browser's. */
export async function noteChoice(
  { database, sessions }: Pick<InteractionNeeds, 'database' | 'sessions'>,
  { tenantId, id }: { readonly tenantId: string; readonly id: string },
  { account, sessionToken }: ChooseAccount,
  context: MessageContext,
): Promise<PendingRequest['choice']> {
  if (account === 'another') return account
  const read = await sessions.read({ token: sessionToken }, context)
  if (read.tag !== 'open' || read.session.id !== account) return 'gone'
  await inTenant(database, tenantId, context, (tx) => chooseSession(tx, tenantId, id, account))
  return undefined
}

/** The page with the accounts. A browser has one session, hence at most one account. */
export function accountsShown(
  { client, request }: Pick<PendingRequest, 'client' | 'request'>,
  handle: string,
  { id, email, displayName }: BrowserSession,
): AccountsShown {
  return {
    tag: 'accounts',
    handle,
    tenant: brandingOf(client.tenantId, client.tenantName, client.tenantSettings),
    clientName: client.name,
    accounts: [{ sessionId: id, name: displayName, email }],
    uiLocales: request.uiLocales,
    formTargets: [formTarget(request.redirectUri)],
  }
}
