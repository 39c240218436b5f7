/**
 * Judges a first factor, opens the session after it, and names the second factors the user can be challenged with.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { accountFactors } from '../../../storage/identity/passkeys.js'
import type { SignInFlowFound } from '../../../storage/identity/sign-in-flows.js'
import { joinByInvitation } from './joining.js'
import { recordSignIn, type SignInRow } from '../../../storage/identity/sign-ins.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { type PersonEvent, personEvent } from '../../platform/people/person-events.js'
import type { MailboxProved } from '../../platform/people/mailbox-proof.js'
import { arrivalOf, pathOf } from './flow/flows.js'
import { type Progress, type SignInTools, readProgress } from './flow/progress.js'
import { type Attempted, orBusy } from './limits/lockout.js'
import type { Busy, Locked, SignedIn, Visitor } from './protocol.js'
import { openSession } from './sessions/open-session.js'
import { inTenant } from '../../platform/in-tenant.js'

/** A wrong factor counts as a failure of `sub`, the user that it names. `busy` does not count. */
export type JudgedFactor<Found> =
  | { readonly tag: 'found'; readonly found: Found }
  | { readonly tag: 'wrong'; readonly sub?: string | null | undefined }
  | Busy

/** One counted attempt at a first factor. A failure is recorded. */
export async function attemptFirstFactor<Found>(
  tools: Pick<SignInTools, 'database' | 'clock' | 'random' | 'lockout'>,
  { tenantId, factor, ...attempted }: Pick<SignInFailure, 'tenantId' | 'factor'> & Attempted,
  judge: () => Promise<JudgedFactor<Found>>,
  context: MessageContext,
): Promise<{ tag: 'found'; found: Found } | { tag: 'wrong' } | Locked | Busy> {
  const judged = await orBusy(() =>
    tools.lockout.attempt({ ...attempted, signal: context.signal }, async (attempt) => {
      const outcome = await judge()
      if (outcome.tag === 'found') await attempt.succeeded()
      if (outcome.tag !== 'wrong') return outcome
      const { sub = null } = outcome
      const locked = await attempt.failed()
      const { address } = attempted
      await recordSignInFailure(tools, { tenantId, factor, sub, locked, address }, context)
      return { tag: 'wrong' } as const
    }),
  )
  return judged.tag === 'judged' ? judged.outcome : judged
}

export type FirstFactorLogin = {
  readonly flow: SignInFlowFound
  /** Token of the flow. */
  readonly token: string
  readonly found: Pick<SignInRow, 'accountId' | 'tenantUserId' | 'sub' | 'hasFactor'>
  /** RFC 8176. */
  readonly amr: readonly string[]
  readonly visitor: Visitor
  /** A further condition, checked in the same transaction. */
  readonly also?: ((tx: Transaction, now: Date) => Promise<void>) | undefined
  /** Failed attempts for the name before this one. Default: 0. */
  readonly failures?: number | undefined
  /** Marks the mailbox as verified in the same transaction, if the evidence proves it. */
  readonly proves?: ((tx: Transaction, now: Date) => Promise<MailboxProved>) | undefined
}

