/**
 * Wallets of agents: an administrator creates the key and sets the policy, and the agent has payments and transactions
 * signed within it. Signing runs in the pool (compute.ts). No message returns a private key.
 */
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { PoolOptions } from '../../../runtime/kernel/threads/pool.js'
import {
  assignWallet,
  findWallet,
  findWalletById,
  insertAgentWallet,
  listWallets,
  lockWallet,
  replaceWalletBudgets,
  setWalletStatus,
  updateWalletPolicy,
  walletKeyContext,
  type WalletRow,
} from '../../../storage/commerce/wallets.js'
import { listWalletSignatures } from '../../../storage/commerce/wallet-signatures.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { agentBelongs } from '../../../storage/vault/vault-grants.js'
import { FRESH_FACTORS_SECS, hasFreshFactors } from '../../domain/assurance.js'
import { audited, type AuditOnlyType } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { page } from '../../platform/paging.js'
import type { Asset } from '../x402/assets.js'
import type { WalletCompute } from './draft.js'
import { paymentDraft } from './payment.js'
import { addressesOf, policyFault } from './policy.js'
import {
  type ManagerRefused,
  type NotProvisioned,
  type OneWallet,
  type PolicyInvalid,
  type PolicyTerms,
  type UnknownAgent,
  type Wallet,
  type WalletsProtocol,
  wallets,
} from './protocol.js'
import type { WalletSettings } from './settings.js'
import { signing, type SigningNeeds } from './signing.js'
import { transactionDraft } from './transaction.js'

const KEY_BYTES = 32
/** A signature takes about two milliseconds. */
const BATCH_MAX = 8
const UNKNOWN_AGENT = { tag: 'unknown_agent' } as const
const NOT_PROVISIONED = { tag: 'not_provisioned' } as const

