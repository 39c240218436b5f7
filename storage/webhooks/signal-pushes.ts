/** Streams whose events are pushed (RFC 8935). A process leases a stream for each event. */
import { roleIn } from '../agents/agents.js'
import {
  agentInForce,
  claimInTurn,
  type ClaimRoom,
  claimValues,
  type TenantKind,
} from '../platform/in-force.js'
import { allRows, execute, onlyValue, type Transaction } from '../platform/sql.js'
import { notifyAfterCommit } from '../platform/transaction.js'

/** Wakes the workers that push events. */
export const SIGNALS_CHANNEL = 'svc_signals'

/** A stream with an event to push, leased. */
export type DueStream = TenantKind & {
  readonly tenantId: string
  readonly id: string
  readonly receiver: string
  readonly endpointUrl: string
  readonly authorizationSealed: Uint8Array | null
  /** Failed pushes of its first event. */
  readonly attempts: number
}

/** SQL: the receiver of a stream may get events, while it is active and may have streams. The tenant is checked apart. Crosses tenants. */
export function receives(stream: string): string {
  // Look-ups by key: the planner could read all applications otherwise.
  return `case when ${stream}.application_id is null
    then ${agentInForce(`${stream}.receiver::uuid`)} and (select count(*) = 0 from agent_suspensions x
      where x.tenant_id = ${stream}.tenant_id and x.agent_id = ${stream}.receiver::uuid)
      and coalesce((select 'ssf.manage' = any (a.scopes) or coalesce((select ${roleIn('t')} = 'owner' from tenants t
          where t.id = ${stream}.tenant_id), false)
        from agents a where a.id = ${stream}.receiver::uuid), false)
    else coalesce((select a.status = 'active' and 'ssf.manage' = any (a.scopes) from applications a
      where a.tenant_id = ${stream}.tenant_id and a.id = ${stream}.application_id), false) end`
}

const FREE = `q.due_at <= statement_timestamp() and q.endpoint_url is not null and q.status <> 'paused'
  and (q.leased_until is null or q.leased_until <= statement_timestamp())`

/** Leases streams, as many as there is room for. Crosses tenants. */
export const claimStreams = (tx: Transaction, lease: string, room: ClaimRoom, leaseSecs: number) =>
  allRows<DueStream>(tx, {
    name: 'signal_push.claim',
    text: claimInTurn({
      table: 'signal_streams',
      id: 'id',
      due: 'due_at',
      free: FREE,
      candidates: `select q.tenant_id, q.id, q.due_at from signal_streams q where ${FREE} and ${receives('q')}`,
      returning: `q.id, q.receiver, q.endpoint_url as "endpointUrl",
        q.authorization_sealed as "authorizationSealed", q.attempts`,
    }),
    values: claimValues(lease, room, leaseSecs),
  })

/** Milliseconds until a push is due, at most `withinMs`. Crosses tenants. */
export const nextPushMs = (tx: Transaction, withinMs: number) =>
  onlyValue<number>(tx, {
    name: 'signal_push.next',
    text: `select least($1, greatest(0, coalesce((
             select extract(epoch from due_at - clock_timestamp()) * 1000 from signal_streams
             where due_at > statement_timestamp() order by due_at limit 1), $1)))::float8 as ms`,
    values: [withinMs],
  })

/**
 * Ends the lease of a stream: its first event is due after `waitSecs`. Uses two statements: the second one sees every event
 * whose writer held the lock of the row before.
 */
export async function releaseStream(
  tx: Transaction,
  { tenantId, id }: Pick<DueStream, 'tenantId' | 'id'>,
  lease: string,
  failed: number,
  waitSecs: number,
): Promise<void> {
  const key = [tenantId, id, lease]
  await execute(tx, {
    name: 'signal_push.lock',
    text: 'select from signal_streams where tenant_id = $1 and id = $2 and lease = $3 for update',
    values: key,
  })
  await execute(tx, {
    name: 'signal_push.release',
    text: `update signal_streams s set lease = null, leased_until = null, attempts = $4,
             due_at = case when exists (select from signal_events e
                 where e.tenant_id = s.tenant_id and e.stream_id = s.id)
               then statement_timestamp() + make_interval(secs => $5) end
           where s.tenant_id = $1 and s.id = $2 and s.lease = $3`,
    values: [...key, failed, waitSecs],
  })
}

/** Makes streams due whose events are pushed. */
export async function wakeStreams(
  tx: Transaction,
  streams: readonly { readonly tenantId: string; readonly id: string }[],
): Promise<void> {
  await execute(tx, {
    name: 'signal_push.wake',
    text: `update signal_streams s set due_at = coalesce(s.due_at, statement_timestamp())
           from unnest($1::uuid[], $2::uuid[]) as g (tenant_id, id)
           where s.tenant_id = g.tenant_id and s.id = g.id and s.endpoint_url is not null`,
    values: [streams.map(({ tenantId }) => tenantId), streams.map(({ id }) => id)],
  })
  notifyAfterCommit(tx, SIGNALS_CHANNEL)
}
