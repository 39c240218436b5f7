/**
 * The applications of browser sessions, and their logout tokens (OpenID Connect Back-Channel Logout 1.0). The
 * end of a session makes its rows due (storage/platform/ends/table.ts), in the transaction of that end.
 */
import {
  allRows,
  changedRows,
  execute,
  isChanged,
  onlyValue,
  type Transaction,
} from '../platform/sql.js'
import {
  type ClaimRoom,
  heldValues,
  tenantIsOutside,
  type TenantKind,
  tenantKind,
} from '../platform/in-force.js'
import { LOGOUTS_CHANNEL } from '../platform/ends/table.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'
import { notifyAfterCommit } from '../platform/transaction.js'
import type { ApplicationRow } from './applications.js'

type SessionApplication = {
  readonly tenantId: string
  readonly sessionId: string
  readonly applicationId: string
  readonly subject: string
}

/** SQL: when a browser session `b` times out. */
const TIMES_OUT = 'least(b.expires_at, b.last_seen_at + make_interval(secs => b.idle_secs))'

/** Records that a person signs in to an application in an open browser session. */
export const joinSession = (tx: Transaction, s: SessionApplication) =>
  execute(tx, {
    name: 'logout.join_session',
    text: `insert into session_applications (tenant_id, session_id, application_id, subject, due_at)
           select b.tenant_id, b.id, $3, $4, ${TIMES_OUT} from browser_sessions b
           where b.tenant_id = $1 and b.id = $2
           on conflict do nothing`,
    values: [s.tenantId, s.sessionId, s.applicationId, s.subject],
  })

const FRAMES_MAX = 100

/** What the frames of a sign-out page load: for an open session, and for those that it replaced. */
export const listLogoutFrames = (tx: Transaction, tenantId: string, sessionId: string) =>
  allRows<{ readonly uri: string; readonly sessionId: string }>(tx, {
    name: 'logout.frames',
    text: `with recursive earlier (tenant_id, id) as (
             select tenant_id, id from browser_sessions where tenant_id = $1 and id = $2
             union
             select b.tenant_id, b.id
             from earlier e join browser_sessions b on b.tenant_id = e.tenant_id and b.replaced_by = e.id)
           select a.frontchannel_logout_uri as uri, s.session_id as "sessionId"
           from earlier e
             join session_applications s on s.tenant_id = e.tenant_id and s.session_id = e.id
             join applications a on a.tenant_id = s.tenant_id and a.id = s.application_id
           where s.ended_at is null and a.status = 'active' and a.frontchannel_logout_uri is not null
           order by s.session_id, a.id limit ${FRAMES_MAX}`,
    values: [tenantId, sessionId],
  })

/** A logout token to deliver, by an attempt that is under way. */
export type DueLogout = SessionApplication &
  TenantKind & {
    readonly endedAt: Date
    /** Earlier attempts. */
    readonly attempts: number
    /** The `client_id`. Null: the application was deleted. */
    readonly clientId: string | null
    /** Null: the application wants no logout tokens any more, or is disabled. */
    readonly uri: string | null
    readonly algorithm: ApplicationRow['idTokenSignedResponseAlg']
  }

/** What a worker may take. */
export type LogoutRoom = ClaimRoom & {
  readonly perApplicationMax: number
  /** What the worker holds of applications, by id. */
  readonly heldOfApplications: ReadonlyMap<string, number>
}

const DUE = `s.ended_at is not null and s.due_at <= statement_timestamp()`

/**
 * Takes due logouts for `leaseSecs`: after that, another process takes those that were not settled. Tenants take turns, and
 * one that holds none gets a first one where there is no room. Crosses tenants. The applications of a suspended tenant get
 * theirs too.
 */
export const claimLogouts = (tx: Transaction, room: LogoutRoom, leaseSecs: number) =>
  allRows<DueLogout>(tx, {
    name: 'logout.claim',
    text: `with due as materialized (
             select each.*, coalesce(h.held, 0) + row_number() over (partition by each.tenant_id order by each.due_at) as place
             from (select distinct s.tenant_id from session_applications s where ${DUE}) t
               left join unnest($2::uuid[], $3::integer[]) as h (tenant_id, held) on h.tenant_id = t.tenant_id
               cross join lateral (
                 select ranked.* from (
                   select s.tenant_id, s.session_id, s.application_id, s.due_at,
                     coalesce(a.held, 0) + row_number() over (partition by s.application_id order by s.due_at) as nth
                   from session_applications s
                     left join unnest($4::uuid[], $5::integer[]) as a (application_id, held)
                       on a.application_id = s.application_id
                   where s.tenant_id = t.tenant_id and ${DUE}) ranked
                 where ranked.nth <= $6 order by ranked.due_at limit $7) each
             where coalesce(h.held, 0) < $7 and ${tenantIsOutside('t.tenant_id', '$8', '$9')}),
           chosen as (
             select * from due where place <= $7 and (place = 1 or $10 > 0)
             order by place, due_at limit greatest($10, $11)),
           locked as (
             select s.* from session_applications s
               join chosen using (tenant_id, session_id, application_id)
             where s.due_at <= statement_timestamp() for update of s skip locked)
           update session_applications s
           set due_at = statement_timestamp() + make_interval(secs => $1)
           from locked l left join applications a on a.tenant_id = l.tenant_id and a.id = l.application_id
           where s.tenant_id = l.tenant_id and s.session_id = l.session_id
             and s.application_id = l.application_id
           returning ${columnsOf('tenant_id session_id application_id subject ended_at attempts', 's')},
             coalesce(a.metadata_url, a.id::text) as "clientId",
             case when a.status = 'active' then a.backchannel_logout_uri end as uri,
             a.id_token_signed_response_alg as algorithm, ${tenantKind('s.tenant_id')}`,
    values: [
      leaseSecs,
      ...heldValues(room),
      [...room.heldOfApplications.keys()],
      [...room.heldOfApplications.values()],
      room.perApplicationMax,
      room.perTenantMax,
      room.full.sandboxes,
      room.full.networks,
      room.limit,
      room.firstMax,
    ],
  })

