/**
 * A chain with a token that is compiled on the spot, in a process of its own: the chain is native code that must not run in
 * two threads of one process. It listens before it sends the places, and ends with its parent.
 */
import { readFileSync } from 'node:fs'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type Abi, encodeDeployData, getAddress, type Hex } from 'viem'
import { CHAIN_ID, type MarketPlaces, TOKEN_NAME } from './market.js'

const require = createRequire(import.meta.url)
const SOURCE = new URL('../../../../test/support/commerce/token.sol', import.meta.url)

type Ganache = {
  provider(options: object): { request(asked: object): Promise<unknown> }
}
type Call = { readonly id: unknown; readonly method: string; readonly params: unknown }
type Solc = { compile(input: string): string }
type Compiled = {
  errors?: { severity: string; formattedMessage: string }[]
  contracts: { 'token.sol': { TestToken: { abi: Abi; evm: { bytecode: { object: string } } } } }
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

async function openChain(): Promise<Pick<MarketPlaces, 'rpcUrl' | 'token' | 'abi'>> {
  const { abi, bytecode } = compileToken()
  const chain = (require('ganache') as Ganache).provider({
    chain: { chainId: CHAIN_ID, networkId: CHAIN_ID },
    logging: { quiet: true },
    miner: { instamine: 'eager' },
    wallet: { totalAccounts: 1 },
  })
  const ask = (method: string, ...params: unknown[]) => chain.request({ method, params })
  const [from] = (await ask('eth_accounts')) as string[]
  const data = encodeDeployData({ abi, bytecode, args: [TOKEN_NAME] })
  const hash = await ask('eth_sendTransaction', { from, data, gas: '0x5b8d80' })
  const receipt = (await ask('eth_getTransactionReceipt', hash)) as { contractAddress: string }

  let last: Promise<unknown> = Promise.resolve()
  /** One call after another: of two at once, of which one is a transaction, the chain can leave one without an answer. */
  const askInTurn = (call: Call): Promise<unknown> => {
    const done = last.then(() => chain.request(call))
    last = done.catch(() => undefined)
    return done
  }
  const answer = async ({ id, method, params }: Call) => {
    const call = { id, method, params }
    try {
      return { jsonrpc: '2.0', id, result: await askInTurn(call) }
    } catch (error) {
      const {
        code = -32_000,
        message,
        data: more,
      } = error as Error & { code?: number; data?: unknown }
      return { jsonrpc: '2.0', id, error: { code, message, data: more } }
    }
  }
  const rpcUrl = await listening(async (asked, response) => {
    const calls = JSON.parse((await bodyOf(asked)).toString()) as Call | Call[]
    const answers = await (Array.isArray(calls) ? Promise.all(calls.map(answer)) : answer(calls))
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answers))
  })
  return { rpcUrl, token: getAddress(receipt.contractAddress), abi }
}

async function bodyOf(asked: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of asked) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** @returns the URL of a server. */
async function listening(
  answer: (asked: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<string> {
  const server = createServer((asked, response) => {
    answer(asked, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A facilitator for all services: it asks the facilitator of the payee, which is in the process of a test. */
function openCrossing(): Promise<string> {
  const facilitators = new Map<string, string>()
  return listening(async (asked, response) => {
    const text = await bodyOf(asked)
    const body = JSON.parse(text.toString()) as {
      readonly payTo?: string
      readonly facilitator?: string
      readonly paymentRequirements?: { readonly payTo: string }
    }
    if (body.facilitator !== undefined) {
      facilitators.set(body.payTo!.toLowerCase(), body.facilitator)
      return void response.end()
    }
    const facilitator = facilitators.get(body.paymentRequirements!.payTo.toLowerCase())
    if (facilitator === undefined) return void response.writeHead(404).end('an unknown payee')
    const headers = { 'content-type': 'application/json', 'content-length': text.length }
    const onward = request(facilitator + asked.url!, { method: 'POST', headers, agent: false })
    const hangUp = () => response.destroy()
    // A service that waits no longer.
    response.once('close', () => onward.destroy())
    onward.once('error', hangUp)
    onward.once('response', (said) => {
      response.writeHead(said.statusCode!, { 'content-type': said.headers['content-type'] ?? '' })
      said.once('error', hangUp)
      said.pipe(response)
    })
    onward.end(text)
  })
}

process.once('disconnect', () => process.exit(0))
const places: MarketPlaces = { ...(await openChain()), facilitatorUrl: await openCrossing() }
process.send?.(places)
