/** What happened in a tenant, by hour. The rows are counted by `svc_number_tenants` and with the attempts of deliveries. */
import { removing } from '../platform/portable/expiry.js'
import { allRows, type Transaction } from '../platform/sql.js'

export type ActivityRow = {
  readonly kind: string
  /** Beginning of the step. */
  readonly at: Date
  readonly total: number
  /** How many of them were refused or failed. */
  readonly failed: number
}

/** The figures of a tenant since a time, added up in steps of some hours. */
export const listActivity = (tx: Transaction, tenantId: string, since: Date, stepSecs: number) =>
  allRows<ActivityRow>(tx, {
    name: 'activity.list',
    text: `select kind, to_timestamp(floor(extract(epoch from hour) / $3::integer) * $3::integer) as at,
             sum(total)::float8 as total, sum(failed)::float8 as failed
           from activity_hours where tenant_id = $1 and hour >= $2
           group by 1, 2 order by 1, 2`,
    values: [tenantId, since, stepSecs],
  })

/** SQL: adds a row of figures to the row of its hour. */
export const ADDED_TO_HOUR = `on conflict (tenant_id, kind, hour) do update
             set total = a.total + excluded.total, failed = a.failed + excluded.failed`

export const removeOldActivity = removing(
  'activity.sweep',
  'activity_hours',
  'hour',
  '(tenant_id, kind, hour)',
)
