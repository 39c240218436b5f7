/** The chain of the runner, for one file: it sends from its own account. */
import { randomBytes } from 'node:crypto'
import {
  createPublicClient,
  createWalletClient,
  defineChain,
  encodeFunctionData,
  getAddress,
  type Hex,
  http,
  publicActions,
} from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { CHAIN_ID, type MarketPlaces, sharedMarket } from './market.js'

export { CHAIN_ID, NETWORK, TOKEN_NAME } from './market.js'

export type TestChain = Awaited<ReturnType<typeof chainAt>>

export function newAccount(): PrivateKeyAccount {
  return privateKeyToAccount(`0x${randomBytes(32).toString('hex')}`)
}

/** Transactions of one account are numbered, so they run one after another. */
function turns() {
  let last: Promise<unknown> = Promise.resolve()
  return <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }
}

export const sharedChain = async () => chainAt(await sharedMarket())

export async function chainAt(places: MarketPlaces) {
  const { rpcUrl, abi } = places
  const token = getAddress(places.token)
  const chain = defineChain({
    id: CHAIN_ID,
    name: 'test',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  })
  const transport = http(rpcUrl, { retryCount: 0, timeout: 60_000 })
  const wallet = createWalletClient({ account: newAccount(), chain, transport }).extend(
    publicActions,
  )
  const reader = createPublicClient({ chain, transport })
  const ask = (method: string, ...params: unknown[]): Promise<unknown> =>
    reader.request({ method, params } as never)
  /** Not the facilitator's account, whose library numbers its transactions. */
  const writer = newAccount()
  for (const { address } of [writer, wallet.account]) {
    await ask('anvil_setBalance', address, `0x${(10n ** 24n).toString(16)}`)
  }

  const inTurn = turns()
  const inTurnOfWriter = turns()
  let nonce = 0
  /** The next transaction of the writer. */
  const signed = (data: Hex, to?: Hex): Promise<Hex> =>
    writer.signTransaction({
      type: 'legacy',
      chainId: CHAIN_ID,
      nonce,
      gas: 6_000_000n,
      gasPrice: 10n ** 10n,
      ...(to === undefined ? {} : { to }),
      data,
    })
  const sendSigned = async (transaction: Hex) => {
    const hash = (await ask('eth_sendRawTransaction', transaction)) as Hex
    nonce += 1
    // The chain has mined a transaction before it returns its hash.
    const { status } = await reader.getTransactionReceipt({ hash })
    if (status !== 'success') throw new Error('the transaction was reverted')
    return hash
  }
  const send = (data: Hex, to?: Hex): Promise<Hex> =>
    inTurnOfWriter(async () => sendSigned(await signed(data, to)))
  const write = (functionName: string, args: readonly unknown[]): Promise<Hex> =>
    send(encodeFunctionData({ abi, functionName, args }), token)
  const read = (functionName: string, args: readonly unknown[]) =>
    reader.readContract({ address: token, abi, functionName, args })

  return {
    places,
    rpcUrl,
    token,
    abi,
    wallet,
    /** Runs a function that sends transactions from `wallet`, in turn. */
    inTurn,
    ask,
    send,
    signed,
    sendSigned,
    /** @returns a function that removes all blocks after the present one. */
    async snapshot(): Promise<() => Promise<void>> {
      const [id, before] = [await ask('evm_snapshot'), nonce]
      return async () => {
        await ask('evm_revert', id)
        nonce = before
      }
    },
    mint: (to: string, value: bigint) => write('mint', [to, value]),
    write,
    balanceOf: async (who: string) => (await read('balanceOf', [who])) as bigint,
    /** The transfers of the token to an address. */
    async transfersTo(payTo: string): Promise<{ from: string; value: bigint; transaction: Hex }[]> {
      const logs = await reader.getContractEvents({
        address: token,
        abi,
        eventName: 'Transfer',
        args: { to: payTo },
        fromBlock: 0n,
      })
      return logs.map(({ args, transactionHash }) => {
        const { from, value } = args as unknown as { from: string; value: bigint }
        return { from, value, transaction: transactionHash }
      })
    },
  }
}
