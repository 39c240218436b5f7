/**
 * The answer of a decided request. A form that is sent again gets the same redirect, so the code is kept until it is
 * redeemed, for the user who decided in the browser that sent the form.
 */
import { findCodes } from '../../../../storage/oauth/authorization-codes.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { openAnswer, REPEATED_MS, sealAnswer } from '../../../platform/sealed-answer.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { InteractionNeeds } from './pending-request.js'
import type { ResumeAuthorization } from './protocol.js'

/** The browser that decides, and the handle of the request. */
type Answering = Pick<ResumeAuthorization, 'handle' | 'browserId'>
type Answer = { readonly code: string; readonly subject: string } | { readonly code: null }

/** Encrypts an answer: a code for a user, or a denial. */
export const sealDecision = (
  random: InteractionNeeds['random'],
  { handle, browserId }: Answering,
  answer: Answer,
): Uint8Array => sealAnswer(random, { browserId, sent: handle }, answer)

type AnsweredRow = { readonly answer: Uint8Array | null; readonly consumedAt: Date | null }

/**
 * What this browser decided before. `again`: the same redirect is due, with the code or a denial. `done`: the code was
 * redeemed, or its time is over. Null in another browser, without a session of the user, and for a denial long ago.
 */
export async function answeredBefore(
  { database, clock, sessions }: Pick<InteractionNeeds, 'database' | 'clock' | 'sessions'>,
  { handle, browserId, sessionToken }: ResumeAuthorization,
  { answer, consumedAt }: AnsweredRow,
  context: MessageContext,
): Promise<{ readonly tag: 'again'; readonly code: string | null } | { tag: 'done' } | null> {
  if (answer === null || consumedAt === null) return null
  const opened = openAnswer({ browserId, sent: handle }, answer) as Answer | undefined
  if (opened === undefined) return null
  const now = clock.now()
  const isRecent = now.getTime() - consumedAt.getTime() < REPEATED_MS
  if (opened.code === null) return isRecent ? { tag: 'again', code: null } : null
  const { code, subject } = opened
  // The user may have signed in again since, or have signed out.
  const read = await sessions.read({ token: sessionToken }, context)
  if (read.tag !== 'open' || read.session.sub !== subject) return null
  const [row] = await findCodes(database, [sha256(code)])
  if (row?.standing !== true) return null
  const isOpen = row.redeemedAt === null && row.expiresAt > now
  return isRecent && isOpen ? { tag: 'again', code } : { tag: 'done' }
}