/**
 * Milliseconds until a logout is due, at most `withinMs`. What is due already is not counted: it waits for a place, and an
 * attempt that ends wakes the worker. Crosses tenants.
 */
export const nextLogoutMs = (tx: Transaction, withinMs: number) =>
  onlyValue<number>(tx, {
    name: 'logout.next',
    text: `select least($1, greatest(0, coalesce((
             select extract(epoch from due_at - clock_timestamp()) * 1000 from session_applications
             where ended_at is not null and due_at > statement_timestamp()
             order by due_at limit 1), $1)))::float8 as ms`,
    values: [withinMs],
  })

/** The attempt gave its place to another tenant. It counts as none. */
export const postponeLogout = (tx: Transaction, of: DueLogout, waitSecs: number) =>
  execute(tx, {
    name: 'logout.postpone',
    text: `update session_applications set due_at = statement_timestamp() + make_interval(secs => $5)
           where tenant_id = $1 and session_id = $2 and application_id = $3 and attempts = $4`,
    values: [of.tenantId, of.sessionId, of.applicationId, of.attempts, waitSecs],
  })

/** The application has the logout token, or gets none. True for the call that settled it. */
export const settleLogout = (tx: Transaction, of: DueLogout) =>
  isChanged(tx, {
    name: 'logout.settle',
    text: `delete from session_applications
           where tenant_id = $1 and session_id = $2 and application_id = $3 and attempts = $4
             and ended_at is not null`,
    values: [of.tenantId, of.sessionId, of.applicationId, of.attempts],
  })

/** The application did not take the logout: another attempt follows. */
export const retryLogout = (tx: Transaction, of: DueLogout, waitSecs: number) =>
  execute(tx, {
    name: 'logout.retry',
    text: `update session_applications
           set attempts = attempts + 1, due_at = statement_timestamp() + make_interval(secs => $5)
           where tenant_id = $1 and session_id = $2 and application_id = $3 and attempts = $4`,
    values: [of.tenantId, of.sessionId, of.applicationId, of.attempts, waitSecs],
  })

/**
 * Looks at up to `limit` rows whose session may have timed out, makes those due whose session did, and says how many it
 * looked at. A session that was replaced times out with the one that replaced it. Crosses tenants.
 */
export async function endTimedOut(tx: Transaction, now: Date, limit: number): Promise<number> {
  const seen = await changedRows(tx, {
    name: 'logout.end_timed_out',
    text: `with recursive looked as materialized (
             select tenant_id, session_id, application_id from session_applications
             where ended_at is null and due_at <= $1
             order by due_at limit $2 for update skip locked),
           later (tenant_id, session_id, replaced_by, ended_at, times_out) as (
             select l.tenant_id, l.session_id, b.replaced_by, b.ended_at, ${TIMES_OUT}
             from (select distinct tenant_id, session_id from looked) l
               cross join lateral (select * from browser_sessions
                 where tenant_id = l.tenant_id and id = l.session_id offset 0) b
             union
             select l.tenant_id, l.session_id, b.replaced_by, b.ended_at, ${TIMES_OUT}
             from later l
               cross join lateral (select * from browser_sessions
                 where tenant_id = l.tenant_id and id = l.replaced_by offset 0) b),
           judged as (
             select x.*, (select l.times_out from later l
               where l.tenant_id = x.tenant_id and l.session_id = x.session_id
                 and l.ended_at is null and l.times_out > $1) as times_out
             from looked x)
           update session_applications s
           set ended_at = case when j.times_out is null then $1::timestamptz end,
             due_at = coalesce(j.times_out, statement_timestamp())
           from judged j where s.tenant_id = j.tenant_id and s.session_id = j.session_id
             and s.application_id = j.application_id`,
    values: [now, limit],
  })
  if (seen > 0) notifyAfterCommit(tx, LOGOUTS_CHANNEL)
  return seen
}
