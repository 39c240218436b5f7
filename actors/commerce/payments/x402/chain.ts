/**
 * Queries a chain for the state of an authorization: whether it is spent, and by which transfer.
 * EIP-3009.
 */
import { type ChainNode, NodeUnavailable, quantity, word } from '../../../platform/evm/node.js'

/** `authorizationState(address,bytes32)`. */
const AUTHORIZATION_STATE = '0xe94a0102'
/** `Transfer(address,address,uint256)`. */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
/** `AuthorizationUsed(address,bytes32)`. */
const AUTHORIZATION_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5'
/** `AuthorizationCanceled(address,bytes32)`. */
const AUTHORIZATION_CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81'
/**
 * Block range of one log query that nodes accept. The search runs backwards over a few hours of
 * blocks.
 */
const BLOCKS_PER_QUERY = 1_800
const PAGES_MAX = 12

export type OnChain = {
  /** Contract address of the token. */
  readonly asset: string
  readonly payer: string
  readonly payTo: string
  readonly amount: string
  readonly nonce: string
}

export type AuthorizationStatus =
  /** The transfer is in a block. */
  | { readonly tag: 'settled'; readonly transaction: string }
  /** Spent without paying: the payer cancelled the authorization. */
  | { readonly tag: 'cancelled' }
  /** Not spent. `blockTimeSecs` is the Unix time of the latest block. */
  | { readonly tag: 'unspent'; readonly blockTimeSecs: number }
  /** The node did not respond, or its responses contradict each other. */
  | { readonly tag: 'unclear'; readonly error: string }

/** A token transfer in a block. Addresses and hashes are in lower case. */
type TransferLog = {
  readonly asset: string
  readonly payer: string
  readonly payTo: string
  /** Atomic units, decimal. */
  readonly amount: string
  readonly transaction: string
  readonly logIndex: number
}

export interface Chain {
  /** Number of the latest block. Null when the node does not respond. */
  latestBlock(): Promise<number | null>
  /** Transfers of tokens to addresses in a block range. Null when the node does not respond. */
  transfers(
    filter: { readonly assets: readonly string[]; readonly payTo: readonly string[] },
    from: number,
    to: number,
  ): Promise<readonly TransferLog[] | null>
  /** @param transaction a transaction hash to check first, if one is known. */
  look(payment: OnChain, transaction: string | null): Promise<AuthorizationStatus>
  /** Whether the latest block has a contract at an address. Null when the node does not respond. */
  hasCode(address: string): Promise<boolean | null>
  /** Chain id that the node reports, for readiness. Null when the node does not respond. */
  chainId(): Promise<number | null>
}

type Log = {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly transactionHash: string
  readonly logIndex?: unknown
}

