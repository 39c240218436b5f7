/** The common first part of changes to sign-in methods on the account page. */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import { accountFactors } from '../../../../storage/identity/passkeys.js'
import { findTenantBranding } from '../../../../storage/identity/sign-in-flows.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import { brandingOf, type PageTenant } from '../../../domain/tenants/branding.js'
import type { OwnAccount, SignInFirst } from './protocol.js'
import { type PersonAudit, personAuditRecord } from '../../../platform/people/person-events.js'
import type {
  BrowserSession,
  BrowserSessionsProtocol,
  DemandSession,
} from '../sessions/protocol.js'

/** Maximum age of the authentication for changes to sign-in methods, in seconds. */
export const SENSITIVE_SECS = 300

type OwnAccountNeeds = {
  readonly database: Database
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
}

/** Returns null when the session meets the demand. */
export async function demanded(
  { browserSessions }: Pick<OwnAccountNeeds, 'browserSessions'>,
  { session: { tenantId, sub }, token }: OwnAccount,
  demand: DemandSession['demand'],
  returnTo: string,
  context: MessageContext,
): Promise<SignInFirst | null> {
  const flow = { returnTo, reason: { tag: 'sensitive' } } as const
  const verdict = await browserSessions.demand({ token, tenantId, sub, demand, flow }, context)
  return verdict.tag === 'met' ? null : { tag: 'sign_in', location: verdict.location }
}

/**
 * Returns null when the authentication is fresh and at the level, by default the highest that the account can reach. An
 * account without a second factor needs a fresh first factor.
 */
export async function signInFirst(
  needs: OwnAccountNeeds,
  own: OwnAccount,
  returnTo: string,
  context: MessageContext,
  wanted: 2 | 'highest' = 'highest',
): Promise<SignInFirst | null> {
  const { accountId } = own.session
  const { totp, passkey } = await needs.database.system(
    (tx) => accountFactors(tx, accountId),
    context,
  )
  const level = totp || passkey ? wanted : 1
  return demanded(needs, own, { level, maxAgeSecs: SENSITIVE_SECS }, returnTo, context)
}

/** Returns null unless the session is confined. Such a session needs a sign-in with a way in that is the person's own. */
export const leaveConfined = (
  needs: Pick<OwnAccountNeeds, 'browserSessions'>,
  own: OwnAccount,
  returnTo: string,
  context: MessageContext,
): Promise<SignInFirst | null> => demanded(needs, own, { level: 1 }, returnTo, context)

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

/** Appends the audit record of what a person did on the account page. */
export function auditOwn(
  tx: Transaction,
  { random, clock }: { readonly random: Random; readonly clock: Clock },
  { tenantId, sub }: Pick<BrowserSession, 'tenantId' | 'sub'>,
  { requestId }: MessageContext,
  done: Pick<PersonAudit, 'type' | 'address' | 'data'>,
): void {
  const record = { ...done, tenantId, sub, requestId }
  appendAudit(tx, [personAuditRecord(random, record, clock.now())])
}
