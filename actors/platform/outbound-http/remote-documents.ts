/**
 * Fetches client metadata documents and the key sets that they name. What was fetched is shared by all processes.
 * Failures are never stored: a URL that failed is not asked again for ten seconds.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../runtime/kernel/clock.js'
import {
  findRemoteDocument,
  type RemoteDocumentKind,
  type RemoteDocumentRow,
  storeRemoteDocument,
} from '../../../storage/oauth/remote-documents.js'
import type { Database } from '../../../storage/platform/sql.js'
import { parseStrictJson } from '../jose/strict-json.js'
import { type BoundedFetch, createBoundedFetch, FetchFailed } from './bounded-fetch.js'
import type { EgressSettings } from './outbound.js'
import { SHARE_EXHAUSTED, sitePlaces } from './site-places.js'

const FETCH_MS_MAX = 5_000
const KEY_SET_BYTES_MAX = 64 * 1024
const DEPTH_MAX = 16
const FRESH_SECS_DEFAULT = 300
const FRESH_SECS_MIN = 60
const FRESH_SECS_MAX = 86_400
/** How long a stale document serves live grants while its host is away. */
const STALE_MS_MAX = 86_400_000
const HOLD_OFF_MS = 10_000
const HELD_OFF_MAX = 10_000
const JSON_TYPE = /^application\/(?:[a-z0-9!#$&^_.-]+\+)?json$/i

type Members = Readonly<Record<string, unknown>>

type Remote =
  | { readonly tag: 'found'; readonly document: Members; readonly sha256: string }
  /** The host does not answer, or answers with something else than a JSON document: it may recover. */
  | { readonly tag: 'unreachable'; readonly fault: string }
  /** The document itself breaks a rule. */
  | { readonly tag: 'faulty'; readonly fault: string }

type Asked = {
  readonly kind: RemoteDocumentKind
  readonly url: string
  /** The fault of a fetched document, or null. */
  readonly check: (document: unknown) => string | undefined
  /** Accepts a document that is stale if its host is away: for grants that live already. */
  readonly stale: boolean
  /** Bypasses the stored document, at most once in ten seconds. */
  readonly refresh?: boolean | undefined
}

export interface RemoteDocuments {
  get(asked: Asked): Promise<Remote>
  close(): Promise<void>
}

type RemoteDocumentsNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly settings: EgressSettings
  /** `oidc.client_id_metadata_max_bytes`. */
  readonly documentBytesMax: number
}

type Failure = Exclude<Remote, { tag: 'found' }>
const BUSY: Remote = { tag: 'unreachable', fault: SHARE_EXHAUSTED }

export function createRemoteDocuments(needs: RemoteDocumentsNeeds): RemoteDocuments {
  const { database, clock, settings } = needs
  const fetchers = {
    client: createBoundedFetch({
      settings,
      answerBytesMax: needs.documentBytesMax,
      timeoutMs: FETCH_MS_MAX,
    }),
    keys: createBoundedFetch({
      settings,
      answerBytesMax: KEY_SET_BYTES_MAX,
      timeoutMs: FETCH_MS_MAX,
    }),
  }
  const places = sitePlaces('client_documents')
  /** One fetch at a time per URL in this process. */
  const inFlight = new Map<string, Promise<Remote>>()
  const heldOff = new Map<string, { readonly untilMs: number; readonly failure: Failure }>()
  const fetchedAtMs = new Map<string, number>()

  const stored = ({ kind, url }: Asked): Promise<RemoteDocumentRow | undefined> =>
    // Documents belong to no tenant.
    database.system((tx) => findRemoteDocument(tx, kind, url), { pool: 'identity' })

  async function fetchNow(asked: Asked, key: string): Promise<Remote> {
    const remote = await fetchRemote(fetchers[asked.kind].fetch, asked, clock)
    if (remote.tag !== 'found') {
      if (heldOff.size >= HELD_OFF_MAX) heldOff.delete(heldOff.keys().next().value!)
      heldOff.set(key, { untilMs: clock.monotonicMs() + HOLD_OFF_MS, failure: remote })
      return remote
    }
    const { row } = remote
    await database.system((tx) => storeRemoteDocument(tx, row), { pool: 'identity' })
    if (fetchedAtMs.size >= HELD_OFF_MAX) fetchedAtMs.clear()
    fetchedAtMs.set(key, clock.monotonicMs())
    return found(row)
  }

  function fetchOnce(asked: Asked, key: string): Promise<Remote> {
    const running = inFlight.get(key)
    if (running !== undefined) return running
    const held = heldOff.get(key)
    if (held !== undefined && held.untilMs > clock.monotonicMs())
      return Promise.resolve(held.failure)
    heldOff.delete(key)
    const fetching = fetchNow(asked, key).finally(() => inFlight.delete(key))
    inFlight.set(key, fetching)
    return fetching
  }

  return {
    async get(asked) {
      const key = `${asked.kind} ${asked.url}`
      const startMs = clock.monotonicMs()
      let row = await stored(asked)
      // Another caller's fetch ended since this one began to read.
      if (row === undefined && (fetchedAtMs.get(key) ?? -Infinity) >= startMs)
        row = await stored(asked)
      const now = clock.now().getTime()
      const recent = (fetchedAtMs.get(key) ?? -Infinity) > clock.monotonicMs() - HOLD_OFF_MS
      const fresh = row !== undefined && row.freshUntil.getTime() > now
      if (row !== undefined && fresh && (asked.refresh !== true || recent)) return found(row)
      const remote = await places(new URL(asked.url), BUSY, () => fetchOnce(asked, key))
      if (remote.tag !== 'unreachable' || row === undefined) return remote
      if (fresh) return found(row)
      const usable = asked.stale && row.freshUntil.getTime() + STALE_MS_MAX > now
      return usable ? found(row) : remote
    },
    async close() {
      await Promise.all([fetchers.client.close(), fetchers.keys.close()])
    },
  }
}

async function fetchRemote(
  fetchBounded: BoundedFetch,
  { kind, url, check }: Asked,
  clock: Clock,
): Promise<Failure | { readonly tag: 'found'; readonly row: RemoteDocumentRow }> {
  let response: Response
  try {
    response = await fetchBounded(url, { method: 'GET', headers: { accept: 'application/json' } })
  } catch (error) {
    if (!(error instanceof FetchFailed)) throw error
    return unreachable(error.fault)
  }
  if (response.status !== 200) return unreachable(`status ${response.status}`)
  const type = (response.headers.get('content-type') ?? '').split(';')[0]!.trim()
  if (!JSON_TYPE.test(type)) return unreachable('media type is not application/json')
  const document = parseStrictJson(new Uint8Array(await response.arrayBuffer()), DEPTH_MAX)
  if (document === undefined)
    return { tag: 'faulty', fault: 'the document is not valid JSON with unique members' }
  const fault = storable(document) ? check(document) : 'the document contains a NUL character'
  if (fault !== undefined) return { tag: 'faulty', fault }
  const fetchedAt = clock.now()
  const freshUntil = new Date(fetchedAt.getTime() + freshSecs(response.headers, fetchedAt) * 1000)
  const members = document as Members
  return {
    tag: 'found',
    row: { url, kind, document: members, sha256: sha256Of(members), fetchedAt, freshUntil },
  }
}

/** PostgreSQL stores neither NUL nor half of a surrogate pair. */
function storable(document: unknown): boolean {
  return !/\\u(?:0000|d[89a-f])/.test(JSON.stringify(document).replaceAll('\\\\', ''))
}

/** The lifetime by Cache-Control or Expires, within limits (RFC 9111 section 4.2.1). */
function freshSecs(headers: Headers, now: Date): number {
  const control = headers.get('cache-control') ?? ''
  if (/(?:^|[\s,])no-(?:store|cache)\b/i.test(control)) return FRESH_SECS_MIN
  const maxAge = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec(control)?.[1]
  const expires = Date.parse(headers.get('expires') ?? '')
  const secs =
    maxAge !== undefined
      ? Number(maxAge)
      : Number.isNaN(expires)
        ? FRESH_SECS_DEFAULT
        : (expires - now.getTime()) / 1000
  return Math.min(Math.max(secs, FRESH_SECS_MIN), FRESH_SECS_MAX)
}

function found({ document, sha256 }: RemoteDocumentRow): Remote {
  return { tag: 'found', document, sha256 }
}

function unreachable(fault: string): Failure {
  return { tag: 'unreachable', fault }
}

/** The SHA-256 of the canonical JSON of a value, as lower-case hexadecimal. */
export function sha256Of(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex')
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
}
