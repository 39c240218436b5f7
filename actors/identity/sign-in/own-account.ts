/** The common first part of changes to sign-in methods on the account page. */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import { accountFactors } from '../../../storage/identity/passkeys.js'
import { findTenantBranding } from '../../../storage/identity/sign-in-flows.js'
import type { Database } from '../../../storage/platform/sql.js'
import { brandingOf, type PageTenant } from '../../domain/tenants/branding.js'
import type { OwnAccount, SignInFirst } from '../accounts/protocol.js'
import type { BrowserSession, BrowserSessionsProtocol } from '../sessions/protocol.js'

/** Maximum age of the authentication for changes to sign-in methods, in seconds. */
const SENSITIVE_SECS = 300

export type OwnAccountNeeds = {
  readonly database: Database
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
}

/**
 * Returns null when the authentication is fresh and at the highest level that the account can reach. An account
 * without a second factor needs a fresh first factor.
 */
export async function signInFirst(
  { database, browserSessions }: OwnAccountNeeds,
  { session, token }: OwnAccount,
  returnTo: string,
  context: MessageContext,
): Promise<SignInFirst | null> {
  const { tenantId, sub, accountId } = session
  const { totp, passkey } = await database.system((tx) => accountFactors(tx, accountId), context)
  const verdict = await browserSessions.demand(
    {
      token,
      tenantId,
      sub,
      demand: { level: totp || passkey ? 'highest' : 1, maxAgeSecs: SENSITIVE_SECS },
      flow: { returnTo, reason: { tag: 'sensitive' } },
    },
    context,
  )
  return verdict.tag === 'met' ? null : { tag: 'sign_in', location: verdict.location }
}

/** Returns null unless the session is confined. Such a session needs a sign-in with a way in that is the person's own. */
export async function leaveConfined(
  { browserSessions }: Pick<OwnAccountNeeds, 'browserSessions'>,
  { session: { tenantId, sub }, token }: OwnAccount,
  returnTo: string,
  context: MessageContext,
): Promise<SignInFirst | null> {
  const flow = { returnTo, reason: { tag: 'sensitive' } } as const
  const verdict = await browserSessions.demand(
    { token, tenantId, sub, demand: { level: 1 }, flow },
    context,
  )
  return verdict.tag === 'met' ? null : { tag: 'sign_in', location: verdict.location }
}

/** The tenant of an open session, for its pages. */
export async function tenantOfSession(
  database: Database,
  { tenantId }: Pick<BrowserSession, 'tenantId'>,
  context: MessageContext,
): Promise<PageTenant> {
  const branding = await database.system((tx) => findTenantBranding(tx, tenantId), context)
  if (branding === undefined) throw new Error('the tenant of an open session was not found')
  return brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
}
