/** Signs payments and transactions for the calling agent. */
import type { Handler } from '../../../runtime/kernel/actor.js'
import type { WalletsNeeds } from './find.js'
import { paymentDraft } from './payment.js'
import type { WalletsProtocol } from './protocol.js'
import { sign } from './signing.js'
import { transactionDraft } from './transaction.js'

type Handling<K extends keyof WalletsProtocol> = Handler<WalletsNeeds, WalletsProtocol, K>

export const signX402Payment: Handling<'signX402Payment'> = async (needs, message, context) => {
  const { assets, compute, random, settings } = needs
  const maxAuthorizationSecs = settings.max_authorization_secs
  const options = { required: message.required, assets, maxAuthorizationSecs, compute, random }
  const outcome = await sign(
    needs,
    message,
    (wallet, id, now) => paymentDraft(options, wallet, id, now),
    context,
  )
  if (outcome.tag !== 'signed') return outcome
  return { tag: 'signed', payment: outcome.answer, replayed: outcome.replayed }
}

export const signWalletTransaction: Handling<'signWalletTransaction'> = async (
  needs,
  message,
  context,
) => {
  const { assets, compute } = needs
  const options = { terms: message.transaction, assets, compute }
  const outcome = await sign(
    needs,
    message,
    (wallet, id, now) => transactionDraft(options, wallet, id, now),
    context,
  )
  if (outcome.tag !== 'signed') return outcome
  return { tag: 'signed', transaction: outcome.answer, replayed: outcome.replayed }
}
