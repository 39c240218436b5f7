/**
 * The page between a sign-in and its destination, for browsers whose script asks for it. It tells the authenticators which
 * passkeys the account has. After a password it also lets the browser create one without asking (WebAuthn Level 3,
 * conditional mediation).
 */
import type { BrowserSessionRow } from '../../../../../storage/identity/browser-sessions.js'
import { lockAccountInSession } from '../../../../../storage/identity/accounts.js'
import { listPasskeys } from '../../../../../storage/identity/passkeys.js'
import { claimPasskeyQuestion } from '../../../../../storage/identity/ways/known-browsers.js'
import { appendEvents } from '../../../../../storage/platform/outbox.js'
import { reachOf } from '../../../../domain/assurance.js'
import { sha256 } from '../../../../domain/secret-hashes.js'
import { personEvent } from '../../../../platform/people/person-events.js'
import { PASSWORD_FRESH_MS } from '../../flow/flows.js'
import { flowPage, onward, type Progress, progressIn } from '../../flow/progress.js'
import type { PasskeyHandler } from './needs.js'
import { createdPasskey, creationOptions, storePasskey } from './registration.js'
import { signalsOf } from './signals.js'

/** A browser is asked to create a passkey for an account once in this time. */
const ASKED_EVERY_MS = 30 * 86_400_000

export const syncPasskeys: PasskeyHandler<'syncPasskeys'> = async (
  tools,
  { flow: token, browser, visitor },
  context,
) => {
  const progress = await progressIn(tools, token, visitor.token, context)
  if ('tag' in progress) return progress
  const { session, step, flow } = progress
  if (session === undefined || session.confined || step !== 'done') return onward(progress)
  const { accountId } = session
  const now = tools.clock.now()
  const { passkeys, isAsked } = await tools.database.system(async (tx) => {
    const since = new Date(now.getTime() - ASKED_EVERY_MS)
    const browserSha256 = sha256(visitor.browserId)
    return {
      passkeys: await listPasskeys(tx, accountId),
      isAsked:
        followsPassword(progress, now) &&
        (await claimPasskeyQuestion(tx, accountId, browserSha256, since, now)),
    }
  }, context)
  if (!isAsked && passkeys.length === 0) return onward(progress)
  const page = flowPage(token, flow)
  const wanted = { name: page.tenant.name, deviceBound: false }
  return {
    ...page,
    tag: 'page',
    location: flow.returnTo,
    signals: signalsOf(tools.relyingParty.id, session, passkeys),
    options: isAsked
      ? await creationOptions(tools, silently(session), browser, wanted, context)
      : null,
  }
}

export const createConditionalPasskey: PasskeyHandler<'createConditionalPasskey'> = async (
  tools,
  { flow: token, browser, visitor, credential, name },
  context,
) => {
  const progress = await progressIn(tools, token, visitor.token, context)
  if ('tag' in progress) return progress
  const { location } = onward(progress)
  const now = tools.clock.now()
  const { session } = progress
  if (session === undefined || !followsPassword(progress, now)) return { tag: 'onward', location }
  const created = await createdPasskey(tools, silently(session), browser, credential, context)
  if (created === null) return { tag: 'refused', location }
  const isAdded = await tools.database.system(async (tx) => {
    if (!(await lockAccountInSession(tx, session))) return false
    if ((await storePasskey(tx, tools, session, created, name)) === null) return false
    const fields = { outcome: 'success', method: 'passkey', enrolled: true, conditional: true }
    const { tenantId, sub, id: sessionId } = session
    const base = { tenantId, sub, sessionId, requestId: context.requestId }
    appendEvents(tx, [personEvent(tools.random, { ...base, type: 'auth.mfa.verify', fields }, now)])
    return true
  }, context)
  return { tag: isAdded ? 'added' : 'refused', location }
}

const silently = (session: BrowserSessionRow) => ({ ...session, purpose: 'conditional' as const })

/** True for a recent sign-in with the password of the account, and with its strongest factor if it has one. */
function followsPassword({ session, factors }: Progress, now: Date): boolean {
  return session !== undefined && isByPassword(session, now) && session.level >= reachOf(factors)
}

const isByPassword = (
  { amr, pending, confined, email, passwordAt }: BrowserSessionRow,
  now: Date,
): boolean =>
  amr.includes('pwd') &&
  !amr.includes('fed') &&
  !pending &&
  !confined &&
  email !== '' &&
  now.getTime() - passwordAt.getTime() <= PASSWORD_FRESH_MS
