/**
 * One chain for all test files: the runner starts its process when a file asks first. A file has its own accounts and
 * payees there, and the facilitator of the services that files share asks the facilitator of the file that has the
 * payee.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Abi, Hex } from 'viem'

/** The chain id of Base Sepolia, which has a name in x402 version 1. */
export const CHAIN_ID = 84_532
export const NETWORK = `eip155:${CHAIN_ID}` as const
export const TOKEN_NAME = 'Test USDC'
const PROCESS = new URL('./market-process.js', import.meta.url)

export type MarketPlaces = {
  readonly rpcUrl: string
  readonly token: string
  readonly abi: Abi
  readonly facilitatorUrl: string
  /** The registries of ERC-8004. */
  readonly identity: Deployed
  readonly reputation: Deployed
  /** An account that is a contract. */
  readonly account: Contract
}
export type Contract = { readonly abi: Abi; readonly bytecode: Hex }
export type Deployed = { readonly abi: Abi; readonly address: Hex }
export interface Market {
  readonly places: MarketPlaces
  end(): Promise<void>
}

/** A process that is not shared. */
export async function startMarket(): Promise<Market> {
  const child = fork(PROCESS, { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const ended = once(child, 'exit')
  const [places] = await Promise.race([
    once(child, 'message') as Promise<[MarketPlaces]>,
    ended.then(([status]) => {
      throw new Error(`the chain ended with ${status} before it listened`)
    }),
  ])
  return {
    places,
    async end() {
      if (child.connected) child.disconnect()
      await ended
    },
  }
}

/** Called by the runner. @returns where a file asks for the places. */
export async function openMarket(): Promise<{ readonly url: string; end(): Promise<void> }> {
  let market: Promise<Market> | undefined
  const desk = createServer((_, response) => {
    market ??= startMarket()
    market.then(
      ({ places }) => response.end(JSON.stringify(places)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  desk.listen(0, '127.0.0.1')
  await once(desk, 'listening')
  return {
    url: `http://127.0.0.1:${(desk.address() as AddressInfo).port}`,
    async end() {
      desk.closeAllConnections()
      desk.close()
      await market?.then(
        ({ end }) => end(),
        () => undefined,
      )
    },
  }
}

let common: Promise<MarketPlaces> | undefined

export function sharedMarket(): Promise<MarketPlaces> {
  const desk = process.env['TEST_MARKET']
  common ??= desk === undefined ? startMarket().then(({ places }) => places) : placesAt(desk)
  return common
}

async function placesAt(desk: string): Promise<MarketPlaces> {
  const response = await fetch(desk)
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as MarketPlaces
}

export type ChainOptions = {
  /** True if the service has the node of the chain. Default true. */
  readonly rpc?: boolean | undefined
  /** True if settlements must be confirmed on the chain. Default false. */
  readonly monitor?: boolean | undefined
  readonly v1?: boolean | undefined
}

/** SVC_ variables of a service that is paid on the chain. */
export function chainEnvironment(
  { facilitatorUrl, rpcUrl, token }: Pick<MarketPlaces, 'facilitatorUrl' | 'rpcUrl' | 'token'>,
  { rpc = true, monitor = false, v1 = false }: ChainOptions = {},
): Record<string, string> {
  const table = {
    id: `"${NETWORK}"`,
    asset: `"${token}"`,
    asset_name: `"${TOKEN_NAME}"`,
    asset_version: '"2"',
    ...(rpc ? { rpc_url: `"${rpcUrl}"` } : {}),
    // The test chain mines a block for each transaction and none after it.
    confirmations: '0',
  }
  const fields = Object.entries(table).map(([name, value]) => `${name} = ${value}`)
  return {
    SVC_COMMERCE__X402_ENABLED: 'true',
    SVC_COMMERCE__X402_FACILITATOR_URL: facilitatorUrl,
    SVC_COMMERCE__X402_V1_COMPAT: String(v1),
    SVC_CHAINS: `[{ ${fields.join(', ')} }]`,
    ...(monitor ? { SVC_DEPLOYMENT__EMBEDDED_CHAIN_MONITOR: 'true' } : {}),
  }
}