export function createChain(node: ChainNode): Chain {
  const { call } = node

  /**
   * True if the transaction made the transfer. Undefined while it has no receipt. The Transfer log
   * of an authorization directly follows its AuthorizationUsed log: one transaction may use several
   * authorizations and pay us for only one of them.
   */
  async function transferIn(transaction: string, payment: OnChain): Promise<boolean | undefined> {
    const receipt = (await call('eth_getTransactionReceipt', [transaction])) as {
      status?: unknown
      logs?: unknown
    } | null
    if (receipt === null) return undefined
    if (receipt.status !== '0x1' || !Array.isArray(receipt.logs)) return false
    const ofToken = receipt.logs
      .filter(isLog)
      .filter(({ address }) => address.toLowerCase() === payment.asset.toLowerCase())
    const used = ofToken.findIndex((log) => isUse(log, payment))
    const next = used < 0 ? undefined : ofToken[used + 1]
    return next !== undefined && isTransfer(next, payment)
  }

  /** The log that used or cancelled the authorization. */
  async function spending(payment: OnChain): Promise<Log | undefined> {
    let to = await node.latestBlock()
    for (let page = 0; page < PAGES_MAX && to >= 0; page += 1) {
      const from = Math.max(0, to - BLOCKS_PER_QUERY + 1)
      const logs = await call('eth_getLogs', [
        {
          address: payment.asset,
          fromBlock: `0x${from.toString(16)}`,
          toBlock: `0x${to.toString(16)}`,
          topics: [
            [AUTHORIZATION_USED, AUTHORIZATION_CANCELED],
            word(payment.payer),
            payment.nonce,
          ],
        },
      ])
      if (!Array.isArray(logs)) throw new NodeUnavailable('eth_getLogs returned no list')
      const found = logs.filter(isLog).find((log) => concerns(log, payment))
      if (found !== undefined) return found
      to = from - 1
    }
    return undefined
  }

  async function look(payment: OnChain, transaction: string | null): Promise<AuthorizationStatus> {
    if (transaction !== null && (await transferIn(transaction, payment)) === true) {
      return { tag: 'settled', transaction }
    }
    // Reads the block time before the state: an authorization that is unspent at a block after its
    // expiry stays unspent permanently.
    const block = (await call('eth_getBlockByNumber', ['latest', false])) as {
      timestamp?: unknown
      number?: unknown
    } | null
    const blockTimeSecs = quantity(block?.timestamp)
    const data = AUTHORIZATION_STATE + word(payment.payer).slice(2) + payment.nonce.slice(2)
    const state = await call('eth_call', [{ to: payment.asset, data }, block?.number])
    if (typeof state !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(state)) {
      throw new NodeUnavailable('the asset does not support authorizations')
    }
    if (BigInt(state) === 0n) return { tag: 'unspent', blockTimeSecs }
    const log = await spending(payment)
    if (log === undefined) return { tag: 'unclear', error: 'spent, and not found in the logs' }
    if (log.topics[0]?.toLowerCase() === AUTHORIZATION_CANCELED) return { tag: 'cancelled' }
    const spender = log.transactionHash.toLowerCase()
    return (await transferIn(spender, payment)) === true
      ? { tag: 'settled', transaction: spender }
      : { tag: 'unclear', error: 'spent without its transfer' }
  }

  async function transfers(
    { assets, payTo }: { readonly assets: readonly string[]; readonly payTo: readonly string[] },
    from: number,
    to: number,
  ): Promise<readonly TransferLog[]> {
    const logs = await call('eth_getLogs', [
      {
        address: assets,
        fromBlock: `0x${from.toString(16)}`,
        toBlock: `0x${to.toString(16)}`,
        topics: [TRANSFER, null, payTo.map(word)],
      },
    ])
    if (!Array.isArray(logs)) throw new NodeUnavailable('eth_getLogs returned no list')
    return logs.filter(isLog).flatMap((log) => transferOf(log))
  }

  return {
    async look(payment, transaction) {
      try {
        return await look(payment, transaction)
      } catch (error) {
        if (error instanceof NodeUnavailable) return { tag: 'unclear', error: error.message }
        throw error
      }
    },
    chainId: () => orNull(() => node.chainId()),
    hasCode: (address) =>
      orNull(async () => isCode(await call('eth_getCode', [address, 'latest']))),
    latestBlock: () => orNull(() => node.latestBlock()),
    transfers: (filter, from, to) => orNull(() => transfers(filter, from, to)),
  }
}

/** @returns null when the node does not respond. */
async function orNull<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof NodeUnavailable) return null
    throw error
  }
}

/** Empty for a log that is not a transfer, or that a reorganization removed. */
function transferOf(log: Log): readonly TransferLog[] {
  const { address, topics, data, transactionHash, logIndex } = log
  const [event, payer, payTo] = topics.map((topic) => topic.toLowerCase())
  const isWhole = isAddressWord(payer) && isAddressWord(payTo) && /^0x[0-9a-fA-F]{64}$/.test(data)
  const isRemoved = 'removed' in log && log.removed === true
  if (event !== TRANSFER || !isWhole || isRemoved) return []
  return [
    {
      asset: address.toLowerCase(),
      payer: `0x${payer.slice(-40)}`,
      payTo: `0x${payTo.slice(-40)}`,
      amount: String(BigInt(data)),
      transaction: transactionHash.toLowerCase(),
      logIndex: quantity(logIndex),
    },
  ]
}

function isAddressWord(topic: string | undefined): topic is string {
  return topic !== undefined && /^0x0{24}[0-9a-f]{40}$/.test(topic)
}

function isCode(value: unknown): boolean {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]*$/.test(value))
    throw new NodeUnavailable('the code is missing')
  return value !== '0x'
}

function isLog(value: unknown): value is Log {
  if (typeof value !== 'object' || value === null) return false
  const { address, topics, data, transactionHash } = value as Partial<Log>
  return (
    typeof address === 'string' &&
    typeof data === 'string' &&
    typeof transactionHash === 'string' &&
    Array.isArray(topics) &&
    topics.every((topic) => typeof topic === 'string')
  )
}

function isTransfer({ address, topics, data }: Log, payment: OnChain): boolean {
  return (
    address.toLowerCase() === payment.asset.toLowerCase() &&
    topics[0]?.toLowerCase() === TRANSFER &&
    topics[1]?.toLowerCase() === word(payment.payer) &&
    topics[2]?.toLowerCase() === word(payment.payTo) &&
    /^0x[0-9a-fA-F]{1,64}$/.test(data) &&
    BigInt(data) === BigInt(payment.amount)
  )
}

function isUse(log: Log, payment: OnChain): boolean {
  return log.topics[0]?.toLowerCase() === AUTHORIZATION_USED && concerns(log, payment)
}

/** True if the token emitted the log for this authorization. */
function concerns({ address, topics }: Log, { asset, payer, nonce }: OnChain): boolean {
  return (
    address.toLowerCase() === asset.toLowerCase() &&
    topics[1]?.toLowerCase() === word(payer) &&
    topics[2]?.toLowerCase() === nonce
  )
}
