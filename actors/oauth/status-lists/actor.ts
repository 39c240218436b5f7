/** Serves status lists. A list is signed at most once a second, by one process for all of them. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip as gzipCallback } from 'node:zlib'
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'
import {
  claimSigning,
  findStatusList,
  invalidateEntries,
  invalidIndices,
  liveEntries,
  statusListIds,
  statusListUri,
  type StatusListRow,
  storeStatusListToken,
} from '../../../storage/oauth/status-lists.js'
import { readTokenStatusBatch } from '../../../storage/oauth/token-sessions.js'
import type { Database } from '../../../storage/platform/sql.js'
import { isUuid, timeOfId } from '../../domain/ids.js'
import { ttlCache } from '../../platform/batching/ttl-cache.js'
import { signingKeys, type SigningKeysProtocol } from '../signing-keys/protocol.js'
import { listClaims, STATUS_LIST_TYPE, STATUS_TTL_SECS } from './list-token.js'
import { type StatusListsProtocol, statusLists } from './protocol.js'

const gzip = promisify(gzipCallback)

/** How often a request looks again for a signature that another process is making, and the pause. */
const SIGNING_LOOKS = 12
const SIGNING_PAUSE_MS = 150
/** A list of access tokens is compared with their status when it is requested, at most once in this time. */
const SWEEP_SECS = 1
const SWEEP_ROWS = 1_000
/**
 * A token gets its entry before its session and its grant are stored, by another process perhaps. Until this age an
 * entry without them is no ended one. Longer than a token request takes.
 */
const ISSUED_WITHIN_SECS = 60
const LISTS_AGGREGATED_MAX = 10_000
/** A smaller body does not get smaller. In bytes. */
const GZIP_BYTES_MIN = 256

export type StatusListsNeeds = {
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly database: Database
  readonly clock: Clock
  /** Public base URL, without a trailing slash. */
  readonly baseUrl: string
}

/** The URL of the aggregation (draft-ietf-oauth-status-list section 9). */
export function aggregationUri(baseUrl: string): string {
  return `${baseUrl}/status-lists`
}

