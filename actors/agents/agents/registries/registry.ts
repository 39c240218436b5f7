/**
 * The registries of ERC-8004: the owner of an agent, and the logs about agents. Anybody can cause logs, so their texts have
 * a bound.
 */
import { createHash } from 'node:crypto'
import type { EventFields, EventType } from '../../../domain/events.js'
import {
  type ChainNode,
  type EvmLog,
  LogsTooLarge,
  type LogFilter,
} from '../../../platform/evm/node.js'
import { NodeUnavailable } from '../../../platform/evm/node.js'

/** Nodes bound the list. */
const TOKENS_PER_QUERY = 200
const TEXT_CHARS_MAX = 2_048

/** The Identity Registry of a chain. Addresses are in lower case. */
export type Registry = {
  /** CAIP-2 id. */
  readonly network: string
  readonly identity: string
  /** Null: reputation is not read. */
  readonly reputation: string | null
  /** Blocks before a log is final. */
  readonly confirmations: number
  /** How often its logs are read. */
  readonly readEveryMs: number
  readonly node: ChainNode
}

/** The part of an anchor that all agents of the registry have: `eip155:<chain>:<address>`. */
export function registryName({ network, identity }: Pick<Registry, 'network' | 'identity'>) {
  return `${network}:${identity}`
}

/** @throws NodeUnavailable if the node is of another chain. */
export async function checkChain({ network, node }: Registry): Promise<void> {
  if (`eip155:${await node.chainId()}` !== network) {
    throw new NodeUnavailable('the node is of another chain')
  }
}

type ChainEvent = Extract<EventType, `chain.${string}`>

/** A log about an agent. */
export type Change = {
  readonly type: ChainEvent
  /** ERC-721 token id, decimal. */
  readonly token: string
  /** SHA-256. The same in whichever block the transaction is. */
  readonly log: Uint8Array
  readonly block: number
  readonly fields: EventFields<ChainEvent>
}

/** Loaded on demand, because the library is large and many deployments do not use it. */
const library = async () => {
  const { decodeEventLog, parseAbi, toEventSelector } = await import('viem/utils')
  const abi = parseAbi([
    'event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)',
    'event URIUpdated(uint256 indexed agentId, string newURI, address indexed updatedBy)',
    'event MetadataSet(uint256 indexed agentId, string indexed indexedMetadataKey, string metadataKey, bytes metadataValue)',
    'event NewFeedback(uint256 indexed agentId, address indexed clientAddress, uint64 feedbackIndex, int128 value, uint8 valueDecimals, string indexed indexedTag1, string tag1, string tag2, string endpoint, string feedbackURI, bytes32 feedbackHash)',
    'event FeedbackRevoked(uint256 indexed agentId, address indexed clientAddress, uint64 indexed feedbackIndex)',
  ])
  const selectors = new Map(abi.map((event) => [event.name, toEventSelector(event)] as const))
  const decode = ({ data, topics }: EvmLog) => {
    try {
      const [first, ...more] = topics as `0x${string}`[]
      return decodeEventLog({ abi, data: data as `0x${string}`, topics: [first!, ...more] })
    } catch {
      throw new NodeUnavailable('a log is not one of ERC-8004')
    }
  }
  return { decode, selectors }
}
type Library = Awaited<ReturnType<typeof library>>
type Decoded = ReturnType<Library['decode']>

/**
 * What the logs of a range of blocks say about agents, in order.
 * @param skipped gets an agent with too many logs in one block, which are not read.
 * @throws LogsTooLarge for more than one block
 */
