/** Ethereum accounts on the account page: link one, remove one. */
import { lockAccountInSession } from '../../../../../storage/identity/accounts.js'
import { insertWallet, removeWallet } from '../../../../../storage/identity/ways/wallets.js'
import { isUuid } from '../../../../domain/ids.js'
import type { OwnAccount } from '../../account/protocol.js'
import { auditOwn, signInFirst, tenantOfSession } from '../../account/own-account.js'
import { type Bound, composeMessage, signerOf } from './messages.js'
import type { SiweHandler } from './needs.js'

const PATH = '/auth/account/wallets/new'

const bound = ({ session: { tenantId, id } }: OwnAccount): Bound => ({
  tenantId,
  purpose: 'link',
  sessionId: id,
})

export const showNewWallet: SiweHandler<'showNewWallet'> = async (tools, own, context) => {
  const first = await signInFirst(tools, own, PATH, context)
  if (first !== null) return first
  return { tag: 'page', tenant: await tenantOfSession(tools.database, own.session, context) }
}

export const composeLinkMessage: SiweHandler<'composeLinkMessage'> = async (
  tools,
  { session, token, ...order },
  context,
) => {
  const own = { session, token }
  const first = await signInFirst(tools, own, PATH, context)
  return first ?? composeMessage(tools, bound(own), order, context)
}

export const linkOwnWallet: SiweHandler<'linkOwnWallet'> = async (
  tools,
  { session, token, address: ip, ...signed },
  context,
) => {
  const own = { session, token }
  const first = await signInFirst(tools, own, PATH, context)
  if (first !== null) return first
  const { database, clock, random } = tools
  const tenant = await tenantOfSession(database, session, context)
  const address = await signerOf(tools, bound(own), signed, context)
  if (address === null) return { tag: 'wrong', tenant }
  const { accountId } = session
  const now = clock.now()
  const isLinked = await database.system(async (tx) => {
    if (!(await lockAccountInSession(tx, session))) return false
    const wallet = { accountId, id: random.uuid(), address, createdAt: now }
    if (!(await insertWallet(tx, wallet))) return false
    const done = { type: 'account.wallet.linked', address: ip, data: { wallet: address } } as const
    auditOwn(tx, tools, session, context, done)
    return true
  }, context)
  return isLinked ? { tag: 'linked' } : { tag: 'taken', tenant }
}

export const removeOwnWallet: SiweHandler<'removeOwnWallet'> = async (
  tools,
  { walletId, address, ...own },
  context,
) => {
  const first = await signInFirst(tools, own, '/auth/account', context)
  if (first !== null) return first
  if (!isUuid(walletId)) return { tag: 'unknown_wallet' }
  const { session } = own
  return tools.database.system(async (tx) => {
    const removed = await removeWallet(tx, session.accountId, walletId)
    if (removed === 'unknown') return { tag: 'unknown_wallet' }
    if (removed === 'last') return { tag: 'last_way_in' }
    const done = { type: 'account.wallet.removed', address } as const
    auditOwn(tx, tools, session, context, done)
    return { tag: 'removed' }
  }, context)
}