export const statusListsActor = defineActor<StatusListsProtocol, StatusListsNeeds>({
  address: statusLists,
  asks: { keys: signingKeys },
  mailbox: { capacity: 4096, inflightMax: 512 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: ({ keys, database, clock, baseUrl }) => {
    const reads = new Map<string, Promise<CurrentList | null>>()
    const aggregations = ttlCache<readonly string[]>(clock)

    type CurrentList = { readonly token: string; readonly maxAgeSecs: number }

    /** Concurrent requests for a list share one read. */
    function current(listId: string, context: MessageContext): Promise<CurrentList | null> {
      const reading = reads.get(listId)
      if (reading !== undefined) return reading
      const read = load(listId, context).finally(() => reads.delete(listId))
      reads.set(listId, read)
      return read
    }

    async function load(listId: string, context: MessageContext): Promise<CurrentList | null> {
      let row: StatusListRow | undefined
      for (let look = 0; look < SIGNING_LOOKS; look += 1) {
        // The tenant is unknown until the list is found, so the look-up crosses tenants.
        row = await database.system((tx) => findStatusList(tx, listId))
        if (row === undefined) return null
        const maxAgeSecs = STATUS_TTL_SECS[row.purpose]
        if (row.token !== null && isCurrent(row) && isSwept(row))
          return { token: row.token, maxAgeSecs }
        const { tenantId } = row
        if (await database.tenant(tenantId, (tx) => claimSigning(tx, tenantId, listId))) {
          const ended = row.purpose === 'access_token' && (await sweep(row))
          if (row.token !== null && isCurrent(row) && !ended)
            return { token: row.token, maxAgeSecs }
          return { token: await sign(row, context), maxAgeSecs }
        }
        await sleep(SIGNING_PAUSE_MS)
      }
      if (row?.token != null && !isExpired(row))
        return { token: row.token, maxAgeSecs: STATUS_TTL_SECS[row.purpose] }
      throw new DependencyUnavailable('the status list could not be signed')
    }

    /** True if the token shows all entries and can be cached for its whole `ttl` before it expires. */
    function isCurrent({ invalid, tokenInvalid, signedAt, purpose }: StatusListRow): boolean {
      return (
        invalid === tokenInvalid &&
        ageSecs(signedAt!) >= 0 &&
        ageSecs(signedAt!) < STATUS_TTL_SECS[purpose] / 2
      )
    }

    /** True if the list does not follow access tokens, or was compared with them a moment ago. */
    function isSwept({ purpose, signingAt }: StatusListRow): boolean {
      return purpose !== 'access_token' || (signingAt !== null && ageSecs(signingAt) < SWEEP_SECS)
    }

    /**
     * Sets the entries of access tokens that were revoked since, whatever ended them: the token, its session, grant,
     * client, user, agent, delegation or resource. @returns whether there was one.
     */
    async function sweep({ tenantId, id: listId }: StatusListRow): Promise<boolean> {
      const now = clock.now()
      const list = { tenantId, listId }
      let hasEnded = false
      for (let afterIdx = -1; ; ) {
        const page = { now, afterIdx, limit: SWEEP_ROWS }
        const entries = await database.tenant(tenantId, (tx) => liveEntries(tx, list, page))
        if (entries.length === 0) return hasEnded
        // An agent's home tenant may differ from the token's.
        const statuses = await readTokenStatusBatch(
          database,
          entries.map(({ query }) => ({
            ...query,
            isBeingIssued: now.getTime() - timeOfId(query.tokenId) < ISSUED_WITHIN_SECS * 1000,
          })),
        )
        const ended = entries.filter((_, index) => !Object.values(statuses[index]!).every(Boolean))
        const indices = ended.map(({ idx }) => idx)
        if (indices.length > 0)
          await database.tenant(tenantId, (tx) => invalidateEntries(tx, list, indices, now))
        hasEnded ||= indices.length > 0
        if (entries.length < SWEEP_ROWS) return hasEnded
        afterIdx = entries.at(-1)!.idx
      }
    }

    function isExpired({ signedAt, purpose }: StatusListRow): boolean {
      return ageSecs(signedAt!) >= 2 * STATUS_TTL_SECS[purpose]
    }

    function ageSecs(signedAt: Date): number {
      return (clock.now().getTime() - signedAt.getTime()) / 1000
    }

    async function sign(row: StatusListRow, context: MessageContext): Promise<string> {
      const { tenantId, id, issuer, purpose, size } = row
      const invalid = await database.tenant(tenantId, (tx) => invalidIndices(tx, tenantId, id))
      const signedAt = clock.now()
      const claims = listClaims({
        uri: statusListUri(baseUrl, id),
        issuer,
        purpose,
        size,
        invalid,
        aggregationUri: aggregationUri(baseUrl),
        nowSecs: Math.floor(signedAt.getTime() / 1000),
      })
      const wanted = { typ: STATUS_LIST_TYPE, claims: JSON.stringify(claims) }
      // A list has the same issuer as the tokens in it: a credential issuer, or the service.
      const signed =
        purpose === 'credential'
          ? await keys.signForTenant({ ...wanted, tenantId }, context)
          : await keys.sign({ ...wanted, algorithm: 'ES256' }, context)
      if (signed.tag !== 'signed') throw new DependencyUnavailable('no signing key is available')
      const { token } = signed
      await database.tenant(tenantId, (tx) =>
        storeStatusListToken(tx, { tenantId, id, token, invalid: invalid.length, signedAt }),
      )
      return token
    }

    return {
      async getStatusList({ listId, time, gzip: wantsGzip }, context) {
        if (time !== null) return { tag: 'no_history' }
        if (!isUuid(listId)) return { tag: 'unknown' }
        const found = await current(listId, context)
        if (found === null) return { tag: 'unknown' }
        const plain = Buffer.from(found.token)
        const compressed = wantsGzip && plain.length >= GZIP_BYTES_MIN
        const body = compressed ? await gzip(plain) : plain
        const etag = etagOf(found.token, compressed)
        return { tag: 'found', body, gzip: compressed, etag, maxAgeSecs: found.maxAgeSecs }
      },

      async listStatusLists(_message, { signal }) {
        // All lists of the deployment: an id tells nothing about its tenant.
        const ids = await aggregations.get('all', [], () =>
          database.system((tx) => statusListIds(tx, LISTS_AGGREGATED_MAX), { signal }),
        )
        return { tag: 'aggregated', uris: ids.map((id) => statusListUri(baseUrl, id)) }
      },
    }
  },
})

function etagOf(token: string, compressed: boolean): string {
  const tag = createHash('sha256').update(token).digest('base64url').slice(0, 22)
  return compressed ? `"${tag}-gzip"` : `"${tag}"`
}
