/**
 * Forms that use a link or an invite up. One that the same browser sends again within a minute gets the first answer, not
 * the page of a used link, while the browser has the earlier session or the one that the answer opened. The answer is
 * stored by the transaction of the use.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { findBrowserSession } from '../../../storage/identity/browser-sessions.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { sha256 } from '../../domain/secret-hashes.js'
import { type Answering, findAnswer, storeAnswer } from '../../platform/sealed-answer.js'
import type { Visitor } from './protocol.js'

type Sent = {
  readonly token: string
  readonly visitor: Pick<Visitor, 'browserId' | 'token'>
  readonly email?: string
  readonly displayName?: string
  readonly password: string
}
type Outcome = { readonly tag: string; readonly token?: string }
/** The user is signed in, or signs in as before. */
export type Accepted =
  | { readonly tag: 'accepted'; readonly token: string; readonly location: string }
  | { readonly tag: 'sign_in'; readonly location: string }
type First<Answer> = {
  readonly answer: Answer
  /** The session token of the browser when it sent the form. */
  readonly before: string | null
}

/** With another password it is another form: that one was not accepted. */
const answeringTo = ({ token, visitor, email, displayName, password }: Sent): Answering => ({
  browserId: visitor.browserId,
  sent: JSON.stringify([token, email, displayName, password]),
})

/** Stores the answer in the transaction that uses the link up. @returns the answer. */
export async function answered<Answer extends Outcome>(
  tx: Transaction,
  { random, clock }: { readonly random: Random; readonly clock: Clock },
  sent: Sent,
  tenantId: string,
  answer: Answer,
): Promise<Answer> {
  const form = { tenantId, secret: sent.token }
  const first: First<Answer> = { answer, before: sent.visitor.token }
  await storeAnswer(tx, { clock, random }, form, answeringTo(sent), first)
  return answer
}

/** The first answer to this form, if its link is used up already. Otherwise the outcome. */
export async function orFirst<Result extends Outcome>(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  sent: Sent,
  outcome: Result,
  context: MessageContext,
): Promise<Result> {
  if (outcome.tag !== 'gone' && outcome.tag !== 'spent') return outcome
  const now = clock.now()
  // The tenant of a link is unknown before.
  return database.system(async (tx) => {
    const found = await findAnswer(tx, { secret: sent.token }, answeringTo(sent), now)
    const first = found as First<Result> | undefined
    const isSame = first !== undefined && (await isAsBefore(tx, sent.visitor.token, first, now))
    return isSame ? first.answer : outcome
  }, context)
}

/** True if no user has signed in or out in the browser since. */
async function isAsBefore(
  tx: Transaction,
  session: string | null,
  { before, answer: { token: opened } }: First<Outcome>,
  now: Date,
): Promise<boolean> {
  if (session !== before && session !== opened) return false
  return opened === undefined || (await findBrowserSession(tx, sha256(opened), now)) !== undefined
}
