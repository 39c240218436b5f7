/** A local chain with an EIP-3009 token that is compiled on the spot. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { randomBytes } from 'node:crypto'
import {
  type Abi,
  createPublicClient,
  createWalletClient,
  defineChain,
  getAddress,
  type Hex,
  http,
  publicActions,
} from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { ChainOptions } from './chain-process.js'
import { freePort } from '../service.js'

const require = createRequire(import.meta.url)
const SOURCE = new URL('../../../../test/support/commerce/token.sol', import.meta.url)
const PROCESS = new URL('./chain-process.js', import.meta.url)

type Solc = { compile(input: string): string }
type Compiled = {
  errors?: { severity: string; formattedMessage: string }[]
  contracts: { 'token.sol': { TestToken: { abi: Abi; evm: { bytecode: { object: string } } } } }
}

/** The chain id of Base Sepolia, which has a name in x402 version 1. */
export const CHAIN_ID = 84_532
export const NETWORK = `eip155:${CHAIN_ID}` as const
export const TOKEN_NAME = 'Test USDC'

export type TestChain = Awaited<ReturnType<typeof startChain>>

export function newAccount(): PrivateKeyAccount {
  return privateKeyToAccount(`0x${randomBytes(32).toString('hex')}`)
}

function compileToken(): { abi: Abi; bytecode: Hex } {
  const solc = require('solc') as Solc
  const output = JSON.parse(
    solc.compile(
      JSON.stringify({
        language: 'Solidity',
        sources: { 'token.sol': { content: readFileSync(SOURCE, 'utf8') } },
        settings: {
          evmVersion: 'paris',
          optimizer: { enabled: true },
          viaIR: true,
          outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
        },
      }),
    ),
  ) as Compiled
  const failures = output.errors?.filter(({ severity }) => severity === 'error') ?? []
  if (failures.length > 0) throw new Error(failures[0]!.formattedMessage)
  const { abi, evm } = output.contracts['token.sol'].TestToken
  return { abi, bytecode: `0x${evm.bytecode.object}` }
}

/** Starts the process of a chain. @returns a function that ends it. */
async function startProcess(told: ChainOptions): Promise<() => Promise<void>> {
  const child = fork(PROCESS, { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const ended = once(child, 'exit')
  child.send(told)
  await Promise.race([
    once(child, 'message'),
    ended.then(([status]) => {
      throw new Error(`the chain ended with ${status} before it listened`)
    }),
  ])
  return async () => {
    if (child.connected) child.disconnect()
    await ended
  }
}

export async function startChain() {
  const secretKey: Hex = `0x${randomBytes(32).toString('hex')}`
  const owner = privateKeyToAccount(secretKey)
  const port = await freePort()
  const options = {
    chain: { chainId: CHAIN_ID, networkId: CHAIN_ID },
    logging: { quiet: true },
    miner: { instamine: 'eager' },
    wallet: { accounts: [{ secretKey, balance: `0x${(10n ** 24n).toString(16)}` }] },
  }
  const close = await startProcess({ port, options })
  const rpcUrl = `http://127.0.0.1:${port}`
  const chain = defineChain({
    id: CHAIN_ID,
    name: 'test',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  })
  const transport = http(rpcUrl, { retryCount: 0 })
  const wallet = createWalletClient({
    account: owner,
    chain,
    transport,
    pollingInterval: 20,
  }).extend(publicActions)
  const reader = createPublicClient({ chain, transport })
  const { abi, bytecode } = compileToken()
  const hash = await wallet.deployContract({ abi, bytecode, args: [TOKEN_NAME] })
  const { contractAddress } = await wallet.waitForTransactionReceipt({ hash })
  const token = getAddress(contractAddress!)

  // Transactions of one account are numbered, so they run one after another.
  let last: Promise<unknown> = Promise.resolve()
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }
  const write = (functionName: string, args: readonly unknown[]): Promise<Hex> =>
    inTurn(async () => {
      const written = await wallet.writeContract({ address: token, abi, functionName, args })
      await wallet.waitForTransactionReceipt({ hash: written })
      return written
    })
  const read = (functionName: string, args: readonly unknown[]) =>
    reader.readContract({ address: token, abi, functionName, args })

  return {
    rpcUrl,
    token,
    abi,
    wallet,
    /** Runs a function that sends transactions from `wallet`, in turn. */
    inTurn,
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
    /** Advances the time of the chain and mines a block. */
    async pass(secs: number): Promise<void> {
      await reader.request({ method: 'evm_increaseTime', params: [secs] } as never)
      await reader.request({ method: 'evm_mine', params: [] } as never)
    },
    close,
  }
}
