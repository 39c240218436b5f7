/** Somebody has shown who they are: their session opens, and the browser goes on along its flow. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { accountFactors } from '../../../storage/identity/passkeys.js'
import type { SignInFlowFound } from '../../../storage/identity/sign-in-flows.js'
import { joinByInvitation } from '../organizations/joining.js'
import { recordSignIn, type SignInRow } from '../../../storage/identity/sign-ins.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { type Doing, personEvent } from '../sessions/events.js'
import type { MailboxProved } from '../accounts/mailbox-proof.js'
import { nextStep, pathOf } from '../sessions/flows.js'
import { type LoginTools, readProgress } from './flow.js'
import type { SignedIn, Visitor } from './protocol.js'
import { openSession } from './session.js'

export type Opening = {
  readonly flow: SignInFlowFound
  /** The secret of the flow. */
  readonly token: string
  readonly found: SignInRow
  /** RFC 8176. */
  readonly amr: readonly string[]
  readonly visitor: Visitor
  /** What has to hold as well; in the same transaction. */
  readonly also?: ((tx: Transaction, now: Date) => Promise<void>) | undefined
  /** Where the evidence proves the mailbox: proves it, in the same transaction. */
  readonly proves?: ((tx: Transaction, now: Date) => Promise<MailboxProved>) | undefined
}

/** A new session takes the place of whatever the browser had; a second factor may still be owed. */
export async function openAlong(
  tools: LoginTools,
  { flow, token: flowToken, found, amr, visitor, also, proves }: Opening,
  context: MessageContext,
): Promise<SignedIn> {
  const { database, clock, random } = tools
  const now = clock.now()
  const { tenantId, tenantSettings } = flow
  const { accountId, tenantUserId, sub } = found
  // The session that ends may be one of another tenant.
  const token = await database.system(async (tx) => {
    await also?.(tx, now)
    // A first proof of the mailbox drops the factors that the account had.
    const pending = (await proves?.(tx, now)) !== 'dropped' && found.hasFactor
    const opened = { tenantId, tenantSettings, accountId, pending, amr }
    const session = await openSession(tx, tools, opened, visitor, now)
    const doing = { tenantId, sub, sessionId: session.id, requestId: context.requestId }
    const { activated } = await recordSignIn(tx, tenantId, tenantUserId, now)
    const told: Doing[] = [
      pending
        ? {
            ...doing,
            type: 'auth.mfa.challenge',
            fields: { methods: await challengeMethods(tx, accountId) },
          }
        : { ...doing, type: 'auth.login.success', fields: { amr, acr: 'aal1' } },
    ]
    if (activated) told.unshift({ ...doing, type: 'tenant_user.activated' })
    const joining = { tenantId, accountId, sub, requestId: context.requestId }
    appendEvents(tx, [
      ...told.map((one) => personEvent(random, one, now)),
      ...(await joinByInvitation(tx, random, joining, now)),
    ])
    return session.token
  }, context)
  const progress = await readProgress(tools, flowToken, token, context)
  const step = progress?.step ?? nextStep(flow, undefined, 1, now)
  return { tag: 'signed_in', token, location: pathOf(step, flowToken, flow.returnTo) }
}

/** What a second factor that is owed may be paid with, for the event that asks for it. */
export async function challengeMethods(tx: Transaction, accountId: string): Promise<string[]> {
  const { totp, passkey } = await accountFactors(tx, accountId)
  return [...(passkey ? ['passkey'] : []), ...(totp ? ['totp'] : []), 'recovery_code']
}
