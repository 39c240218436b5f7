/** Messages of the status lists (draft-ietf-oauth-status-list). See docs/reference/oauth.md. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type StatusListsProtocol = {
  /** The current token of a list. Anonymous: the URL of a list is in every token that it covers. */
  getStatusList: Ask<ReadStatusList, StatusListFound | StatusListUnknown | HistoryNotOffered>
  /** The URLs of the lists, for verifiers that fetch them in advance (section 9). */
  listStatusLists: Ask<null, StatusListsAggregated>
}

export type ReadStatusList = {
  readonly listId: string
  /** The query parameter `time` (section 8.4), as sent. */
  readonly time: string | null
  /** True if the response may be compressed (RFC 9110 section 12.5.3). */
  readonly gzip: boolean
}
export type StatusListFound = {
  readonly tag: 'found'
  /** The list token, as the bytes of the response. */
  readonly body: Uint8Array
  readonly gzip: boolean
  /** Strong entity tag with its quotes. */
  readonly etag: string
  /** The `ttl` of the list token. */
  readonly maxAgeSecs: number
}
export type StatusListUnknown = { readonly tag: 'unknown' }
/** Earlier states of a list are not kept. */
export type HistoryNotOffered = { readonly tag: 'no_history' }
/** URLs, newest first. */
export type StatusListsAggregated = { readonly tag: 'aggregated'; readonly uris: readonly string[] }

export const statusLists = address<StatusListsProtocol>('status-lists', {
  idempotent: ['getStatusList', 'listStatusLists'],
})
