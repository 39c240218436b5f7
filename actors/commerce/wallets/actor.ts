/**
 * Wallets of agents: an administrator creates the key and sets the policy, and the agent has payments and transactions
 * signed within it. Signing runs in the pool (compute.ts). No message returns a private key.
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import type { PoolOptions } from '../../../runtime/kernel/threads/pool.js'
import type { WalletsNeeds } from './find.js'
import { assignWallet, createWallet, freezeWallet, unfreezeWallet, updateWallet } from './manage.js'
import { type WalletsProtocol, wallets } from './protocol.js'
import { listWalletSignatures, listWallets, readOwnWallet, readWallet } from './read.js'
import { signWalletTransaction, signX402Payment } from './sign.js'

/** A signature takes about two milliseconds. */
const BATCH_MAX = 8

/** Options of the pool behind `WalletsNeeds.compute`. No thread starts before the first wallet. */
export function walletPool(threadsMax: number): PoolOptions {
  return {
    name: 'wallets',
    module: new URL('./compute.js', import.meta.url),
    threadsMin: 0,
    threadsMax,
    batchMax: BATCH_MAX,
    forgets: true,
  }
}

export const walletsActor = defineActor<WalletsProtocol, WalletsNeeds>({
  address: wallets,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 128 },
  // The requests of one agent wait here, and not with connections at the lock of its wallet.
  lane: {
    signX402Payment: ({ caller }) => caller.principal.subject,
    signWalletTransaction: ({ caller }) => caller.principal.subject,
  },
  supervision: { onFailure: 'resume' },
  handlers: {
    listWallets,
    createWallet,
    readWallet,
    readOwnWallet,
    updateWallet,
    freezeWallet,
    unfreezeWallet,
    assignWallet,
    listWalletSignatures,
    signX402Payment,
    signWalletTransaction,
  },
})
