/**
 * Idempotency keys (docs/reference/http.md). Key and answer are stored in the transaction of the effect, so that a
 * crash leaves both or neither.
 */
import { createHash } from 'node:crypto'
import { pack, unpack } from 'msgpackr'
import type { IdempotencyClaim, IdempotencyRefused } from '../../actors/domain/idempotency.js'
import { changedRows, onlyRow, type Transaction } from './sql.js'

const LIFETIME_SECS = 24 * 60 * 60
/** The tenant of requests without a tenant. Only transactions that cross tenants see it. */
const NO_TENANT = '00000000-0000-0000-0000-000000000000'

interface Claimed {
  readonly state: 'fresh' | 'replay' | 'mismatch' | 'in_progress'
  readonly kept: Uint8Array | null
}

/**
 * Runs `run` at most once per key. A repetition gets the stored answer, marked as `replayed`.
 * @param claim null for a request without a key.
 * @param keep returns the outcome to store, without secrets that are shown once, or undefined for a refusal. Refusals
 * are not stored, so that a corrected request can use the key.
 */
export async function idempotently<
  Outcome extends { readonly tag: string },
  Kept extends { readonly tag: string },
>(
  tx: Transaction,
  claim: IdempotencyClaim | null,
  run: () => Promise<Outcome>,
  keep: (outcome: Outcome) => Kept | undefined,
): Promise<Outcome | (Kept & { readonly replayed: true }) | IdempotencyRefused> {
  if (claim === null) return run()
  const tenantId = tx.tenantId ?? NO_TENANT
  const key = createHash('sha256').update(`${claim.scope}\n${claim.key}`).digest()
  const { state, kept } = await take(tx, tenantId, key, claim.fingerprint)
  if (state === 'mismatch') return { tag: 'idempotency_mismatch' }
  if (state === 'in_progress') return { tag: 'idempotency_in_progress' }
  if (state === 'replay') {
    if (kept === null) throw new Error('a committed idempotency key has no stored answer')
    return { ...(unpack(kept) as Kept), replayed: true }
  }
  const outcome = await run()
  const answer = keep(outcome)
  if (answer === undefined) await forget(tx, tenantId, key)
  else await store(tx, tenantId, key, pack(answer))
  return outcome
}

/** Keeps outcomes with the tag. */
export function kept<Tag extends string>(tag: Tag) {
  return <Outcome extends { readonly tag: string }>(outcome: Outcome) =>
    outcome.tag === tag ? (outcome as Extract<Outcome, { readonly tag: Tag }>) : undefined
}

const take = (tx: Transaction, tenantId: string, key: Uint8Array, fingerprint: Uint8Array) =>
  onlyRow<Claimed>(tx, {
    name: 'idempotency.take',
    text: `select state, kept
           from svc_claim_idempotency_key($1, $2, $3, make_interval(secs => $4))`,
    values: [tenantId, key, fingerprint, LIFETIME_SECS],
  })

async function store(tx: Transaction, tenantId: string, key: Uint8Array, answer: Uint8Array) {
  await tx.query({
    name: 'idempotency.store',
    text: 'update idempotency_keys set answer = $3 where tenant_id = $1 and key_sha256 = $2',
    values: [tenantId, key, answer],
  })
}

async function forget(tx: Transaction, tenantId: string, key: Uint8Array) {
  await tx.query({
    name: 'idempotency.forget',
    text: 'delete from idempotency_keys where tenant_id = $1 and key_sha256 = $2',
    values: [tenantId, key],
  })
}

/** Removes up to `limit` keys older than 24 hours. Needs a transaction that crosses tenants. */
export const sweepIdempotencyKeys = (tx: Transaction, limit: number) =>
  changedRows(tx, {
    name: 'idempotency.sweep',
    text: `delete from idempotency_keys where (tenant_id, key_sha256) in (
             select tenant_id, key_sha256 from idempotency_keys
             where expires_at <= statement_timestamp() limit $1 for update skip locked)`,
    values: [limit],
  })
