/** Reads wallets and signatures. */
import type { Handler } from '../../../runtime/kernel/actor.js'
import { signatureRows } from '../../../storage/commerce/wallet-signatures.js'
import { findWallet, walletRows } from '../../../storage/commerce/wallets.js'
import { page } from '../../platform/paging.js'
import { NOT_PROVISIONED, ofAgent, walletOf, type WalletsNeeds } from './find.js'
import type { WalletsProtocol } from './protocol.js'

type Handling<K extends keyof WalletsProtocol> = Handler<WalletsNeeds, WalletsProtocol, K>

export const listWallets: Handling<'listWallets'> = async (
  needs,
  { caller, limit, after },
  { signal },
) => {
  const { database, clock } = needs
  const { tenantId } = caller.principal
  const rows = await database.tenant(
    tenantId,
    (tx) => walletRows(tx, tenantId, clock.now(), limit + 1, after),
    { signal },
  )
  const { items, next } = page(rows, limit)
  return { tag: 'listed', wallets: items.map(walletOf), next }
}

export const readWallet: Handling<'readWallet'> = async (
  { database, clock },
  message,
  { signal },
) => {
  const { tenantId } = message.caller.principal
  const row = await database.tenant(tenantId, (tx) => ofAgent(tx, message, clock.now()), { signal })
  return 'tag' in row ? row : { tag: 'found', wallet: walletOf(row) }
}

export const readOwnWallet: Handling<'readOwnWallet'> = async (
  { database, clock },
  { caller },
  { signal },
) => {
  const { tenantId, subject } = caller.principal
  const row = await database.tenant(
    tenantId,
    (tx) => findWallet(tx, tenantId, subject, clock.now()),
    { signal },
  )
  return row === undefined ? NOT_PROVISIONED : { tag: 'found', wallet: walletOf(row) }
}

export const listWalletSignatures: Handling<'listWalletSignatures'> = async (
  needs,
  message,
  { signal },
) => {
  const { database, clock } = needs
  const { caller, limit, after } = message
  const { tenantId } = caller.principal
  return database.tenant(
    tenantId,
    async (tx) => {
      const row = await ofAgent(tx, message, clock.now())
      if ('tag' in row) return row
      const rows = await signatureRows(tx, tenantId, row.id, limit + 1, after)
      const { items, next } = page(rows, limit)
      return { tag: 'listed' as const, signatures: items, next }
    },
    { signal },
  )
}
