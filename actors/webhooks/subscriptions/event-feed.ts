/** A tenant's events for those whom nobody can call: fetched by number, in order. */
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
          // What is not in the catalogue is nobody's to hear, as with subscriptions.
          events: rows.filter(({ type }) => CATALOGUE.has(type)),
          nextAfter: rows.at(-1)?.sequence ?? after,
        }
      },
      { signal },
    )
}
