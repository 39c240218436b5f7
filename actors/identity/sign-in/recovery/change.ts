/** Password change of a signed-in user. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Email } from '../../../domain/email.js'
import { findAccountPassword, lockAccountInSession } from '../../../../storage/identity/accounts.js'
import { renewBrowserSession } from '../../../../storage/identity/browser-sessions.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { orBusy } from '../limits/lockout.js'
import { auditOwn, leaveConfined, tenantOfSession } from '../account/own-account.js'
import { SESSION_TOKEN_BYTES } from '../sessions/open-session.js'
import { choosePassword, replacedNotice } from './choose-password.js'
import type { PasswordRecoveryHandler, PasswordRecoveryTools } from './needs.js'
import type { ChangeShown, PasswordRecoveryProtocol } from './protocol.js'
import { replacePassword } from '../../../platform/people/password-revocation.js'

const CHANGE_PATH = '/auth/account/password'

type ChangePassword = PasswordRecoveryProtocol['changePassword']['message']

// Also the operation `findPasswordChange`.
export const showPasswordChange: PasswordRecoveryHandler<'showPasswordChange'> = async (
  tools,
  own,
  context,
) => {
  const first = await leaveConfined(tools, own, CHANGE_PATH, context)
  if (first !== null) return first
  const tenant = await tenantOfSession(tools.database, own.session, context)
  return { tag: 'page', tenant, email: own.session.email }
}

export const changePassword: PasswordRecoveryHandler<'changePassword'> = async (
  tools,
  message,
  context,
) => {
  const { session, password, visitor } = message
  const own = { session, token: visitor.token ?? '' }
  const first = await leaveConfined(tools, own, CHANGE_PATH, context)
  if (first !== null) return first
  const { email } = session
  const shown = { tenant: await tenantOfSession(tools.database, session, context), email }
  const judged = await judgeCurrent(tools, message, context)
  if (judged.tag === 'busy') return judged
  if (judged.tag === 'locked') return { ...shown, ...judged }
  if (judged.outcome === 'busy') return { tag: 'busy' }
  if (judged.outcome === 'mismatch') return { tag: 'wrong', ...shown }
  const chosen = await choosePassword(tools.passwords, password, email, context)
  if (chosen.tag === 'busy') return chosen
  if (chosen.tag !== 'hashed') return { ...chosen, ...shown }
  const token = await change(tools, message, shown, chosen.phc, context)
  return token === null ? { tag: 'wrong', ...shown } : { tag: 'changed', token }
}

/** Verifies the current password, as a counted attempt. */
function judgeCurrent(
  { database, passwords, lockout }: PasswordRecoveryTools,
  { session: { accountId }, current, visitor: { address } }: ChangePassword,
  context: MessageContext,
) {
  const attempted = { name: `password:${accountId}`, address, signal: context.signal }
  return orBusy(() =>
    lockout.attempt(attempted, async (attempt) => {
      // Accounts are global.
      const phc = await database.system((tx) => findAccountPassword(tx, accountId), context)
      const verdict = await passwords.verify({ phc, password: current }, context)
      if (verdict.tag === 'mismatch') await attempt.failed()
      if (verdict.tag === 'match') await attempt.succeeded()
      return verdict.tag
    }),
  )
}

/** Replaces the password. This browser gets a new token, all other sessions end. Null: the session ended before. */
async function change(
  tools: PasswordRecoveryTools,
  { session, visitor, languages }: ChangePassword,
  { tenant, email }: ChangeShown,
  phc: string,
  context: MessageContext,
): Promise<string | null> {
  const { database, clock, random } = tools
  const now = clock.now()
  const token = random.token(SESSION_TOKEN_BYTES)
  // A guest, who has no address, has no password.
  const notice = await replacedNotice(tools, tenant, email as Email, languages, now)
  const isDone = await database.system(async (tx) => {
    const { tenantId, accountId, id } = session
    const renewal = {
      tenantId,
      id,
      tokenSha256: sha256(visitor.token ?? ''),
      newTokenSha256: sha256(token),
      newId: random.uuid(),
    }
    if (!(await lockAccountInSession(tx, session))) return false
    if (!(await renewBrowserSession(tx, renewal, now))) return false
    const { address } = visitor
    const ended = { accountId, exceptId: renewal.newId, reason: 'password_changed' } as const
    await replacePassword(tx, tools, { ...ended, address, phc, notice }, now, context)
    auditOwn(tx, tools, session, context, { type: 'account.password.changed', address })
    return true
  }, context)
  return isDone ? token : null
}
