/** Creates wallets, and changes their policy, status and agent. */
import type { Handler, MessageContext } from '../../../runtime/kernel/actor.js'
import {
  assignWalletRow,
  findWallet,
  findWalletById,
  insertAgentWallet,
  lockWallet,
  replaceWalletBudgets,
  setWalletStatus,
  updateWalletPolicy,
  walletKeyContext,
  type WalletRow,
} from '../../../storage/commerce/wallets.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { agentBelongs } from '../../../storage/vault/vault-grants.js'
import { FRESH_FACTORS_SECS, hasFreshFactors } from '../../domain/assurance.js'
import type { AuditOnlyType } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { recordAudit } from '../../platform/record-audit.js'
import { createOnce } from '../../platform/creation.js'
import type { Invalid } from '../payments/protocol.js'
import { ofAgent, UNKNOWN_AGENT, walletOf, walletOfAgent, type WalletsNeeds } from './find.js'
import { addressesOf, policyFault } from './policy.js'
import type { ManagerRefused, OneWallet, PolicyTerms, WalletsProtocol } from './protocol.js'
import { inTenant } from '../../platform/in-tenant.js'

const KEY_BYTES = 32

type Handling<K extends keyof WalletsProtocol> = Handler<WalletsNeeds, WalletsProtocol, K>

export const createWallet: Handling<'createWallet'> = async (needs, message, context) => {
  const { database, sealer, compute, clock, random, settings } = needs
  const { caller, agentId, policy } = message
  const { tenantId } = caller.principal
  const isKnown =
    isUuid(agentId) &&
    (await inTenant(database, tenantId, context, (tx) => agentBelongs(tx, tenantId, agentId)))
  if (!isKnown) return UNKNOWN_AGENT
  const refused = managerRefusal(needs, message) ?? (await termsFault(needs, policy, context))
  if (refused !== undefined) return refused
  const id = random.uuid()
  const { recipients, contracts } = normalized(policy)
  const key = random.bytes(KEY_BYTES)
  try {
    const address = await compute.run('addressOf', { key: key.slice() }, context)
    const keySealed = await sealer.seal(tenantId, walletKeyContext(id), key)
    return await createOnce(needs, message, context, async (tx) => {
      const now = clock.now()
      const most = settings.max_wallets_per_tenant
      const policed = { recipients, contracts, createdAt: now }
      const wallet = { id, tenantId, agentId, address, keySealed, ...policed }
      const done = await insertAgentWallet(tx, wallet, most)
      if (done === 'exists') return { tag: 'exists' as const }
      if (done === 'full') return { tag: 'full' as const, most }
      await replaceWalletBudgets(tx, tenantId, id, budgetsOf(needs, policy))
      const row = (await findWallet(tx, tenantId, agentId, now))!
      const data = { address, ...wire(row) }
      record(tx, needs, message, context, { type: 'admin.wallet.created', walletId: id, data })
      return { tag: 'created' as const, wallet: walletOf(row), replayed: false }
    })
  } finally {
    key.fill(0)
  }
}

export const updateWallet: Handling<'updateWallet'> = async (needs, message, context) => {
  const { clock } = needs
  const { caller, agentId, change: given } = message
  const { tenantId } = caller.principal
  const seen = await walletOfAgent(needs, message, context)
  if ('tag' in seen) return seen
  // Only what is given is checked: an asset of an old budget may have left the settings.
  const terms = {
    recipients: given.recipients ?? null,
    contracts: given.contracts ?? [],
    budgets: given.budgets ?? [],
  }
  const refused = managerRefusal(needs, message) ?? (await termsFault(needs, terms, context))
  if (refused !== undefined) return refused
  const asked = normalized(terms)
  return change(needs, message, context, async (tx, row) => {
    const policy = {
      recipients: given.recipients === undefined ? row.recipients : asked.recipients,
      contracts: given.contracts === undefined ? row.contracts : asked.contracts,
    }
    await updateWalletPolicy(tx, tenantId, row.id, policy, clock.now())
    if (given.budgets !== undefined)
      await replaceWalletBudgets(tx, tenantId, row.id, budgetsOf(needs, terms))
    const after = (await findWallet(tx, tenantId, agentId, clock.now()))!
    const data = { before: wire(row), after: wire(after) }
    record(tx, needs, message, context, { type: 'admin.wallet.updated', walletId: row.id, data })
  })
}

export const freezeWallet: Handling<'freezeWallet'> = (needs, message, context) =>
  change(needs, message, context, async (tx, { tenantId, id }) => {
    if (await setWalletStatus(tx, tenantId, id, 'frozen', needs.clock.now()))
      record(tx, needs, message, context, { type: 'admin.wallet.frozen', walletId: id })
  })

