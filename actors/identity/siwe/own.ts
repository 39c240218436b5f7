/** Ethereum accounts on the account page: link one, remove one. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../storage/identity/accounts.js'
import { insertWallet, removeWallet } from '../../../storage/identity/ways/wallets.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { isUuid } from '../../domain/ids.js'
import type { OwnAccount } from '../accounts/protocol.js'
import { personAuditRecord } from '../password-recovery/records.js'
import { signInFirst, tenantOfSession } from '../sign-in/own-account.js'
import type { Bound, SiweMessages } from './messages.js'
import type { SiweTools } from './needs.js'
import type { SiweProtocol } from './protocol.js'

const PATH = '/auth/account/wallets/new'

type Reply<K extends keyof SiweProtocol> = Promise<SiweProtocol[K]['reply']>

export function ownWallets(tools: SiweTools, { compose, verify }: SiweMessages) {
  const { database, clock, random } = tools
  const bound = ({ session: { tenantId, id } }: OwnAccount): Bound => ({
    tenantId,
    purpose: 'link',
    sessionId: id,
  })

  return {
    async showNewWallet(own: OwnAccount, context: MessageContext): Reply<'showNewWallet'> {
      const first = await signInFirst(tools, own, PATH, context)
      if (first !== null) return first
      return { tag: 'page', tenant: await tenantOfSession(database, own.session, context) }
    },

    async composeLinkMessage(
      { session, token, ...order }: SiweProtocol['composeLinkMessage']['message'],
      context: MessageContext,
    ): Reply<'composeLinkMessage'> {
      const own = { session, token }
      return (await signInFirst(tools, own, PATH, context)) ?? compose(bound(own), order, context)
    },

    async linkOwnWallet(
      { session, token, address: ip, ...signed }: SiweProtocol['linkOwnWallet']['message'],
      context: MessageContext,
    ): Reply<'linkOwnWallet'> {
      const own = { session, token }
      const first = await signInFirst(tools, own, PATH, context)
      if (first !== null) return first
      const tenant = await tenantOfSession(database, session, context)
      const account = await verify(bound(own), signed, context)
      if (account === null) return { tag: 'wrong', tenant }
      const { tenantId, accountId, sub } = session
      const now = clock.now()
      const isLinked = await database.system(async (tx) => {
        if (!(await lockAccountInSession(tx, session))) return false
        const wallet = { accountId, id: random.uuid(), address: account, createdAt: now }
        if (!(await insertWallet(tx, wallet))) return false
        const { requestId } = context
        const data = { wallet: account }
        const type = 'account.wallet.linked'
        const done = { tenantId, type, sub, address: ip, requestId, data } as const
        appendAudit(tx, [personAuditRecord(random, done, now)])
        return true
      }, context)
      return isLinked ? { tag: 'linked' } : { tag: 'taken', tenant }
    },

    async removeOwnWallet(
      { walletId, address, ...own }: SiweProtocol['removeOwnWallet']['message'],
      context: MessageContext,
    ): Reply<'removeOwnWallet'> {
      const first = await signInFirst(tools, own, '/auth/account', context)
      if (first !== null) return first
      if (!isUuid(walletId)) return { tag: 'unknown_wallet' }
      const { tenantId, accountId, sub } = own.session
      return database.system(async (tx) => {
        const removed = await removeWallet(tx, accountId, walletId)
        if (removed === 'unknown') return { tag: 'unknown_wallet' }
        if (removed === 'last') return { tag: 'last_way_in' }
        const { requestId } = context
        const done = { tenantId, type: 'account.wallet.removed', sub, address, requestId } as const
        appendAudit(tx, [personAuditRecord(random, done, clock.now())])
        return { tag: 'removed' }
      }, context)
    },
  }
}
