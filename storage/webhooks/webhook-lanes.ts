/**
 * The lanes of webhook subscriptions: who has something to send, and which worker sends it. The lanes of a
 * suspended tenant keep what is due: they are claimed again once the tenant is active.
 */
import { tenantInForce } from '../platform/in-force.js'
import type { Transaction } from '../platform/sql.js'

/** Wakes the delivery workers for what did not come out of an event: replays. Carries nothing. */
export const DELIVERIES_CHANNEL = 'svc_webhook_deliveries'

export type LaneKey = { readonly tenantId: string; readonly webhookId: string }
export type ClaimedLane = LaneKey & {
  /** Attempts in a row that found nobody. */
  failures: number
  failingSince: Date | null
}

/** How many lanes a worker takes, and of one tenant. */
export type LaneRoom = {
  readonly limit: number
  /** Lanes of one tenant, those included that the worker has already. */
  readonly perTenantMax: number
  /** What the worker has already, by tenant. */
  readonly held: ReadonlyMap<string, number>
}

/** Makes lanes due: they have deliveries that may be sent at once. */
export async function wakeLanes(tx: Transaction, lanes: readonly LaneKey[]): Promise<void> {
  if (lanes.length === 0) return
  // Locked in one order, so that two transactions which wake the same lanes wait and do not tangle.
  // Whether there is anything to change is judged by the row as it is once it is locked: the one
  // this statement began with may have been due until its worker gave it back a moment ago.
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

/**
 * Leases lanes that are due to one worker, as many as it has room for. Tenants take turns: the first
 * lane of each goes before the second of any, what the worker has of a tenant counts as taken, and
 * within a turn the longest due goes first.
 * @param lease names the worker.
 */
export async function claimLanes(
  tx: Transaction,
  lease: string,
  { limit, perTenantMax, held }: LaneRoom,
  leaseSecs: number,
): Promise<ClaimedLane[]> {
  const { rows } = await tx.query<ClaimedLane>({
    name: 'webhook_lane.claim',
    text: `with waiting as (
             select l.tenant_id, l.webhook_id, l.due_at,
               row_number() over (partition by l.tenant_id order by l.due_at)
                 + coalesce(h.held, 0) as place
             from webhook_lanes l
             left join unnest($4::uuid[], $5::integer[]) as h (tenant_id, held) using (tenant_id)
             where ${DUE_AND_FREE}),
           chosen as (
             select tenant_id, webhook_id from waiting where place <= $6
             order by place, due_at limit $2),
           due as (
             select l.tenant_id, l.webhook_id
             from webhook_lanes l join chosen using (tenant_id, webhook_id)
             where ${DUE_AND_FREE}
             for update of l skip locked)
           update webhook_lanes l
           set lease = $1, leased_until = statement_timestamp() + make_interval(secs => $3)
           from due where l.tenant_id = due.tenant_id and l.webhook_id = due.webhook_id
           returning l.tenant_id as "tenantId", l.webhook_id as "webhookId", l.failures,
                     l.failing_since as "failingSince"`,
    values: [lease, limit, leaseSecs, [...held.keys()], [...held.values()], perTenantMax],
  })
  return rows
}

/** Judged twice: of a lane that another worker leased in between, the second time says so. */
const DUE_AND_FREE = `l.due_at <= statement_timestamp()
  and (l.held_until is null or l.held_until <= statement_timestamp())
  and (l.leased_until is null or l.leased_until <= statement_timestamp())
  and ${tenantInForce('l.tenant_id')}`

export type WokenLanes = {
  readonly claimed: readonly ClaimedLane[]
  /** Lanes that were free and were left, because their tenant has its share. */
  readonly refused: number
}

/**
 * Makes lanes due, and leases those that nobody has to one worker, as far as it has room: what has just
 * been written is sent without another look. Lanes that rest, or that another worker has, are only woken.
 */
export async function wakeAndClaimLanes(
  tx: Transaction,
  lanes: readonly LaneKey[],
  lease: string,
  { limit, perTenantMax, held }: LaneRoom,
  leaseSecs: number,
): Promise<WokenLanes> {
  if (lanes.length === 0) return { claimed: [], refused: 0 }
  // Locked and judged as in `wakeLanes`, in turns as in `claimLanes`.
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
             select w.*, row_number() over (partition by free, tenant_id order by due_at)
               + coalesce(h.held, 0) as place
             from woken w
             left join unnest($6::uuid[], $7::integer[]) as h (tenant_id, held) using (tenant_id)),
           judged as (
             select *, free and place > $8 as refused, free and place <= $8
               and row_number() over (partition by free and place <= $8
                 order by place, due_at) <= $4 as mine
             from placed)
           update webhook_lanes l set due_at = least(l.due_at, statement_timestamp()),
             lease = case when j.mine then $3 else l.lease end,
             leased_until = case when j.mine
               then statement_timestamp() + make_interval(secs => $5) else l.leased_until end
           from judged j where l.tenant_id = j.tenant_id and l.webhook_id = j.webhook_id
             and (j.mine or j.due_at is null or j.due_at > statement_timestamp())
           returning l.tenant_id as "tenantId", l.webhook_id as "webhookId", l.failures,
                     l.failing_since as "failingSince", j.mine, j.refused`,
    values: [
      lanes.map(({ tenantId }) => tenantId),
      lanes.map(({ webhookId }) => webhookId),
      lease,
      limit,
      leaseSecs,
      [...held.keys()],
      [...held.values()],
      perTenantMax,
    ],
  })
  const claimed = rows
    .filter(({ mine }) => mine)
    .map(({ mine: _mine, refused: _refused, ...lane }) => lane)
  return { claimed, refused: rows.filter(({ refused }) => refused).length }
}

/**
 * Milliseconds until a lane may be claimed, at most `withinMs`.
 * @param without tenants of which the worker takes no more.
 */
export async function nextLaneMs(
  tx: Transaction,
  withinMs: number,
  without: readonly string[] = [],
): Promise<number> {
  const { rows } = await tx.query<{ ms: number }>({
    name: 'webhook_lane.next',
    text: `select coalesce(min(extract(epoch from greatest(due_at, held_until, leased_until)
                    - clock_timestamp()) * 1000), $1)::float8 as ms
           from webhook_lanes l
           where due_at <= statement_timestamp() + make_interval(secs => $1::float8 / 1000)
             and l.tenant_id <> all($2::uuid[])
             and ${tenantInForce('l.tenant_id')}`,
    values: [withinMs, without],
  })
  return Math.min(withinMs, Math.max(0, rows[0]!.ms))
}

/** Keeps every lane of a worker for longer. */
export async function renewLanes(tx: Transaction, lease: string, leaseSecs: number): Promise<void> {
  await tx.query({
    name: 'webhook_lane.renew',
    text: `with held as (
             select tenant_id, webhook_id from webhook_lanes where lease = $1
             order by tenant_id, webhook_id for update)
           update webhook_lanes l
           set leased_until = statement_timestamp() + make_interval(secs => $2)
           from held h where l.tenant_id = h.tenant_id and l.webhook_id = h.webhook_id`,
    values: [lease, leaseSecs],
  })
}

export type LaneRelease = LaneKey & {
  readonly failures: number
  readonly failingSince: Date | null
  /** Rest for the receiver; 0 for none. */
  readonly heldSecs: number
}

/**
 * Gives lanes back and says when they are due again. Two statements: once the rows are locked, the
 * second one sees every delivery whose writer had the lock before; those after will wake the lane.
 * A lane that another worker holds by now is left to it.
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
    // Due again from now on at the earliest, so that busy lanes take turns.
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
