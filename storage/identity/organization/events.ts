/** Events of organizations, for their owners. They span tenants, so every transaction here crosses tenants. */
import { allRows, firstRow, type Transaction } from '../../platform/sql.js'

type OrganizationEventRow = {
  readonly organizationId: string
  readonly sequence: number
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
  readonly occurredAt: Date
}

const COLUMNS = `organization_id as "organizationId", sequence, id, type, data, occurred_at as "occurredAt"`
/** An organization keeps its creation and this many later events. */
const KEPT = 10_000

/** Records an event with the commit. The lock of the organization orders the numbers. */
export function recordOrganizationEvent(
  tx: Transaction,
  event: Omit<OrganizationEventRow, 'sequence'>,
): void {
  tx.atCommit({
    name: 'organization_event.record',
    text: `with numbered as (
             update organizations set last_event = last_event + 1 where id = $1 returning last_event as number
           ), old as (
             delete from organization_events e using numbered n
             where e.organization_id = $1 and e.sequence = n.number - ${KEPT} and e.type <> 'org.created'
           )
           insert into organization_events (organization_id, sequence, id, type, data, occurred_at)
           select $1, number, $2, $3, $4, $5 from numbered`,
    values: [event.organizationId, event.id, event.type, event.data, event.occurredAt],
  })
}

/** The `org.created` event of an organization. Undefined if it is older than these events. */
export const findCreation = (tx: Transaction, organizationId: string) =>
  firstRow<OrganizationEventRow>(tx, {
    name: 'organization_event.creation',
    text: `select ${COLUMNS} from organization_events where organization_id = $1 and type = 'org.created'`,
    values: [organizationId],
  })

/** The events of an organization after a number, in order. */
export const organizationEventsAfter = (
  tx: Transaction,
  organizationId: string,
  after: number,
  limit: number,
) =>
  allRows<OrganizationEventRow>(tx, {
    name: 'organization_event.after',
    text: `select ${COLUMNS} from organization_events
           where organization_id = $1 and sequence > $2 order by sequence limit $3`,
    values: [organizationId, after, limit],
  })
