/** The present token of a status list: stored, or compared with what it lists and signed again. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'
import {
  claimSigning,
  findStatusList,
  invalidateEntries,
  invalidIndices,
  liveEntries,
  statusListUri,
  type StatusListRow,
  storeStatusListToken,
} from '../../../storage/oauth/status-lists.js'
import { readTokenStatusBatch } from '../../../storage/oauth/token-sessions.js'
import type { Database } from '../../../storage/platform/sql.js'
import { timeOfId } from '../../domain/ids.js'
import type { SigningKeysProtocol } from '../signing-keys/protocol.js'
import { listClaims, STATUS_LIST_TYPE, STATUS_TTL_SECS } from './list-token.js'

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

export type StatusListsNeeds = {
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly database: Database
  readonly clock: Clock
  /** Public base URL, without a trailing slash. */
  readonly baseUrl: string
}

export type CurrentList = { readonly token: string; readonly maxAgeSecs: number }

/** Null if there is no such list. */
export async function currentList(
  needs: StatusListsNeeds,
  listId: string,
  context: MessageContext,
): Promise<CurrentList | null> {
  const { database, clock } = needs
  let row: StatusListRow | undefined
  for (let look = 0; look < SIGNING_LOOKS; look += 1) {
    // The tenant is unknown until the list is found, so the look-up crosses tenants.
    row = await database.system((tx) => findStatusList(tx, listId))
    if (row === undefined) return null
    const maxAgeSecs = STATUS_TTL_SECS[row.purpose]
    if (row.token !== null && isCurrent(clock, row) && isSwept(clock, row))
      return { token: row.token, maxAgeSecs }
    const { tenantId } = row
    if (await database.tenant(tenantId, (tx) => claimSigning(tx, tenantId, listId))) {
      const ended = row.purpose === 'access_token' && (await sweep(needs, row))
      if (row.token !== null && isCurrent(clock, row) && !ended)
        return { token: row.token, maxAgeSecs }
      return { token: await sign(needs, row, context), maxAgeSecs }
    }
    await sleep(SIGNING_PAUSE_MS)
  }
  if (row?.token != null && !isExpired(clock, row))
    return { token: row.token, maxAgeSecs: STATUS_TTL_SECS[row.purpose] }
  throw new DependencyUnavailable('the status list could not be signed')
}

/** True if the token shows all entries and can be cached for its whole `ttl` before it expires. */
function isCurrent(
  clock: Clock,
  { invalid, tokenInvalid, signedAt, purpose }: StatusListRow,
): boolean {
  return (
    invalid === tokenInvalid &&
    ageSecs(clock, signedAt!) >= 0 &&
    ageSecs(clock, signedAt!) < STATUS_TTL_SECS[purpose] / 2
  )
}

/** True if the list does not follow access tokens, or was compared with them a moment ago. */
function isSwept(clock: Clock, { purpose, signingAt }: StatusListRow): boolean {
  return (
    purpose !== 'access_token' || (signingAt !== null && ageSecs(clock, signingAt) < SWEEP_SECS)
  )
}

/**
 * Sets the entries of access tokens that were revoked since, whatever ended them: the token, its session, grant,
 * client, user, agent, delegation or resource. @returns whether there was one.
 */
async function sweep(
  { database, clock }: StatusListsNeeds,
  { tenantId, id: listId }: StatusListRow,
): Promise<boolean> {
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

function isExpired(clock: Clock, { signedAt, purpose }: StatusListRow): boolean {
  return ageSecs(clock, signedAt!) >= 2 * STATUS_TTL_SECS[purpose]
}

function ageSecs(clock: Clock, signedAt: Date): number {
  return (clock.now().getTime() - signedAt.getTime()) / 1000
}

async function sign(
  { keys, database, clock, baseUrl }: StatusListsNeeds,
  row: StatusListRow,
  context: MessageContext,
): Promise<string> {
  const { tenantId, id, issuer, purpose, size } = row
  const invalid = await database.tenant(tenantId, (tx) => invalidIndices(tx, tenantId, id))
  const signedAt = clock.now()
  const claims = listClaims({
    uri: statusListUri(baseUrl, id),
    issuer,
    purpose,
    size,
    invalid,
    // draft-ietf-oauth-status-list section 9.
    aggregationUri: `${baseUrl}/status-lists`,
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
