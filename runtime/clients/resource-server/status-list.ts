/** Revoked tokens, learned offline (OAuth Token Status List, draft-ietf-oauth-status-list). */
import { promisify } from 'node:util'
import { inflate } from 'node:zlib'
import { jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../../kernel/clock.js'
import { Cached, fetchDocument, type FetchLike, type Held, Unavailable } from './documents.js'

const inflated = promisify(inflate)

const MEDIA_TYPE = 'application/statuslist+jwt'
const TOKEN_BYTES_MAX = 2 * 1024 * 1024
/** 2^22 tokens of one bit, or 2^19 of eight. */
const LIST_BYTES_MAX = 512 * 1024
const LISTS_MAX = 100
const TTL_SECS_DEFAULT = 60
const TTL_SECS_MAX = 24 * 3600
const PAUSE_MS = 1_000
const BITS: ReadonlySet<unknown> = new Set([1, 2, 4, 8])

export type StatusLists = {
  /**
   * The status of a token: 0 is valid, undefined an index beyond the end of the list.
   * @throws Unavailable if there is no valid list.
   */
  statusOf(reference: StatusReference): Promise<number | undefined>
}
export type StatusReference = { readonly idx: number; readonly uri: string }

type List = { readonly bits: number; readonly bytes: Buffer }

export type StatusListsOptions = {
  readonly issuer: string
  /** Origins of lists. Others are refused, so that no token makes this server call an address of its choice. */
  readonly origins: readonly string[]
  readonly keys: JWTVerifyGetKey
  readonly algorithms: readonly string[]
  readonly fetch: FetchLike
  readonly clock: Clock
}

/** The reference in the claims of a token. Null without one, undefined for one that is not valid. */
export function statusReference({ status }: JWTPayload): StatusReference | null | undefined {
  if (status === undefined) return null
  const list = (status as { status_list?: unknown } | null)?.status_list
  if (typeof list !== 'object' || list === null) return undefined
  const { idx, uri } = list as { idx?: unknown; uri?: unknown }
  if (typeof idx !== 'number' || !Number.isSafeInteger(idx) || idx < 0) return undefined
  return typeof uri === 'string' && URL.canParse(uri) ? { idx, uri } : undefined
}

export function statusLists(options: StatusListsOptions): StatusLists {
  const lists = new Map<string, Cached<List>>()
  return {
    async statusOf({ idx, uri }) {
      if (!options.origins.includes(new URL(uri).origin))
        throw new Unavailable('the status list is at an origin that is not configured')
      let list = lists.get(uri)
      if (list === undefined) {
        // The oldest entry gives way.
        if (lists.size >= LISTS_MAX) lists.delete(lists.keys().next().value!)
        list = new Cached(options.clock, PAUSE_MS, () => load(options, uri))
        lists.set(uri, list)
      }
      return statusAt(await list.get(), idx)
    },
  }
}

async function load(
  { issuer, keys, algorithms, fetch, clock }: StatusListsOptions,
  uri: string,
): Promise<Held<List>> {
  const document = await fetchDocument(fetch, uri, {
    accept: MEDIA_TYPE,
    bytesMax: TOKEN_BYTES_MAX,
  })
  if (document.contentType !== MEDIA_TYPE)
    throw new Unavailable(`${uri} is not of type ${MEDIA_TYPE}`)
  const nowSecs = clock.nowSecs()
  try {
    const { payload } = await jwtVerify(document.text.trim(), keys, {
      typ: 'statuslist+jwt',
      algorithms: [...algorithms],
      subject: uri,
      requiredClaims: ['iat'],
      currentDate: clock.now(),
    })
    if (payload.iss !== undefined && payload.iss !== issuer)
      throw new Error('iss is another issuer')
    const ttlSecs = readTtl(payload['ttl'])
    const nowMs = clock.monotonicMs()
    const expiresMs =
      payload.exp === undefined ? Number.POSITIVE_INFINITY : nowMs + (payload.exp - nowSecs) * 1000
    const freshUntilMs = Math.min(nowMs + ttlSecs * 1000, expiresMs)
    // Without `exp` nothing says how long an old list may be used.
    const usableUntilMs = payload.exp === undefined ? freshUntilMs : expiresMs
    return { value: await readList(payload['status_list']), freshUntilMs, usableUntilMs }
  } catch (error) {
    if (error instanceof Unavailable) throw error
    throw new Unavailable(`the status list ${uri} is not valid: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

function readTtl(ttl: unknown): number {
  return typeof ttl === 'number' && ttl > 0 ? Math.min(ttl, TTL_SECS_MAX) : TTL_SECS_DEFAULT
}

async function readList(list: unknown): Promise<List> {
  const { bits, lst } = (list ?? {}) as { bits?: unknown; lst?: unknown }
  if (!BITS.has(bits) || typeof lst !== 'string') throw new Error('status_list needs bits and lst')
  const bytes = await inflated(Buffer.from(lst, 'base64url'), { maxOutputLength: LIST_BYTES_MAX })
  return { bits: bits as number, bytes }
}

/** Entry `idx`: the least significant bits of a byte come first. */
function statusAt({ bits, bytes }: List, idx: number): number | undefined {
  const perByte = 8 / bits
  const byte = bytes[Math.floor(idx / perByte)]
  return byte === undefined ? undefined : (byte >> ((idx % perByte) * bits)) & ((1 << bits) - 1)
}
