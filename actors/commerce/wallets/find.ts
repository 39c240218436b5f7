/** Finds wallets for the handlers. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { findWallet, type WalletRow } from '../../../storage/commerce/wallets.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { agentBelongs } from '../../../storage/vault/vault-grants.js'
import { isUuid } from '../../domain/ids.js'
import type { Asset } from '../../domain/commerce/assets.js'
import type { WalletCompute } from './draft.js'
import type { NotProvisioned, OneWallet, UnknownAgent, Wallet } from './protocol.js'
import type { WalletSettings } from './settings.js'
import type { SigningNeeds } from './signing.js'
import { inTenant } from '../../platform/in-tenant.js'

export const UNKNOWN_AGENT = { tag: 'unknown_agent' } as const
export const NOT_PROVISIONED = { tag: 'not_provisioned' } as const

export type WalletsNeeds = SigningNeeds & {
  readonly compute: WalletCompute
  /** The assets that the deployment knows. */
  readonly assets: readonly Asset[]
  readonly settings: Omit<WalletSettings, 'enabled'>
}

/** The wallet of an agent that the tenant of the caller sees, in its own transaction. */
export function walletOfAgent(
  { database, clock }: WalletsNeeds,
  message: OneWallet,
  context: MessageContext,
): ReturnType<typeof ofAgent> {
  const { tenantId } = message.caller.principal
  return inTenant(database, tenantId, context, (tx) => ofAgent(tx, message, clock.now()))
}

/** The wallet of an agent that the tenant sees. */
export async function ofAgent(
  tx: Transaction,
  { caller, agentId }: OneWallet,
  now: Date,
): Promise<WalletRow | UnknownAgent | NotProvisioned> {
  const { tenantId } = caller.principal
  if (!isUuid(agentId)) return UNKNOWN_AGENT
  const row = await findWallet(tx, tenantId, agentId, now)
  // A wallet outlives its agent, and can still be read and frozen.
  if (row !== undefined) return row
  return (await agentBelongs(tx, tenantId, agentId)) ? NOT_PROVISIONED : UNKNOWN_AGENT
}

export function walletOf({ tenantId: _tenant, ...wallet }: WalletRow): Wallet {
  return wallet
}
