/**
 * The answer of a decided request. A form that is sent again gets the same redirect, so the code is kept until it is
 * redeemed, for a minute, for the user who decided in the browser that sent the form. Deny after Allow gets a page that
 * says what was decided.
 */
import { findCodes } from '../../../../storage/oauth/authorization-codes.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { findAnswer, openAnswer, REPEATED_MS, sealAnswer } from '../../../platform/sealed-answer.js'
import type { InteractionNeeds } from './pending-request.js'
import type { AnsweredBefore, DecideAuthorization, ResumeAuthorization } from './protocol.js'

/** The request, and what its page asks for: with a decision, or by loading it again. */
export type Repeated = ResumeAuthorization & Partial<Pick<DecideAuthorization, 'action'>>
/** The browser that decides, and the handle of the request. */
type Answering = Pick<ResumeAuthorization, 'handle' | 'browserId'>
/** Hexadecimal. Null: a denial. */
type Decision =
  | { readonly codeSha256: string; readonly subject: string }
  | { readonly codeSha256: null }

/** Who may see the answer again. */
export const answeringOf = ({ handle, browserId }: Answering) => ({ browserId, sent: handle })

/** Encrypts what was decided: a code for a user, or a denial. */
export const sealDecision = (
  random: InteractionNeeds['random'],
  by: Answering,
  decision: Decision,
): Uint8Array => sealAnswer(random, answeringOf(by), decision)

type AnsweredRow = { readonly answer: Uint8Array | null; readonly consumedAt: Date | null }
type Before =
  | { readonly tag: 'again'; readonly code: string | null }
  | { readonly tag: 'done'; readonly decided: AnsweredBefore['decided'] }

/**
 * What this browser decided before. `again`: the same redirect is due, with the code or a denial. `done`: the code was
 * redeemed, its time is over, or the user now decides otherwise. Null in another browser, without a session of the user,
 * and for a denial long ago.
 */
export async function answeredBefore(
  { database, clock, sessions }: Pick<InteractionNeeds, 'database' | 'clock' | 'sessions'>,
  message: Repeated,
  { answer, consumedAt }: AnsweredRow,
  context: MessageContext,
): Promise<Before | null> {
  if (answer === null || consumedAt === null) return null
  const by = answeringOf(message)
  const opened = openAnswer(by, answer) as Decision | undefined
  if (opened?.codeSha256 === undefined) return null
  const now = clock.now()
  const { action } = message
  if (opened.codeSha256 === null) {
    if (now.getTime() - consumedAt.getTime() >= REPEATED_MS) return null
    return { tag: 'again', code: null }
  }
  // The user may have signed in again since, or have signed out.
  const read = await sessions.read({ token: message.sessionToken }, context)
  if (read.tag !== 'open' || read.session.sub !== opened.subject) return null
  const [row] = await findCodes(database, [Buffer.from(opened.codeSha256, 'hex')])
  if (row?.standing !== true) return null
  const isOpen = row.redeemedAt === null && row.expiresAt > now
  const code =
    isOpen && action !== 'deny'
      ? await database.system((tx) => findAnswer(tx, { secret: message.handle }, by, now), context)
      : undefined
  return typeof code === 'string' ? { tag: 'again', code } : { tag: 'done', decided: 'approved' }
}
