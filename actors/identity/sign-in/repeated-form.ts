/**
 * Forms that use a link or an invite up. One that the same browser sends again within a minute gets the first answer, not
 * the page of a used link. The answer is stored by the transaction of the use.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { findInviteAnswer, storeInviteAnswer } from '../../../storage/identity/operator-invites.js'
import { findTicketAnswer, storeTicketAnswer } from '../../../storage/identity/ways/mail-tickets.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { isUuid } from '../../domain/ids.js'
import { sha256 } from '../../domain/secret-hashes.js'
import {
  type Answering,
  openAnswer,
  REPEATED_MS,
  sealAnswer,
} from '../../platform/sealed-answer.js'
import type { Visitor } from './protocol.js'

type Sent = {
  readonly token: string
  readonly visitor: Pick<Visitor, 'browserId'>
  readonly email?: string
  readonly displayName?: string
  readonly password: string
}
type Outcome = { readonly tag: string }
/** The user is signed in, or signs in as before. */
export type Accepted =
  | { readonly tag: 'accepted'; readonly token: string; readonly location: string }
  | { readonly tag: 'sign_in'; readonly location: string }

type Answers = {
  readonly find: (
    tx: Transaction,
    token: string,
    since: Date,
  ) => Promise<{ readonly answer: Uint8Array } | undefined>
  readonly store: (tx: Transaction, token: string, answer: Uint8Array) => Promise<unknown>
}

/** With another password it is another form: that one was not accepted. */
const answeringTo = ({ token, visitor, email, displayName, password }: Sent): Answering => ({
  browserId: visitor.browserId,
  sent: JSON.stringify([token, email, displayName, password]),
})

const repeatedForm = ({ find, store }: Answers) => ({
  /** Stores the answer in the transaction that uses the link up. @returns the answer. */
  async answered<Answer extends Outcome>(
    tx: Transaction,
    { random }: { readonly random: Random },
    sent: Sent,
    answer: Answer,
  ): Promise<Answer> {
    await store(tx, sent.token, sealAnswer(random, answeringTo(sent), answer))
    return answer
  },

  /** The first answer to this form, if its link is used up already. Otherwise the outcome. */
  async orFirst<Result extends Outcome>(
    { database, clock }: { readonly database: Database; readonly clock: Clock },
    sent: Sent,
    outcome: Result,
    context: MessageContext,
  ): Promise<Result> {
    if (outcome.tag !== 'gone' && outcome.tag !== 'spent') return outcome
    const since = new Date(clock.now().getTime() - REPEATED_MS)
    // The tenant of a link is unknown before.
    const found = await database.system((tx) => find(tx, sent.token, since), context)
    const first = found && openAnswer(answeringTo(sent), found.answer)
    return (first as Result | undefined) ?? outcome
  },
})

export const linkForm = repeatedForm({
  find: (tx, token, since) => findTicketAnswer(tx, sha256(token), since),
  store: (tx, token, answer) => storeTicketAnswer(tx, sha256(token), answer),
})

/** An invite is named by its token, or by the link of its message, which has the id of the invite and a secret. */
function inviteOf(token: string) {
  const [id = ''] = token.split('.')
  return { id: isUuid(id) ? id : null, tokenSha256: sha256(token) }
}

export const inviteForm = repeatedForm({
  find: (tx, token, since) => findInviteAnswer(tx, inviteOf(token), since),
  store: (tx, token, answer) => storeInviteAnswer(tx, inviteOf(token), answer),
})
