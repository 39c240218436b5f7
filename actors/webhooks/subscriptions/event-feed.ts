/** Lists a tenant's events by number and in order, for receivers that cannot be reached by HTTP. */
import type { Handlers } from '../../../runtime/kernel/actor.js'
import { eventsAfter, lastEventSequence } from '../../../storage/platform/outbox.js'
import type { Database } from '../../../storage/platform/sql.js'
import { EVENT_TYPES } from '../../domain/events.js'
import type { WebhooksProtocol } from './protocol.js'

const CATALOGUE: ReadonlySet<string> = new Set(EVENT_TYPES)

export function eventFeed(database: Database): Handlers<WebhooksProtocol>['events'] {
  return ({ tenantId, after, limit }, { signal }) =>
    database.tenant(
      tenantId,
      async (tx) => {
        if (after === null) {
          return { tag: 'listed', events: [], nextAfter: await lastEventSequence(tx, tenantId) }
        }
        const rows = await eventsAfter(tx, tenantId, after, limit)
        return {
          tag: 'listed',
          // Event types outside of the catalogue are internal, as for subscriptions.
          events: rows.filter(({ type }) => CATALOGUE.has(type)),
          nextAfter: rows.at(-1)?.sequence ?? after,
        }
      },
      { signal },
    )
}