export type WalletsNeeds = SigningNeeds & {
  readonly compute: WalletCompute
  /** The assets that the deployment knows. */
  readonly assets: readonly Asset[]
  readonly settings: Omit<WalletSettings, 'enabled'>
}

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
    pay: ({ caller }) => caller.principal.subject,
    transact: ({ caller }) => caller.principal.subject,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, sealer, compute, clock, random, assets, settings } = needs
    const sign = signing(needs)

    function record(
      tx: Transaction,
      { caller, agentId }: OneWallet,
      type: AuditOnlyType,
      walletId: string,
      { requestId }: MessageContext,
      data: Readonly<Record<string, unknown>> = {},
    ): void {
      appendAudit(tx, [
        audited(caller, {
          id: random.uuid(),
          tenantId: caller.principal.tenantId,
          type,
          occurredAt: clock.now(),
          resource: { type: 'wallet', id: walletId },
          requestId,
          data: { agent_id: agentId, ...data },
        }),
      ])
    }

    /** Who may widen a policy: not the agent of the wallet, and a person only after a recent sign-in. */
    function managerRefusal({ caller, agentId }: OneWallet): ManagerRefused | undefined {
      const { principal } = caller
      if (principal.subjectType === 'agent' && principal.subject === agentId) {
        return { tag: 'own_wallet' }
      }
      if (hasFreshFactors(principal, clock.nowSecs())) return undefined
      return { tag: 'step_up', maxAgeSecs: FRESH_FACTORS_SECS }
    }

    async function termsFault(
      terms: PolicyTerms,
      context: MessageContext,
    ): Promise<PolicyInvalid | undefined> {
      const addresses = addressesOf(terms).map(({ address }) => address)
      const checksums =
        addresses.length === 0 ? [] : await compute.run('checksums', { addresses }, context)
      return policyFault(terms, assets, checksums)
    }

    /** The wallet of an agent that the tenant sees. */
    async function ofAgent(
      tx: Transaction,
      { caller, agentId }: OneWallet,
    ): Promise<WalletRow | UnknownAgent | NotProvisioned> {
      const { tenantId } = caller.principal
      if (!isUuid(agentId)) return UNKNOWN_AGENT
      const row = await findWallet(tx, tenantId, agentId, clock.now())
      // A wallet outlives its agent, and can still be read and frozen.
      if (row !== undefined) return row
      return (await agentBelongs(tx, tenantId, agentId)) ? NOT_PROVISIONED : UNKNOWN_AGENT
    }

    /** Runs `work` with the locked wallet, and returns the wallet as it is afterwards. */
    async function change(
      message: OneWallet,
      work: (tx: Transaction, row: WalletRow) => Promise<void>,
      { signal }: MessageContext,
    ) {
      const { tenantId } = message.caller.principal
      return database.tenant(
        tenantId,
        async (tx) => {
          if (isUuid(message.agentId)) await lockWallet(tx, tenantId, message.agentId)
          const row = await ofAgent(tx, message)
          if ('tag' in row) return row
          await work(tx, row)
          const changed = await findWallet(tx, tenantId, message.agentId, clock.now())
          return { tag: 'found' as const, wallet: walletOf(changed!) }
        },
        { signal },
      )
    }

    const budgetsOf = (terms: PolicyTerms) =>
      terms.budgets.map((budget) => ({
        ...budget,
        asset: budget.asset.toLowerCase(),
        windowSecs: budget.windowSecs ?? settings.default_window_secs,
      }))

    return {
      async list({ caller, limit, after }, { signal }) {
        const { tenantId } = caller.principal
        const rows = await database.tenant(
          tenantId,
          (tx) => listWallets(tx, tenantId, clock.now(), limit + 1, after),
          { signal },
        )
        const { items, next } = page(rows, limit)
        return { tag: 'listed', wallets: items.map(walletOf), next }
      },

      async create(message, context) {
        const { caller, agentId, policy, idempotency } = message
        const { signal } = context
        const { tenantId } = caller.principal
        const isKnown =
          isUuid(agentId) &&
          (await database.tenant(tenantId, (tx) => agentBelongs(tx, tenantId, agentId), { signal }))
        if (!isKnown) return UNKNOWN_AGENT
        const refused = managerRefusal(message) ?? (await termsFault(policy, context))
        if (refused !== undefined) return refused
        const id = random.uuid()
        const { recipients, contracts } = normalized(policy)
        const key = random.bytes(KEY_BYTES)
        try {
          const address = await compute.run('addressOf', { key: key.slice() }, context)
          const keySealed = await sealer.seal(tenantId, walletKeyContext(id), key)
          return await database.tenant(
            tenantId,
            (tx) =>
              idempotently(
                tx,
                idempotency,
                async () => {
                  const now = clock.now()
                  const most = settings.max_wallets_per_tenant
                  const policed = { recipients, contracts, createdAt: now }
                  const wallet = { id, tenantId, agentId, address, keySealed, ...policed }
                  const done = await insertAgentWallet(tx, wallet, most)
                  if (done === 'exists') return { tag: 'exists' as const }
                  if (done === 'full') return { tag: 'full' as const, most }
                  await replaceWalletBudgets(tx, tenantId, id, budgetsOf(policy))
                  const row = (await findWallet(tx, tenantId, agentId, now))!
                  const data = { address, ...wire(row) }
                  record(tx, message, 'admin.wallet.created', id, context, data)
                  return { tag: 'created' as const, wallet: walletOf(row), replayed: false }
                },
                (outcome) => (outcome.tag === 'created' ? outcome : undefined),
              ),
            { signal },
          )
        } finally {
          key.fill(0)
        }
      },

      async read(message, { signal }) {
        const { tenantId } = message.caller.principal
        const row = await database.tenant(tenantId, (tx) => ofAgent(tx, message), { signal })
        return 'tag' in row ? row : { tag: 'found', wallet: walletOf(row) }
      },

      async readOwn({ caller }, { signal }) {
        const { tenantId, subject } = caller.principal
        const row = await database.tenant(
          tenantId,
          (tx) => findWallet(tx, tenantId, subject, clock.now()),
          { signal },
        )
        return row === undefined ? NOT_PROVISIONED : { tag: 'found', wallet: walletOf(row) }
      },

      async update(message, context) {
        const { caller, agentId, change: given } = message
        const { tenantId } = caller.principal
        const seen = await database.tenant(tenantId, (tx) => ofAgent(tx, message), {
          signal: context.signal,
        })
        if ('tag' in seen) return seen
        // Only what is given is checked: an asset of an old budget may have left the settings.
        const terms = {
          recipients: given.recipients ?? null,
          contracts: given.contracts ?? [],
          budgets: given.budgets ?? [],
        }
        const refused = managerRefusal(message) ?? (await termsFault(terms, context))
        if (refused !== undefined) return refused
        const asked = normalized(terms)
        return change(
          message,
          async (tx, row) => {
            const policy = {
              recipients: given.recipients === undefined ? row.recipients : asked.recipients,
              contracts: given.contracts === undefined ? row.contracts : asked.contracts,
            }
            await updateWalletPolicy(tx, tenantId, row.id, policy, clock.now())
            if (given.budgets !== undefined) {
              await replaceWalletBudgets(tx, tenantId, row.id, budgetsOf(terms))
            }
            const after = (await findWallet(tx, tenantId, agentId, clock.now()))!
            const data = { before: wire(row), after: wire(after) }
            record(tx, message, 'admin.wallet.updated', row.id, context, data)
          },
          context,
        )
      },

      freeze: (message, context) =>
        change(
          message,
          async (tx, { tenantId, id }) => {
            if (await setWalletStatus(tx, tenantId, id, 'frozen', clock.now())) {
              record(tx, message, 'admin.wallet.frozen', id, context)
            }
          },
          context,
        ),

      async unfreeze(message, context) {
        const { tenantId } = message.caller.principal
        const seen = await database.tenant(tenantId, (tx) => ofAgent(tx, message), {
          signal: context.signal,
        })
        if ('tag' in seen) return seen
        const refused = managerRefusal(message)
        if (refused !== undefined) return refused
        return change(
          message,
          async (tx, { id }) => {
            if (await setWalletStatus(tx, tenantId, id, 'active', clock.now())) {
              record(tx, message, 'admin.wallet.unfrozen', id, context)
            }
          },
          context,
        )
      },

      async assign(message, context) {
        const { caller, agentId, walletId } = message
        const { tenantId } = caller.principal
        return database.tenant(
          tenantId,
          async (tx) => {
            const now = clock.now()
            const before = isUuid(walletId)
              ? await findWalletById(tx, tenantId, walletId, now)
              : undefined
            if (before === undefined) return { tag: 'unknown_wallet' }
            const isKnown = isUuid(agentId) && (await agentBelongs(tx, tenantId, agentId))
            if (!isKnown) return UNKNOWN_AGENT
            const refused = managerRefusal(message)
            if (refused !== undefined) return refused
            if (!(await assignWallet(tx, tenantId, walletId, agentId, now))) {
              const own = await findWallet(tx, tenantId, agentId, now)
              return { tag: own === undefined || own.id === walletId ? 'in_use' : 'exists' }
            }
            const data = { previous_agent_id: before.agentId }
            record(tx, message, 'admin.wallet.assigned', walletId, context, data)
            const row = (await findWallet(tx, tenantId, agentId, now))!
            return { tag: 'found' as const, wallet: walletOf(row) }
          },
          { signal: context.signal },
        )
      },

      async listSignatures(message, { signal }) {
        const { caller, limit, after } = message
        const { tenantId } = caller.principal
        return database.tenant(
          tenantId,
          async (tx) => {
            const row = await ofAgent(tx, message)
            if ('tag' in row) return row
            const rows = await listWalletSignatures(tx, tenantId, row.id, limit + 1, after)
            const { items, next } = page(rows, limit)
            return { tag: 'listed' as const, signatures: items, next }
          },
          { signal },
        )
      },

      async pay(message, context) {
        const { required } = message
        const maxAuthorizationSecs = settings.max_authorization_secs
        const options = { required, assets, maxAuthorizationSecs, compute, random }
        const outcome = await sign(
          message,
          (wallet, id, now) => paymentDraft(options, wallet, id, now),
          context,
        )
        if (outcome.tag !== 'signed') return outcome
        return { tag: 'signed', payment: outcome.answer, replayed: outcome.replayed }
      },

      async transact(message, context) {
        const options = { terms: message.transaction, assets, compute }
        const outcome = await sign(
          message,
          (wallet, id, now) => transactionDraft(options, wallet, id, now),
          context,
        )
        if (outcome.tag !== 'signed') return outcome
        return { tag: 'signed', transaction: outcome.answer, replayed: outcome.replayed }
      },
    }
  },
})

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

function walletOf({ tenantId: _tenant, ...wallet }: WalletRow): Wallet {
  return wallet
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
