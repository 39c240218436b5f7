/**
 * The chain monitor of agents: what registries log about agents that are anchors becomes events of their tenants, after
 * enough blocks and once.
 *
 * Blocks are read in order, behind a cursor. The cursor moves in the transaction that writes the events, and only if it is
 * still where it was before the blocks were read: of several processes one writes. The cursor has the hash of its block. If
 * the chain has another block there, a reorganization was deeper than the confirmations, and the blocks before are read
 * again. Logs that are known are not told again, in whichever block they are.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Logger } from '../../../../runtime/kernel/log.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { defineWorker } from '../../../../runtime/kernel/worker.js'
import {
  anchoredTokens,
  anchorHolders,
  claimReading,
  findRegistryCursor,
  moveRegistryCursor,
  recordLogs,
  type RegistryCursor,
} from '../../../../storage/agents/chain-anchors.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import { catalogued, type NewEvent } from '../../../domain/events.js'
import { LogsTooLarge, NodeUnavailable } from '../../../platform/evm/node.js'
import type { RegistryMetrics } from './metrics.js'
import { type Change, checkChain, readChanges, type Registry, registryName } from './registry.js'

/** Block range of one query that nodes accept. */
const BLOCKS_MAX = 1_800
/**
 * Blocks before the cursor that are read again with the next ones: behind one address there may be nodes that lag, and such
 * a node answers without the logs of blocks that it does not have.
 */
const READ_AGAIN = 100
/** Ranges per round and chain. */
const RANGES_MAX = 20
/** Blocks that are read again after a deep reorganization. */
const REORGANIZED_BLOCKS = 1_800
/** Changes of one transaction, unless one block has more. */
const CHANGES_MAX = 500
const MISHAP_MS = 1_000
/** At most one warning in this time for a chain. */
const WARN_EVERY_MS = 60_000

type RegistriesNeeds = {
  readonly database: Pick<Database, 'system'>
  readonly clock: Clock
  readonly random: Random
  readonly registries: readonly Registry[]
  readonly metrics: RegistryMetrics
}

export const registriesWorker = defineWorker<RegistriesNeeds>({
  name: 'registries',
  asks: {},
  run: async (needs, lifecycle) => {
    const loop = lifecycle.loop('rounds')
    const roundMs = Math.min(...needs.registries.map(({ readEveryMs }) => readEveryMs))
    const readers = needs.registries.map((registry) =>
      // Several processes read in turn, so a chain is due before its time is over.
      reader(needs, registry, registry.readEveryMs - roundMs / 2, lifecycle.log),
    )
    while (!lifecycle.signal.aborted) {
      let waitMs = roundMs
      try {
        await Promise.all(readers.map((read) => read()))
        loop.succeeded()
      } catch (error) {
        if (lifecycle.signal.aborted) return
        loop.failed()
        lifecycle.log.warn({ err: error }, 'chain monitor failed, retrying')
        waitMs = MISHAP_MS
      }
      await sleep(waitMs, undefined, { signal: lifecycle.signal, ref: false }).catch(() => null)
    }
  },
})

const background = { pool: 'background' } as const

/**
 * @param dueMs after the last reading of any process.
 * @returns a function that reads the new blocks of a chain once, where it is due. It throws only if the database fails.
 */
