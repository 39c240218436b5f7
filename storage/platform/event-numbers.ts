/**
 * Numbers events after the commit of their transactions: per tenant without gaps, in the order in which they were
 * recorded, and each as the next record of the tenant's audit chain (migration 0081).
 */
import type { OpenDatabase } from './database.js'
import { notifyAfterCommit } from './transaction.js'
import { firstValue, type Transaction } from './sql.js'

/** Notifies the sequencers that transactions recorded events. The notifications have no payload. */
export const RECORDED_CHANNEL = 'svc_recorded'
/** Notifies the workers that dispatch events. The notifications have no payload. */
export const EVENTS_CHANNEL = 'svc_events'
/** Notifies the workers that write the events of streams: a tenant with a stream has new records. */
export const CAUSES_CHANNEL = 'svc_signal_causes'

/** Rows of events that a reader numbers in one statement. A row has up to about ten events of one transaction. */
const ROWS_MAX = 100
/** Rows of one tenant, and tenants, in one statement of a pass. */
const PASS_ROWS_MAX = 64
const TENANTS_MAX = 100
/** `failure` of a tenant whose head another transaction holds. */
export const LOCKED = 'locked'
const FIRST_TENANT = '00000000-0000-0000-0000-000000000000'

/**
 * Numbers all committed events of a tenant, and the events of this transaction. A reader calls it
 * first, so that it sees every acknowledged event. Waits for a sequencer that has the tenant.
 */
export async function numberEvents(tx: Transaction, tenantId: string): Promise<void> {
  let numbered = ROWS_MAX
  while (numbered >= ROWS_MAX) {
    const { rows } = await tx.query<{ numbered: number; waiting: number }>({
      name: 'event_numbers.tenant',
      text: `select numbered, waiting from svc_number_events($1, $2)
             where exists (select from unnumbered_events where tenant_id = $1)`,
      values: [tenantId, ROWS_MAX],
    })
    numbered = rows[0]?.numbered ?? 0
    // The sequencer does not find them any more.
    if (numbered > 0) notifyAfterCommit(tx, CAUSES_CHANNEL)
    if (rows.some(({ waiting }) => waiting > 0)) notifyAfterCommit(tx, EVENTS_CHANNEL)
  }
}

/** Events of a tenant that have no number yet. */
export const unnumberedEvents = async (tx: Transaction, tenantId: string) =>
  (await firstValue<number>(tx, {
    name: 'event_numbers.count',
    text: `select count(l.line)::int as count
           from unnumbered_events u, unnest(string_to_array(u.line, chr(10))) as l (line)
           where u.tenant_id = $1`,
    values: [tenantId],
  })) ?? 0

/** What a pass did for one tenant. */
export type NumberedTenant = {
  readonly tenantId: string
  readonly numbered: number
  /** Numbered events that a webhook may want. */
  readonly waiting: number
  /** Some were numbered, and the tenant has a stream of security events, which looks at them. */
  readonly isStreamed: boolean
  /** The time of the first numbered event. Null if no event was numbered. */
  readonly oldest: Date | null
  /** `LOCKED` while another sequencer or a reader numbers the events, otherwise the error of the database. */
  readonly failure: string | null
}

/**
 * One statement of a pass: up to 100 tenants after `after`, each with the events of up to 64 rows (migration 0121). One with
 * fewer tenants was the last one.
 */
export async function numberWaiting(
  tx: Transaction,
  after: string = FIRST_TENANT,
): Promise<{ readonly tenants: readonly NumberedTenant[]; readonly next: string | undefined }> {
  const { rows } = await tx.query<NumberedTenant>({
    name: 'event_numbers.pass',
    text: `select w.tenant_id as "tenantId", w.numbered, w.waiting, w.oldest, w.failure,
             w.numbered > 0 and coalesce((select true from signal_streams s
               where s.tenant_id = w.tenant_id and s.status <> 'disabled' limit 1), false) as "isStreamed"
           from svc_number_waiting($1, $2, $3) w`,
    values: [after, TENANTS_MAX, PASS_ROWS_MAX],
  })
  return { tenants: rows, next: rows.length === TENANTS_MAX ? rows.at(-1)!.tenantId : undefined }
}

/** True if the role of this process owns the table. Without that, only autovacuum frees its space. */
export async function mayFreeNumbered(database: Pick<OpenDatabase, 'single'>): Promise<boolean> {
  const { rows } = await database.single<{ isOwner: boolean }>({
    name: 'event_numbers.may_free',
    text: `select pg_has_role(relowner, 'usage') as "isOwner" from pg_class
           where oid = 'unnumbered_events'::regclass`,
  })
  return rows[0]?.isOwner === true
}

/**
 * Frees the space of events that have their numbers, so that the table stays small and a pass finds its events quickly.
 * Autovacuum would do it once a minute. Leaves it to another process that does it already.
 */
export async function freeNumbered(database: Pick<OpenDatabase, 'single'>): Promise<void> {
  await database.single(
    {
      name: 'event_numbers.free',
      text: 'vacuum (skip_locked, index_cleanup on, truncate off) unnumbered_events',
    },
    { pool: 'background' },
  )
}

/** True when the next pass may number further events of the tenant. */
export function hasMore({ numbered, failure }: NumberedTenant): boolean {
  return numbered >= PASS_ROWS_MAX || failure === LOCKED
}