/** Opens a new session in place of the browser's old one. A second factor may still be pending. */
export async function openSessionInFlow(
  tools: Pick<SignInTools, 'database' | 'clock' | 'random' | 'cookies' | 'adaptive'>,
  { flow, token: flowToken, found, amr, visitor, also, proves, failures = 0 }: FirstFactorLogin,
  context: MessageContext,
): Promise<SignedIn> {
  const { database, clock, random, adaptive } = tools
  const now = clock.now()
  const { tenantId, tenantSettings } = flow
  const { accountId, tenantUserId, sub } = found
  // The replaced session may belong to another tenant.
  const opened = await database.system(async (tx) => {
    await also?.(tx, now)
    // A first proof of the mailbox drops the factors of the account.
    const asksFactor = (await proves?.(tx, now)) !== 'dropped' && found.hasFactor
    const risk = await adaptive.judge(tx, accountId, visitor, failures, now)
    const isRisky = risk.reasons.length > 0
    // A code by mail confirms nothing after a sign-in by mail.
    const confirms = isRisky && !asksFactor && proves === undefined && risk.isConfirmable
    const pending = asksFactor || confirms
    const newSession = { tenantId, tenantSettings, accountId, pending, amr }
    const session = await openSession(tx, tools, newSession, visitor, now)
    const base = { tenantId, sub, sessionId: session.id, requestId: context.requestId }
    const newEvents: PersonEvent[] = [
      pending
        ? {
            ...base,
            type: 'auth.mfa.challenge',
            fields: { methods: confirms ? ['mail'] : await challengeMethods(tx, accountId) },
          }
        : { ...base, type: 'auth.login.success', fields: { amr, acr: 'aal1' } },
    ]
    if (isRisky) {
      const method = asksFactor ? 'second_factor' : confirms ? 'mail' : 'none'
      const fields = { reasons: risk.reasons, method }
      newEvents.push({ ...base, type: 'auth.adaptive_mfa.triggered', fields })
    }
    await recordFirstFactor(tx, random, { ...base, accountId, tenantUserId }, newEvents, now)
    return { token: session.token, confirms }
  }, context)
  const { token } = opened
  const progress = await readProgress(tools, flowToken, token, context)
  if (opened.confirms && progress?.session !== undefined) {
    const { email } = progress.session
    // A message that could not be sent is requested again on the page.
    await adaptive.send({ flow, accountId, email, token, visitor }, context)
  }
  return signedInAt(progress, flow, flowToken, token, visitor)
}

/** Records a first factor, appends its events, and accepts an invitation to the organization. */
export async function recordFirstFactor(
  tx: Transaction,
  random: Random,
  {
    accountId,
    tenantUserId,
    ...inSession
  }: Omit<PersonEvent, 'type' | 'fields' | 'sub'> & {
    readonly sub: string
    readonly accountId: string
    readonly tenantUserId: string
  },
  newEvents: readonly PersonEvent[],
  now: Date,
): Promise<void> {
  const { tenantId, sub, requestId } = inSession
  const { activated } = await recordSignIn(tx, tenantId, tenantUserId, now)
  const type = 'tenant_user.activated'
  const events = activated ? [{ ...inSession, type } as const, ...newEvents] : newEvents
  appendEvents(
    tx,
    events.map((event) => personEvent(random, event, now)),
  )
  await joinByInvitation(tx, random, { tenantId, accountId, sub, requestId }, now)
}

/** Where a browser goes with its new session. */
export function signedInAt(
  progress: Progress | undefined,
  { returnTo }: Pick<SignInFlowFound, 'returnTo'>,
  flowToken: string,
  token: string,
  visitor: Visitor,
): SignedIn {
  const step = progress?.step ?? 'login'
  const location =
    step === 'done' ? arrivalOf(flowToken, returnTo, visitor) : pathOf(step, flowToken, returnTo)
  return { tag: 'signed_in', token, location }
}

/** The methods that complete a pending sign-in, for its event. */
export async function challengeMethods(tx: Transaction, accountId: string): Promise<string[]> {
  const { totp, passkey } = await accountFactors(tx, accountId)
  return [...(passkey ? ['passkey'] : []), ...(totp ? ['totp'] : []), 'recovery_code']
}

type SignInFailure = {
  readonly tenantId: string
  /** The first factor that was tried, `reason` of the event. */
  readonly factor: 'email_otp' | 'passkey' | 'password' | 'siwe' | 'sms'
  /** Null: the user is unknown. */
  readonly sub: string | null
  /** Whether this attempt was the last one before the lockout. */
  readonly locked: boolean
  readonly address: string
}

/** Commits `auth.login.failure`, and `security.brute_force.detected` when the attempt locked the subject. */
async function recordSignInFailure(
  { database, clock, random }: Pick<SignInTools, 'database' | 'clock' | 'random'>,
  { tenantId, factor, sub, locked, address: ip }: SignInFailure,
  context: MessageContext,
): Promise<void> {
  const base = { tenantId, sub, sessionId: null, requestId: context.requestId }
  const failed: PersonEvent[] = [
    { ...base, type: 'auth.login.failure', fields: { reason: factor, ip } },
  ]
  if (locked) {
    const fields = { subject: factor, ip }
    failed.push({ ...base, type: 'security.brute_force.detected', fields })
  }
  const events = failed.map((event) => personEvent(random, event, clock.now()))
  await inTenant(database, tenantId, context, (tx) => appendEvents(tx, events))
}