export async function readChanges(
  registry: Registry,
  tokens: readonly string[],
  [from, to]: readonly [from: number, to: number],
  skipped: (token: string, block: number) => void,
): Promise<readonly Change[]> {
  const { decode, selectors } = await library()
  const { node } = registry

  async function logsOf(some: readonly string[], of: (ids: string[]) => LogFilter) {
    try {
      return await node.logs(of(some.map(wordOf)), from, to)
    } catch (error) {
      if (!(error instanceof LogsTooLarge) || from < to) throw error
      if (some.length === 1) {
        skipped(some[0]!, from)
        return []
      }
      const half = some.length >> 1
      const found: EvmLog[] = []
      for (const part of [some.slice(0, half), some.slice(half)]) {
        found.push(...(await logsOf(part, of)))
      }
      return found
    }
  }

  const logs: EvmLog[] = []
  for (let start = 0; start < tokens.length; start += TOKENS_PER_QUERY) {
    const some = tokens.slice(start, start + TOKENS_PER_QUERY)
    for (const of of filters(registry, selectors)) logs.push(...(await logsOf(some, of)))
  }
  const seen = new Map<string, number>()
  return logs
    .toSorted((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex)
    .map((log) => changeOf(registry, log, decode(log), seen))
}

function filters(
  { identity, reputation }: Registry,
  selectors: Library['selectors'],
): ((ids: string[]) => LogFilter)[] {
  const [transfer, uri, metadata, feedback, revoked] = [...selectors.values()]
  return [
    (ids) => ({ address: identity, topics: [transfer!, null, null, ids] }),
    (ids) => ({ address: identity, topics: [[uri!, metadata!], ids] }),
    ...(reputation === null
      ? []
      : [(ids: string[]) => ({ address: reputation, topics: [[feedback!, revoked!], ids] })]),
  ]
}

/** @param seen how many equal logs of a transaction came before. */
function changeOf(
  { network, identity }: Registry,
  log: EvmLog,
  decoded: Decoded,
  seen: Map<string, number>,
): Change {
  const content = `${log.transactionHash} ${log.address} ${log.topics.join(' ')} ${log.data.toLowerCase()}`
  const before = seen.get(content) ?? 0
  seen.set(content, before + 1)
  const { type, token, ...told } = toldBy(decoded)
  const texts = Object.entries(told.texts).map(([name, value]) => [name, bounded(value)] as const)
  const isCut = texts.some(([name, value]) => value.length < told.texts[name]!.length)
  return {
    type,
    token,
    log: createHash('sha256').update(`${content} ${before}`).digest(),
    block: log.blockNumber,
    fields: {
      chain: network,
      registry: log.address,
      anchor: `${network}:${identity}:${token}`,
      chain_agent_id: token,
      block_number: log.blockNumber,
      transaction_hash: log.transactionHash,
      log_index: log.logIndex,
      ...told.fields,
      ...Object.fromEntries(texts),
      ...(isCut ? { truncated: true } : {}),
    } as Change['fields'],
  }
}

type Told = Pick<Change, 'token'> & {
  /** Texts of any length. */
  readonly texts: Readonly<Record<string, string>>
} & { [T in ChainEvent]: { type: T; fields: Partial<EventFields<T>> } }[ChainEvent]

function toldBy({ eventName, args }: Decoded): Told {
  switch (eventName) {
    case 'Transfer':
      return {
        type: 'chain.ownership.changed',
        token: String(args.tokenId),
        fields: { previous_owner: args.from.toLowerCase(), owner: args.to.toLowerCase() },
        texts: {},
      }
    case 'URIUpdated':
      return {
        type: 'chain.metadata.changed',
        token: String(args.agentId),
        fields: { change: 'uri', updated_by: args.updatedBy.toLowerCase() },
        texts: { uri: args.newURI },
      }
    case 'MetadataSet':
      return {
        type: 'chain.metadata.changed',
        token: String(args.agentId),
        fields: { change: 'metadata' },
        texts: { key: args.metadataKey, value: args.metadataValue },
      }
    case 'NewFeedback':
      return {
        type: 'chain.reputation.updated',
        token: String(args.agentId),
        fields: {
          change: 'feedback',
          client: args.clientAddress.toLowerCase(),
          feedback_index: String(args.feedbackIndex),
          value: String(args.value),
          value_decimals: args.valueDecimals,
          feedback_hash: args.feedbackHash,
        },
        texts: {
          tag1: args.tag1,
          tag2: args.tag2,
          endpoint: args.endpoint,
          feedback_uri: args.feedbackURI,
        },
      }
    case 'FeedbackRevoked':
      return {
        type: 'chain.reputation.updated',
        token: String(args.agentId),
        fields: {
          change: 'revoked',
          client: args.clientAddress.toLowerCase(),
          feedback_index: String(args.feedbackIndex),
        },
        texts: {},
      }
  }
}

/** PostgreSQL stores no NUL. A pair of surrogates is not divided. */
function bounded(text: string): string {
  const cut = text.slice(0, TEXT_CHARS_MAX).replace(/[\uD800-\uDBFF]$/, '')
  return cut.replaceAll('\0', '\uFFFD')
}

/** A token id as a 32-byte word. */
function wordOf(token: string): string {
  return `0x${BigInt(token).toString(16).padStart(64, '0')}`
}

const READ_OWNER = '0x6352211e'

/** The owner of an agent at a block. Null: the registry has no such agent. */
export async function ownerOf(
  { identity, node }: Registry,
  token: string,
  block: number,
): Promise<string | null> {
  const data = await node.read(identity, READ_OWNER + wordOf(token).slice(2), block)
  if (data === null) return null
  if (!/^0x0{24}[0-9a-f]{40}$/.test(data)) throw new NodeUnavailable('ownerOf returned no address')
  return `0x${data.slice(-40)}`
}
