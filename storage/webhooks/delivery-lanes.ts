/**
 * Delivery lanes: one per subscription. A lane records when the subscription has due deliveries,
 * and which worker sends them. The lanes of a suspended tenant keep their due time and are claimed
 * again once the tenant is active.
 */
import { allRows, execute, onlyValue, type Transaction } from '../platform/sql.js'
import {
  claimInTurn,
  type ClaimRoom,
  claimValues,
  dueWithin,
  type FullGroups,
  heldValues,
  joinHeld,
  isFirst,
  placeInTurn,
  tenantHasRoom,
  tenantInForce,
  type TenantKind,
  tenantKind,
} from '../platform/in-force.js'

/**
 * Wakes the delivery workers for changes that no event announces, such as replays. Has no payload.
 */
export const DELIVERIES_CHANNEL = 'svc_webhook_deliveries'

export type LaneKey = { readonly tenantId: string; readonly webhookId: string }
export type ClaimedLane = LaneKey &
  TenantKind & {
    /** Consecutive attempts without a response. */
    failures: number
    failingSince: Date | null
  }

export type LaneRoom = ClaimRoom

/**
 * True if there is work for delivery workers: a subscription of any tenant, or an event that was not dispatched.
 * Crosses tenants.
 */
export async function hasDeliveryWork(tx: Transaction): Promise<boolean> {
  // Ordered, so that each row is the first of an index.
  const { rows } = await tx.query<{ hasWork: boolean }>({
    name: 'webhook_lane.work',
    text: `select (select tenant_id from webhook_lanes order by tenant_id, webhook_id limit 1) is not null
             or (select tenant_id from waiting_events order by occurred_at, tenant_id, sequence limit 1) is not null
             or (select id from events where dispatched_at is null order by occurred_at, id limit 1) is not null
             as "hasWork"`,
  })
  return rows[0]?.hasWork === true
}

/** Makes lanes due: they have deliveries that may be sent immediately. */
export async function wakeLanes(tx: Transaction, lanes: readonly LaneKey[]): Promise<void> {
  if (lanes.length === 0) return
  // Locks rows in a fixed order, so that concurrent transactions wait instead of deadlocking. The
  // condition is evaluated on the locked row, because its worker may have released it since the
  // statement began.
  await tx.query({
    name: 'webhook_lane.wake',
    text: `with woken as (
             select l.tenant_id, l.webhook_id, l.due_at from webhook_lanes l
             join unnest($1::uuid[], $2::uuid[]) as g (tenant_id, webhook_id)
               using (tenant_id, webhook_id)
             order by l.tenant_id, l.webhook_id for update of l)
           update webhook_lanes l set due_at = least(l.due_at, statement_timestamp())
           from woken w where l.tenant_id = w.tenant_id and l.webhook_id = w.webhook_id
             and (w.due_at is null or w.due_at > statement_timestamp())`,
    values: [lanes.map(({ tenantId }) => tenantId), lanes.map(({ webhookId }) => webhookId)],
  })
}

/** Checked twice: another worker may lease a lane between the selection and the lock. */
const FREE = `q.due_at <= statement_timestamp()
  and (q.held_until is null or q.held_until <= statement_timestamp())
  and (q.leased_until is null or q.leased_until <= statement_timestamp())`

/**
 * Leases due lanes to one worker, as many as it has room for.
 * @param lease id of the worker.
 */
export const claimLanes = (tx: Transaction, lease: string, room: LaneRoom, leaseSecs: number) =>
  allRows<ClaimedLane>(tx, {
    name: 'webhook_lane.claim',
    text: claimInTurn({
      table: 'webhook_lanes',
      id: 'webhook_id',
      due: 'due_at',
      free: FREE,
      candidates: `select q.tenant_id, q.webhook_id, q.due_at from webhook_lanes q where ${FREE}`,
      returning: LANE,
    }),
    values: claimValues(lease, room, leaseSecs),
  })

/** Columns of a `ClaimedLane`, except its tenant. */
const LANE = `q.webhook_id as "webhookId", q.failures, q.failing_since as "failingSince"`

type WokenLanes = {
  readonly claimed: readonly ClaimedLane[]
  /** Free lanes that were not claimed, because the share of their tenant or its group is full. */
  readonly refused: number
}

/**
 * Makes lanes due, and leases the free ones to one worker as far as it has room, so that new
 * deliveries are sent without another query. Lanes that rest, or that another worker holds, only
 * become due.
 */
