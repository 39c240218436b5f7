/** Serves status lists. A list is signed at most once a second, by one process for all of them. */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip as gzipCallback } from 'node:zlib'
import { boundHandlers, defineActor, type Handler } from '../../../runtime/kernel/actor.js'
import { statusListIds, statusListUri } from '../../../storage/oauth/status-lists.js'
import { isUuid } from '../../domain/ids.js'
import { type TtlCache, ttlCache } from '../../platform/batching/ttl-cache.js'
import { signingKeys } from '../signing-keys/protocol.js'
import { type CurrentList, currentList, type StatusListsNeeds } from './current-list.js'
import { type StatusListsProtocol, statusLists } from './protocol.js'

const gzip = promisify(gzipCallback)

const LISTS_AGGREGATED_MAX = 10_000
/** A smaller body does not get smaller. In bytes. */
const GZIP_BYTES_MIN = 256

type StatusListsTools = StatusListsNeeds & {
  /** Concurrent requests for a list share one read. */
  readonly reads: Map<string, Promise<CurrentList | null>>
  readonly aggregations: TtlCache<readonly string[]>
}
type Handling<K extends keyof StatusListsProtocol> = Handler<
  StatusListsTools,
  StatusListsProtocol,
  K
>

const getStatusList: Handling<'getStatusList'> = async (tools, message, context) => {
  const { listId, time, gzip: wantsGzip } = message
  if (time !== null) return { tag: 'no_history' }
  if (!isUuid(listId)) return { tag: 'unknown' }
  let read = tools.reads.get(listId)
  if (read === undefined) {
    read = currentList(tools, listId, context).finally(() => tools.reads.delete(listId))
    tools.reads.set(listId, read)
  }
  const found = await read
  if (found === null) return { tag: 'unknown' }
  const plain = Buffer.from(found.token)
  const compressed = wantsGzip && plain.length >= GZIP_BYTES_MIN
  const body = compressed ? await gzip(plain) : plain
  const etag = etagOf(found.token, compressed)
  return { tag: 'found', body, gzip: compressed, etag, maxAgeSecs: found.maxAgeSecs }
}

const listStatusLists: Handling<'listStatusLists'> = async (tools, _message, context) => {
  const { aggregations, database, baseUrl } = tools
  // All lists of the deployment: an id tells nothing about its tenant.
  const ids = await aggregations.get('all', [], () =>
    database.system((tx) => statusListIds(tx, LISTS_AGGREGATED_MAX), context),
  )
  return { tag: 'aggregated', uris: ids.map((id) => statusListUri(baseUrl, id)) }
}

export const statusListsActor = defineActor<StatusListsProtocol, StatusListsNeeds>({
  address: statusLists,
  asks: { keys: signingKeys },
  mailbox: { capacity: 4096, inflightMax: 512 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    boundHandlers<StatusListsProtocol, StatusListsTools>(
      { getStatusList, listStatusLists },
      { ...needs, reads: new Map(), aggregations: ttlCache(needs.clock) },
    ),
})

function etagOf(token: string, compressed: boolean): string {
  const tag = createHash('sha256').update(token).digest('base64url').slice(0, 22)
  return compressed ? `"${tag}-gzip"` : `"${tag}"`
}