function reader(
  needs: RegistriesNeeds,
  registry: Registry,
  dueMs: number,
  log: Logger,
): () => Promise<void> {
  const { database, clock, metrics } = needs
  const { network, node, confirmations } = registry
  const name = registryName(registry)
  const warn = seldom(clock, log)
  /** Smaller after a failure: nodes bound the range and the size of answers. */
  let blocks = BLOCKS_MAX
  /** Blocks up to this one are not read again: their logs are too many. */
  let settled = 0

  const skipped = (token: string, block: number) =>
    log.error({ network, token, block }, 'chain monitor: logs of an agent are too large, skipped')

  async function read(): Promise<void> {
    const isDue = await database.system(
      (tx) => claimReading(tx, network, dueMs / 1_000),
      background,
    )
    if (!isDue) return
    const latest = await node.latestBlock()
    const end = latest - confirmations
    let isChecked = false
    for (let range = 0; range < RANGES_MAX; range += 1) {
      const [cursor, tokens] = await database.system(
        async (tx) => [await findRegistryCursor(tx, network), await anchoredTokens(tx, name)],
        background,
      )
      if (cursor === undefined || tokens.length === 0) return
      const first = Math.min(...tokens.map(({ fromBlock }) => fromBlock))
      const next = Math.max(cursor.block, first) + 1
      metrics.unread.set({ network }, Math.max(0, end - next + 1))
      if (next > end) return
      if (!isChecked) await checkHead(latest)
      isChecked = true
      const again = Math.max(first, settled, next - 1 - Math.min(READ_AGAIN, blocks >> 1))
      const from = Math.min(next, again + 1)
      const to = Math.min(end, from + blocks - 1)
      const names = tokens.map(({ token }) => token)
      try {
        await advance(cursor, names, from, to)
        blocks = Math.min(BLOCKS_MAX, blocks * 2)
      } catch (error) {
        if (!(error instanceof NodeUnavailable)) throw error
        blocks = Math.max(1, (to - from + 1) >> 1)
        if (!(error instanceof LogsTooLarge)) throw error
        settled = next - 1
      }
    }
  }

  /** A wrong number of the latest block would make blocks final that are not. */
  async function checkHead(latest: number): Promise<void> {
    await checkChain(registry)
    if ((await node.blockHash(latest)) === null) {
      throw new NodeUnavailable('the node lacks its latest block')
    }
  }

  async function advance(
    { block, hash, version }: RegistryCursor,
    tokens: readonly string[],
    from: number,
    to: number,
  ): Promise<void> {
    // Before the logs: if a reorganization happens in between, the next reading finds another hash.
    const last = await node.blockHash(to)
    if (last === null) throw new NodeUnavailable('the node lacks a block below its latest')
    if (hash !== null && (await node.blockHash(block)) !== hash) {
      log.warn({ network, block }, 'chain monitor: deep reorganization, blocks are read again')
      const before = { block: Math.max(0, block - REORGANIZED_BLOCKS), hash: null }
      await database.system((tx) => moveRegistryCursor(tx, network, version, before), background)
      return
    }
    const changes = await readChanges(registry, tokens, [from, to], skipped)
    if (changes.length > CHANGES_MAX && from < to) throw new LogsTooLarge('too many logs')
    const events = await database.system(async (tx) => {
      if (!(await moveRegistryCursor(tx, network, version, { block: to, hash: last }))) return []
      const found = await eventsOf(tx, needs, registry, changes)
      appendEvents(tx, found)
      return found
    }, background)
    for (const { type } of events) metrics.events.inc({ type })
  }

  return async () => {
    try {
      await read()
    } catch (error) {
      if (!(error instanceof NodeUnavailable)) throw error
      metrics.faults.inc({ network })
      warn({ network, error: error.message }, 'chain monitor: no blocks were read, retrying')
    }
  }
}

/** The events of changes that were not told before, in order. */
async function eventsOf(
  tx: Transaction,
  { clock, random }: RegistriesNeeds,
  registry: Registry,
  changes: readonly Change[],
): Promise<readonly NewEvent[]> {
  if (changes.length === 0) return []
  const tokens = [...new Set(changes.map(({ token }) => token))]
  const holders = await anchorHolders(tx, registryName(registry), tokens)
  const told = changes.flatMap((change) =>
    holders
      .filter(({ token, fromBlock }) => token === change.token && change.block > fromBlock)
      .map((holder) => ({ ...holder, change, log: change.log, block: change.block })),
  )
  const fresh = await recordLogs(tx, told)
  const actor = { type: 'chain', id: registry.network }
  const occurredAt = clock.now()
  return told.flatMap(({ tenantIds, agentId, change }, index) => {
    if (!fresh.has(index)) return []
    const about = { actor, resource: { type: 'agent', id: agentId }, requestId: undefined }
    const event = { occurredAt, ...catalogued(change.type, about, change.fields) }
    return tenantIds.map((tenantId) => ({ id: random.uuid(), tenantId, ...event }))
  })
}

/** Logs at most one warning a minute, with the number of those that were left out. */
function seldom(clock: Clock, log: Logger) {
  let lastMs = Number.NEGATIVE_INFINITY
  let unlogged = 0
  return (context: Readonly<Record<string, unknown>>, message: string) => {
    const nowMs = clock.monotonicMs()
    if (nowMs - lastMs < WARN_EVERY_MS) {
      unlogged += 1
      return
    }
    log.warn({ ...context, unlogged }, message)
    lastMs = nowMs
    unlogged = 0
  }
}
