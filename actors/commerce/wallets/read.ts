/** Reads wallets and signatures. */
import type { Handler } from '../../../runtime/kernel/actor.js'
import { listSignatureRows } from '../../../storage/commerce/wallet-signatures.js'
import { findWallet, listWalletRows } from '../../../storage/commerce/wallets.js'
import { listed, listedOf } from '../../platform/paging.js'
import { NOT_PROVISIONED, ofAgent, walletOf, walletOfAgent, type WalletsNeeds } from './find.js'
import type { WalletsProtocol } from './protocol.js'
import { inTenant } from '../../platform/in-tenant.js'

type Handling<K extends keyof WalletsProtocol> = Handler<WalletsNeeds, WalletsProtocol, K>

export const listWallets: Handling<'listWallets'> = async (needs, message, context) => {
  const { database, clock } = needs
  const { caller, limit, after } = message
  const { tenantId } = caller.principal
  const rows = await inTenant(database, tenantId, context, (tx) =>
    listWalletRows(tx, tenantId, clock.now(), limit + 1, after),
  )
  return listedOf(rows, limit, walletOf)
}

export const readWallet: Handling<'readWallet'> = async (needs, message, context) => {
  const row = await walletOfAgent(needs, message, context)
  return 'tag' in row ? row : { tag: 'found', wallet: walletOf(row) }
}

export const readOwnWallet: Handling<'readOwnWallet'> = async (needs, { caller }, context) => {
  const { database, clock } = needs
  const { tenantId, subject } = caller.principal
  const row = await inTenant(database, tenantId, context, (tx) =>
    findWallet(tx, tenantId, subject, clock.now()),
  )
  return row === undefined ? NOT_PROVISIONED : { tag: 'found', wallet: walletOf(row) }
}

export const listWalletSignatures: Handling<'listWalletSignatures'> = (
  { database, clock },
  message,
  context,
) => {
  const { caller, limit, after } = message
  const { tenantId } = caller.principal
  return inTenant(database, tenantId, context, async (tx) => {
    const row = await ofAgent(tx, message, clock.now())
    if ('tag' in row) return row
    const rows = await listSignatureRows(tx, tenantId, row.id, limit + 1, after)
    return listed(rows, limit)
  })
}
