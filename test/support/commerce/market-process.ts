/**
 * A chain with a token and registries that are compiled on the spot. The process passes the calls of tests on to the node of
 * the chain. It listens before it sends the places, and ends with its parent, the node with it.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Abi, encodeDeployData, getAddress } from 'viem'
import { toolRequire } from '../tools.js'
import { CHAIN_ID, type Contract, type MarketPlaces, TOKEN_NAME } from './market.js'

const SOURCES = new URL('../../../../test/support/commerce/', import.meta.url)

type Call = { readonly method: string }
type Solc = { compile(input: string): string }
type Compiled = {
  errors?: { severity: string; formattedMessage: string }[]
  contracts: Record<string, Record<string, { abi: Abi; evm: { bytecode: { object: string } } }>>
}

/** The contracts of a file, by name. */
function compiled(file: string): Map<string, Contract> {
  const solc = toolRequire('solc') as Solc
  const output = JSON.parse(
    solc.compile(
      JSON.stringify({
        language: 'Solidity',
        sources: { [file]: { content: readFileSync(new URL(file, SOURCES), 'utf8') } },
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
  const contracts = Object.entries(output.contracts[file]!)
  return new Map(
    contracts.map(([name, { abi, evm }]) => [name, { abi, bytecode: `0x${evm.bytecode.object}` }]),
  )
}

/** @returns the URL of a node that mines a block for each transaction. */
async function startNode(): Promise<string> {
  const packaged = `@foundry-rs/anvil-${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`
  const node = spawn(
    toolRequire.resolve(`${packaged}/bin/anvil`),
    ['--port', '0', '--chain-id', String(CHAIN_ID), '--accounts', '1', '--hardfork', 'paris'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  process.once('exit', () => node.kill('SIGKILL'))
  const over = once(node, 'exit').then(([status]) => {
    throw new Error(`the node of the chain ended with ${status}`)
  })
  const listens = new Promise<string>((resolve) => {
    createInterface({ input: node.stdout }).on('line', (line) => {
      const [, place] = /^Listening on (.+)$/.exec(line) ?? []
      if (place !== undefined) resolve(`http://${place}`)
    })
  })
  return Promise.race([listens, over])
}

async function openChain(): Promise<Omit<MarketPlaces, 'facilitatorUrl'>> {
  const contracts = new Map([...compiled('token.sol'), ...compiled('registries.sol')])
  const node = await startNode()
  const said = async (body: string): Promise<string> => {
    const response = await fetch(node, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    return response.text()
  }
  const ask = async (method: string, ...params: unknown[]): Promise<unknown> => {
    const text = await said(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
    return (JSON.parse(text) as { result?: unknown }).result
  }
  const mined = async (hash: unknown): Promise<{ readonly contractAddress: string }> => {
    for (;;) {
      const receipt = await ask('eth_getTransactionReceipt', hash)
      if (receipt !== null) return receipt as { contractAddress: string }
      await sleep(1)
    }
  }
  const [from] = (await ask('eth_accounts')) as string[]
  const deploy = async (name: string, args: readonly unknown[] = []) => {
    const { abi, bytecode } = contracts.get(name)!
    const data = encodeDeployData({ abi, bytecode, args })
    const hash = await ask('eth_sendTransaction', { from, data, gas: '0x5b8d80' })
    const { contractAddress } = await mined(hash)
    return { abi, address: getAddress(contractAddress) }
  }
  const { abi, address: token } = await deploy('TestToken', [TOKEN_NAME])
  const identity = await deploy('IdentityRegistry')
  const reputation = await deploy('ReputationRegistry')
  const account = contracts.get('ContractAccount')!
  const rpcUrl = await listening(async (asked, response) => {
    const body = (await bodyOf(asked)).toString()
    const text = await said(body)
    // Clients of tests look for the receipt immediately, and then only after seconds.
    const { method } = JSON.parse(body) as Partial<Call>
    const { result } = JSON.parse(text) as { result?: unknown }
    if (method === 'eth_sendRawTransaction' && result !== undefined) await mined(result)
    response.writeHead(200, { 'content-type': 'application/json' }).end(text)
  })
  return { rpcUrl, token, abi, identity, reputation, account }
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