export async function wakeAndClaimLanes(
  tx: Transaction,
  lanes: readonly LaneKey[],
  lease: string,
  room: LaneRoom,
  leaseSecs: number,
): Promise<WokenLanes> {
  const { limit, perTenantMax, full, firstMax } = room
  if (lanes.length === 0) return { claimed: [], refused: 0 }
  // Locks and conditions as in `wakeLanes`, turns as in `claimLanes`.
  const { rows } = await tx.query<ClaimedLane & { mine: boolean; refused: boolean }>({
    name: 'webhook_lane.wake_and_claim',
    text: `with woken as (
             select l.tenant_id, l.webhook_id, l.due_at,
               (l.held_until is null or l.held_until <= statement_timestamp())
                 and ${tenantInForce('l.tenant_id')}
                 and (l.leased_until is null or l.leased_until <= statement_timestamp()) as free
             from webhook_lanes l
             join unnest($1::uuid[], $2::uuid[]) as g (tenant_id, webhook_id)
               using (tenant_id, webhook_id)
             order by l.tenant_id, l.webhook_id for update of l),
           placed as (
             select w.*, ${placeInTurn('w.free, w.tenant_id', 'w.due_at')} as place
             from woken w ${joinHeld('w.tenant_id', ['$6', '$7'])}),
           ranked as (
             select *, row_number() over (partition by free and room order by place, due_at) as nth
             from (select *, place <= $8 and (${isFirst('tenant_id', 'place', '$11')}
                 or ${tenantHasRoom('tenant_id', '$9', '$10')}) as room from placed) p),
           judged as (
             select *, free and not room as refused,
               free and room and (nth <= $4 or (place = 1 and nth <= $11)) as mine
             from ranked)
           update webhook_lanes q set due_at = least(q.due_at, statement_timestamp()),
             lease = case when j.mine then $3 else q.lease end,
             leased_until = case when j.mine
               then statement_timestamp() + make_interval(secs => $5) else q.leased_until end
           from judged j where q.tenant_id = j.tenant_id and q.webhook_id = j.webhook_id
             and (j.mine or j.due_at is null or j.due_at > statement_timestamp())
           returning q.tenant_id as "tenantId", ${LANE}, j.mine, j.refused,
             ${tenantKind('q.tenant_id')}`,
    values: [
      lanes.map(({ tenantId }) => tenantId),
      lanes.map(({ webhookId }) => webhookId),
      lease,
      limit,
      leaseSecs,
      ...heldValues(room),
      perTenantMax,
      full.sandboxes,
      full.networks,
      firstMax,
    ],
  })
  const claimed = rows
    .filter(({ mine }) => mine)
    .map(({ mine: _mine, refused: _refused, ...lane }) => lane)
  return { claimed, refused: rows.filter(({ refused }) => refused).length }
}

/**
 * Milliseconds until a lane may be claimed, at most `withinMs`.
 * @param without tenants whose share is full.
 * @param full groups whose share is full.
 */
export const nextLaneMs = (
  tx: Transaction,
  withinMs: number,
  without: readonly string[],
  full: FullGroups,
) =>
  onlyValue<number>(tx, {
    name: 'webhook_lane.next',
    text: dueWithin(
      { table: 'webhook_lanes', due: 'due_at' },
      'greatest(q.due_at, q.held_until, q.leased_until)',
    ),
    values: [withinMs, without, full.sandboxes, full.networks],
  })

/** Extends the leases of all lanes of a worker. */
export const renewLanes = (tx: Transaction, lease: string, leaseSecs: number) =>
  execute(tx, {
    name: 'webhook_lane.renew',
    text: `with held as (
             select tenant_id, webhook_id from webhook_lanes where lease = $1
             order by tenant_id, webhook_id for update)
           update webhook_lanes l
           set leased_until = statement_timestamp() + make_interval(secs => $2)
           from held h where l.tenant_id = h.tenant_id and l.webhook_id = h.webhook_id`,
    values: [lease, leaseSecs],
  })

export type LaneRelease = LaneKey & {
  readonly failures: number
  readonly failingSince: Date | null
  /** Rest of the receiver in seconds. 0 for none. */
  readonly heldSecs: number
}

/**
 * Releases lanes and sets when they are due again. Uses two statements: once the rows are locked,
 * the second statement sees every delivery whose writer held the lock before, and later writers
 * wake the lane. A lane that another worker holds by now stays unchanged.
 */
export async function releaseLanes(
  tx: Transaction,
  lease: string,
  lanes: readonly LaneRelease[],
): Promise<void> {
  const keys = [lanes.map(({ tenantId }) => tenantId), lanes.map(({ webhookId }) => webhookId)]
  await tx.query({
    name: 'webhook_lane.lock',
    text: `select from webhook_lanes l
           join unnest($1::uuid[], $2::uuid[]) as g (tenant_id, webhook_id)
             using (tenant_id, webhook_id)
           order by l.tenant_id, l.webhook_id for update of l`,
    values: keys,
  })
  await tx.query({
    name: 'webhook_lane.release',
    // Due at the earliest from now on, so that busy lanes take turns.
    text: `update webhook_lanes l set lease = null, leased_until = null, failures = g.failures,
             failing_since = g.failing_since,
             held_until = case when g.held > 0
               then statement_timestamp() + make_interval(secs => g.held) end,
             due_at = (select greatest(d.next_attempt_at, statement_timestamp())
               from webhook_deliveries d
               where d.webhook_id = l.webhook_id and d.next_attempt_at is not null
               order by d.next_attempt_at limit 1)
           from unnest($1::uuid[], $2::uuid[], $4::integer[], $5::timestamptz[], $6::float8[])
             as g (tenant_id, webhook_id, failures, failing_since, held)
           where l.tenant_id = g.tenant_id and l.webhook_id = g.webhook_id and l.lease = $3`,
    values: [
      ...keys,
      lease,
      lanes.map(({ failures }) => failures),
      lanes.map(({ failingSince }) => failingSince),
      lanes.map(({ heldSecs }) => heldSecs),
    ],
  })
}
