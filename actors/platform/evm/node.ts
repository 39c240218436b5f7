/**
 * A node of an EVM chain, by Ethereum JSON-RPC. Its answers are checked: what has another form than the standard says is
 * refused as if the node did not respond.
 */
import { z } from 'zod'
import { ANSWER_TOO_LARGE, postJson } from '../outbound-http/json-post.js'
import type { Upstreams } from '../outbound-http/upstreams.js'

const TIMEOUT_MS = 5_000
/** Anybody can make a contract emit large logs. */
const LOGS_BYTES_MAX = 4 * 1024 * 1024

/** The node does not respond, refuses the call, or responds in another form. */
export class NodeUnavailable extends Error {
  override readonly name: string = 'NodeUnavailable'
}

/** The node refused the call with an error. */
class NodeRefused extends NodeUnavailable {
  override readonly name = 'NodeRefused'
  readonly isRevert: boolean

  constructor(method: string, { code, message }: { code: unknown; message: unknown }) {
    super(`${method} was refused with ${typeof code === 'number' ? code : 'an error'}`)
    this.isRevert = code === 3 || (typeof message === 'string' && /\brevert/i.test(message))
  }
}

/** The logs of a range are more than 4 MiB, or too many. */
export class LogsTooLarge extends NodeUnavailable {
  override readonly name = 'LogsTooLarge'
}

const hex = (digits: string) => z.string().regex(new RegExp(`^0x${digits}$`))
const hash = hex('[0-9a-fA-F]{64}').transform(lower)
const quantities = hex('[0-9a-fA-F]{1,13}').transform((text) => Number.parseInt(text, 16))

const Log = z.object({
  address: hex('[0-9a-fA-F]{40}').transform(lower),
  topics: z.array(hash).max(4),
  data: hex('(?:[0-9a-fA-F]{2})*'),
  blockNumber: quantities,
  transactionHash: hash,
  logIndex: quantities,
  // A reorganization removed the log.
  removed: z.literal(false).optional(),
})
const Block = z.object({ number: quantities, hash }).nullable()

/** Hashes and addresses are in lower case. */
export type EvmLog = Omit<z.output<typeof Log>, 'removed'>

export type LogFilter = {
  readonly address: string
  /** Null: any topic. A list: any of it. */
  readonly topics: readonly (string | readonly string[] | null)[]
}

/** All functions throw `NodeUnavailable`. */
export interface ChainNode {
  call(method: string, params: readonly unknown[], answerBytesMax?: number): Promise<unknown>
  chainId(): Promise<number>
  latestBlock(): Promise<number>
  /** The hash of a block. Null: the node does not have the block. */
  blockHash(number: number): Promise<string | null>
  /** The logs of a range of blocks, in order. @throws LogsTooLarge */
  logs(filter: LogFilter, from: number, to: number): Promise<readonly EvmLog[]>
  /** What a contract returns, as hexadecimal digits. Null if the call reverts. */
  read(contract: string, data: string, block: number): Promise<string | null>
}

export function createNode(upstreams: Upstreams, rpcUrl: string): ChainNode {
  const url = new URL(rpcUrl)

  async function call(
    method: string,
    params: readonly unknown[],
    answerBytesMax?: number,
  ): Promise<unknown> {
    const message = { jsonrpc: '2.0', id: 1, method, params }
    const answer = await postJson(upstreams, {
      url,
      message,
      timeoutMs: TIMEOUT_MS,
      answerBytesMax,
    })
    if (answer.tag === 'failed') {
      if (answer.error === ANSWER_TOO_LARGE) throw new LogsTooLarge(answer.error)
      throw new NodeUnavailable(answer.error)
    }
    const { json } = answer
    if (typeof json !== 'object' || json === null) throw unanswered(method)
    const { error } = json as { error?: unknown }
    if (typeof error === 'object' && error !== null) {
      throw new NodeRefused(method, error as { code: unknown; message: unknown })
    }
    if (!('result' in json)) throw unanswered(method)
    return json.result
  }

  return {
    call,
    chainId: async () => quantity(await call('eth_chainId', [])),
    latestBlock: async () => quantity(await call('eth_blockNumber', [])),
    async blockHash(number) {
      const answer = await call('eth_getBlockByNumber', [tag(number), false])
      const block = checked('eth_getBlockByNumber', Block, answer)
      if (block === null) return null
      if (block.number !== number) throw new NodeUnavailable('the node returned another block')
      return block.hash
    },
    async logs({ address, topics }, from, to) {
      const filter = { address, topics, fromBlock: tag(from), toBlock: tag(to) }
      const answer = await call('eth_getLogs', [filter], LOGS_BYTES_MAX)
      const logs = checked('eth_getLogs', z.array(Log), answer)
      if (!logs.every((log) => isAsked(log, { address, topics }, from, to))) {
        throw new NodeUnavailable('eth_getLogs returned logs that were not asked for')
      }
      return logs.toSorted((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex)
    },
    async read(contract, data, block) {
      try {
        const answer = await call('eth_call', [{ to: contract, data }, tag(block)])
        return checked('eth_call', hex('(?:[0-9a-fA-F]{2})*').transform(lower), answer)
      } catch (error) {
        if (error instanceof NodeRefused && error.isRevert) return null
        throw error
      }
    },
  }
}

function isAsked(log: EvmLog, { address, topics }: LogFilter, from: number, to: number): boolean {
  const { blockNumber } = log
  return (
    log.address === address &&
    blockNumber >= from &&
    blockNumber <= to &&
    topics.every((topic, at) => topic === null || [topic].flat().includes(log.topics[at] ?? ''))
  )
}

function unanswered(method: string): NodeUnavailable {
  return new NodeUnavailable(`${method} got no response`)
}

function checked<Schema extends z.ZodType>(
  method: string,
  schema: Schema,
  answer: unknown,
): z.output<Schema> {
  const { success, data } = schema.safeParse(answer)
  if (!success) throw new NodeUnavailable(`${method} returned another form`)
  return data
}

/** A number of a response. @throws NodeUnavailable */
export function quantity(value: unknown): number {
  const { success, data } = quantities.safeParse(value)
  if (!success) throw new NodeUnavailable('a quantity is missing')
  return data
}

/** An address as a 32-byte word. */
export function word(address: string): string {
  return `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
}

function tag(block: number): string {
  return `0x${block.toString(16)}`
}

function lower(text: string): string {
  return text.toLowerCase()
}