export const unfreezeWallet: Handling<'unfreezeWallet'> = async (needs, message, context) => {
  const { tenantId } = message.caller.principal
  const seen = await walletOfAgent(needs, message, context)
  if ('tag' in seen) return seen
  const refused = managerRefusal(needs, message)
  if (refused !== undefined) return refused
  return change(needs, message, context, async (tx, { id }) => {
    if (await setWalletStatus(tx, tenantId, id, 'active', needs.clock.now()))
      record(tx, needs, message, context, { type: 'admin.wallet.unfrozen', walletId: id })
  })
}

export const assignWallet: Handling<'assignWallet'> = async (needs, message, context) => {
  const { caller, agentId, walletId } = message
  const { tenantId } = caller.principal
  return inTenant(needs.database, tenantId, context, async (tx) => {
    const now = needs.clock.now()
    const before = isUuid(walletId) ? await findWalletById(tx, tenantId, walletId, now) : undefined
    if (before === undefined) return { tag: 'unknown_wallet' }
    const isKnown = isUuid(agentId) && (await agentBelongs(tx, tenantId, agentId))
    if (!isKnown) return UNKNOWN_AGENT
    const refused = managerRefusal(needs, message)
    if (refused !== undefined) return refused
    if (!(await assignWalletRow(tx, tenantId, walletId, agentId, now))) {
      const own = await findWallet(tx, tenantId, agentId, now)
      return { tag: own === undefined || own.id === walletId ? 'in_use' : 'exists' }
    }
    const data = { previous_agent_id: before.agentId }
    record(tx, needs, message, context, { type: 'admin.wallet.assigned', walletId, data })
    const row = (await findWallet(tx, tenantId, agentId, now))!
    return { tag: 'found' as const, wallet: walletOf(row) }
  })
}

/** Runs `work` with the locked wallet, and returns the wallet as it is afterwards. */
function change(
  { database, clock }: WalletsNeeds,
  message: OneWallet,
  context: MessageContext,
  work: (tx: Transaction, row: WalletRow) => Promise<void>,
) {
  const { caller, agentId } = message
  const { tenantId } = caller.principal
  return inTenant(database, tenantId, context, async (tx) => {
    if (isUuid(agentId)) await lockWallet(tx, tenantId, agentId)
    const row = await ofAgent(tx, message, clock.now())
    if ('tag' in row) return row
    await work(tx, row)
    const changed = await findWallet(tx, tenantId, agentId, clock.now())
    return { tag: 'found' as const, wallet: walletOf(changed!) }
  })
}

function record(
  tx: Transaction,
  needs: WalletsNeeds,
  { caller, agentId }: OneWallet,
  context: MessageContext,
  { type, walletId, data }: { type: AuditOnlyType; walletId: string; data?: object },
): void {
  const resource = { type: 'wallet', id: walletId }
  recordAudit(tx, needs, caller, context, { type, resource, data: { agent_id: agentId, ...data } })
}

/** Who may widen a policy: not the agent of the wallet, and a person only after a recent sign-in. */
function managerRefusal(
  { clock }: WalletsNeeds,
  { caller, agentId }: OneWallet,
): ManagerRefused | undefined {
  const { principal } = caller
  if (principal.subjectType === 'agent' && principal.subject === agentId)
    return { tag: 'own_wallet' }
  if (hasFreshFactors(principal, clock.nowSecs())) return undefined
  return { tag: 'step_up', maxAgeSecs: FRESH_FACTORS_SECS }
}

async function termsFault(
  { compute, assets }: WalletsNeeds,
  terms: PolicyTerms,
  context: MessageContext,
): Promise<Invalid | undefined> {
  const addresses = addressesOf(terms).map(({ address }) => address)
  const checksums =
    addresses.length === 0 ? [] : await compute.run('checksums', { addresses }, context)
  return policyFault(terms, assets, checksums)
}

const budgetsOf = ({ settings }: WalletsNeeds, { budgets }: PolicyTerms) =>
  budgets.map((budget) => ({
    ...budget,
    asset: budget.asset.toLowerCase(),
    windowSecs: budget.windowSecs ?? settings.default_window_secs,
  }))

/** Addresses in lower case, each once. */
function normalized({ recipients, contracts }: Pick<PolicyTerms, 'recipients' | 'contracts'>) {
  const lower = (texts: readonly string[]) => [
    ...new Set(texts.map((address) => address.toLowerCase())),
  ]
  return {
    recipients: recipients === null ? null : lower(recipients),
    contracts: lower(contracts),
  }
}

/** The policy in audit events. */
function wire({ recipients, contracts, budgets }: WalletRow) {
  return {
    recipients,
    contracts,
    budgets: budgets.map(({ network, asset, paymentMax, windowMax, windowSecs }) => ({
      network,
      asset,
      payment_max: paymentMax,
      window_max: windowMax,
      window_secs: windowSecs,
    })),
  }
}
