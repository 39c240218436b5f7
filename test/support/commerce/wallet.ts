/** Agents with wallets over HTTP, for tests. */
import type { Answer, Api, Json, Workspace } from '../api.js'
import { NETWORK } from './chain.js'

export const WALLETS = { SVC_WALLET__ENABLED: 'true' }

export interface WalletAgent {
  readonly agentId: string
  readonly token: string
  /** The path of the wallet for its managers. */
  readonly at: string
  /** The address of the wallet. Empty without a wallet. */
  readonly address: string
  /** Asks for a signature of a payment. */
  pay(required: unknown, headers?: Record<string, string>): Promise<Answer>
  transact(json: Json): Promise<Answer>
}

export type Policy = {
  readonly recipients?: readonly string[] | null
  readonly contracts?: readonly string[]
  readonly budgets?: readonly Json[]
}

/** A budget of an asset on the test chain. */
export function budget(asset: string, paymentMax: bigint, windowMax: bigint, secs?: number): Json {
  const terms = { payment_max: String(paymentMax), window_max: String(windowMax) }
  return { network: NETWORK, asset, ...terms, ...(secs === undefined ? {} : { window_secs: secs }) }
}

/**
 * A new agent of a workspace that may sign with its wallet.
 * @param policy null for an agent without a wallet.
 */
export async function walletAgent(
  api: Api,
  { token: owner, tenantId }: Pick<Workspace, 'token' | 'tenantId'>,
  policy: Policy | null,
  scopes: readonly string[] = ['wallet:sign'],
): Promise<WalletAgent> {
  const { key, agentId } = await api.register(tenantId)
  const path = `/api/v1/agents/${agentId}`
  expectStatus(200, await api.patch(path, owner, { scopes }))
  const selector = { agent_id: agentId, tenant_id: tenantId }
  const login = expectStatus(200, await api.login(key, selector, scopes.join(' ')))
  const token = String(login['access_token'])
  const at = `${path}/wallet`
  const wallet = policy === null ? {} : expectStatus(201, await api.post(at, owner, policy))
  return {
    agentId,
    token,
    at,
    address: String(wallet['address'] ?? ''),
    pay: (required, headers = {}) =>
      api.post('/api/v1/wallet/x402-payments', token, { payment_required: required }, headers),
    transact: (json) => api.post('/api/v1/wallet/transactions', token, json),
  }
}

export function expectStatus(status: number, answer: Answer): Json {
  if (answer.status === status) return answer.body
  throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`)
}
