/**
 * Second factors on the account page: adds an authenticator app to an account that has a passkey, removes one, and
 * renews recovery codes. A user without any factor enrols one in a sign-in flow instead, which also raises the session.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../../storage/identity/accounts.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import { accountFactors } from '../../../../storage/identity/passkeys.js'
import {
  confirmTotp,
  countRecoveryCodes,
  removeTotpFactor,
} from '../../../../storage/identity/second-factors.js'
import { personEvent } from '../../../platform/people/person-events.js'
import { isUuid } from '../../../domain/ids.js'
import { auditOwn, demanded, SENSITIVE_SECS, tenantOfSession } from './own-account.js'
import { renewRecoveryCodes } from '../second-factors/recovery-codes.js'
import { totpStepOf } from '../second-factors/totp.js'
import { digits, offeredSecret, sealedSecret, secretShown } from '../second-factors/totp-offer.js'
import type { AccountHandler, AccountNeeds } from './needs.js'
import type { OwnAccount } from './protocol.js'

const ACCOUNT = '/auth/account'
const TOTP_PATH = '/auth/account/totp/new'
/** The highest level that the account can reach, at least 2. */
const HIGHEST = { level: 'highest', maxAgeSecs: SENSITIVE_SECS } as const

export const addOwnFactor: AccountHandler<'addOwnFactor'> = async (needs, own, context) => {
  const { confined } = own.session
  if (!confined) {
    const { totp, passkey } = await factorsOf(needs, own, context)
    if (totp) return { tag: 'present' }
    // The enrolment page asks for the passkey and sends the user back here.
    if (passkey) return { tag: 'sign_in', location: TOTP_PATH }
  }
  // A confined session reaches the account's own factors only through a new sign-in.
  const first = await demanded(needs, own, { level: confined ? 1 : 2 }, ACCOUNT, context)
  return first ?? { tag: 'present' }
}

export const removeOwnFactor: AccountHandler<'removeOwnFactor'> = async (
  needs,
  { factorId, ...own },
  context,
) => {
  const demand = { level: 2, maxAgeSecs: SENSITIVE_SECS } as const
  const first = await demanded(needs, own, demand, ACCOUNT, context)
  if (first !== null) return first
  if (!isUuid(factorId)) return { tag: 'unknown_factor' }
  const { tenantId, accountId, sub, id: sessionId } = own.session
  const { requestId } = context
  const now = needs.clock.now()
  return needs.database.system(async (tx) => {
    if (!(await removeTotpFactor(tx, accountId, factorId))) return { tag: 'unknown_factor' }
    const type = 'security.suspicious_activity'
    const fields = { reason: 'second_factor_removed' }
    const event = { tenantId, type, sub, sessionId, requestId, fields } as const
    appendEvents(tx, [personEvent(needs.random, event, now)])
    return { tag: 'removed' }
  }, context)
}

export const showNewAuthenticatorApp: AccountHandler<'showNewAuthenticatorApp'> = async (
  needs,
  own,
  context,
) => {
  const first = await demanded(needs, own, HIGHEST, TOTP_PATH, context)
  if (first !== null) return first
  if ((await factorsOf(needs, own, context)).totp) return { tag: 'present' }
  const tenant = await tenantOfSession(needs.database, own.session, context)
  const secret = await offeredSecret(needs, own.session, context)
  return { tag: 'page', tenant, ...secretShown(tenant.name, secret) }
}

export const addOwnAuthenticatorApp: AccountHandler<'addOwnAuthenticatorApp'> = async (
  needs,
  { code, ...own },
  context,
) => {
  const first = await demanded(needs, own, HIGHEST, TOTP_PATH, context)
  if (first !== null) return first
  if ((await factorsOf(needs, own, context)).totp) return { tag: 'present' }
  const { database, clock, random } = needs
  const { session } = own
  const { accountId, tenantId, sub, id: sessionId } = session
  const tenant = await tenantOfSession(database, session, context)
  const secret = await offeredSecret(needs, session, context)
  const step = totpStepOf(secret.bytes, digits(code), clock.nowSecs())
  const refused = async () =>
    // Another request, also one at another process, may have added it with the same code.
    (await factorsOf(needs, own, context)).totp
      ? ({ tag: 'present' } as const)
      : ({ tag: 'wrong', tenant, ...secretShown(tenant.name, secret) } as const)
  if (step === null) return refused()
  const factor = await sealedSecret(needs, secret)
  const now = clock.now()
  const { requestId } = context
  const recoveryCodes = await database.system(async (tx) => {
    if (!(await lockAccountInSession(tx, session))) return null
    if (!(await confirmTotp(tx, accountId, factor, step, now))) return null
    const fields = { outcome: 'success', method: 'totp', enrolled: true }
    const type = 'auth.mfa.verify'
    const done = { tenantId, type, sub, sessionId, requestId, fields } as const
    appendEvents(tx, [personEvent(random, done, now)])
    // Recovery codes issued with the passkey stay valid.
    const hasCodes = (await countRecoveryCodes(tx, accountId)) > 0
    return hasCodes ? [] : renewRecoveryCodes(tx, random, accountId, now)
  }, context)
  return recoveryCodes === null ? refused() : { tag: 'added', tenant, recoveryCodes }
}

export const replaceOwnRecoveryCodes: AccountHandler<'replaceOwnRecoveryCodes'> = async (
  needs,
  { address, ...own },
  context,
) => {
  const first = await demanded(needs, own, HIGHEST, ACCOUNT, context)
  if (first !== null) return first
  const { session } = own
  const tenant = await tenantOfSession(needs.database, session, context)
  const now = needs.clock.now()
  const recoveryCodes = await needs.database.system(async (tx) => {
    if (!(await lockAccountInSession(tx, session))) return null
    const done = { type: 'account.recovery_codes.replaced', address } as const
    auditOwn(tx, needs, session, context, done)
    return renewRecoveryCodes(tx, needs.random, session.accountId, now)
  }, context)
  return recoveryCodes === null
    ? { tag: 'sign_in', location: `/auth/login?tenant_id=${session.tenantId}` }
    : { tag: 'renewed', tenant, recoveryCodes }
}

function factorsOf({ database }: AccountNeeds, { session }: OwnAccount, context: MessageContext) {
  return database.system((tx) => accountFactors(tx, session.accountId), context)
}
