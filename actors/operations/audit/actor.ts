/** Reads and verifies audit chains. Events are written in the transaction of the audited change. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import { defineActor } from '../../../runtime/kernel/actor.js'
import {
  auditEventsAfter,
  auditHead,
  listAuditEventRows,
} from '../../../storage/operations/audit.js'
import { nameAudited } from '../../../storage/operations/audit-names.js'
import { listActivity } from '../../../storage/operations/activity.js'
import { ChainCheck, FIRST_PREVIOUS_HASH } from '../../../storage/operations/audit-chain.js'
import { numberEvents, unnumberedEvents } from '../../../storage/platform/event-numbers.js'
import type { Database } from '../../../storage/platform/sql.js'
import { page } from '../../platform/paging.js'
import { seriesOf, stepsOf } from './activity.js'
import { type AuditProtocol, type AuditVerified, audit } from './protocol.js'
import { inTenant } from '../../platform/in-tenant.js'

/** Events read and verified per batch. */
const BATCH = 500
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i

type AuditNeeds = { readonly database: Database; readonly clock: Clock }

export const auditActor = defineActor<AuditProtocol, AuditNeeds>({
  address: audit,
  asks: {},
  mailbox: { capacity: 256, inflightMax: 8 },
  lane: {
    // Limits the concurrent verifications of one tenant to one.
    verifyAuditEvents: ({ tenantId }) => tenantId,
  },
  supervision: { onFailure: 'resume' },
  create: ({ database, clock }) => ({
    async listAuditEvents({ tenantId, limit, after, ...filter }, { signal }) {
      const rows = await inTenant(database, tenantId, { signal }, (tx) =>
        listAuditEventRows(tx, tenantId, filter, limit + 1, after),
      )
      const { items, next } = page(
        rows.map((event) => ({ event, id: event.id, createdAt: new Date(event.occurred_at) })),
        limit,
      )
      return { tag: 'listed', events: items.map(({ event }) => event), next, nextSequence: null }
    },

    async listAuditNames({ tenantId, ids, namesPeople }, { signal }) {
      const uuids = ids.filter((id) => UUID.test(id))
      // Accounts have no tenant, so the statement filters by tenant.
      const names = await database.system(
        (tx) => nameAudited(tx, tenantId, uuids, namesPeople ? ids : []),
        { signal },
      )
      return { tag: 'named', names }
    },

    async readActivity({ tenantId, period }, { signal }) {
      const { secs, starts } = stepsOf(period, clock.now())
      const [from] = starts as [Date]
      const rows = await inTenant(database, tenantId, { signal }, async (tx) => {
        await numberEvents(tx, tenantId)
        return listActivity(tx, tenantId, from, secs)
      })
      return { tag: 'activity', from, stepSecs: secs, series: seriesOf(rows, starts) }
    },

    async exportAuditEvents({ tenantId, afterSequence, limit, ...about }, { signal }) {
      const rows = await inTenant(database, tenantId, { signal }, (tx) =>
        auditEventsAfter(tx, tenantId, afterSequence, limit + 1, about),
      )
      const events = rows.slice(0, limit)
      const nextSequence = rows.length > limit ? (events.at(-1)?.sequence ?? null) : null
      return { tag: 'listed', events, next: null, nextSequence }
    },

    async verifyAuditEvents({ tenantId, afterSequence, limit }, { signal }) {
      const read = (after: number, count: number) =>
        database.tenant(tenantId, (tx) => auditEventsAfter(tx, tenantId, after, count), { signal })
      // The previous event defines what the first event of the range must continue.
      const before = afterSequence === 0 ? undefined : (await read(afterSequence - 1, 1))[0]
      const start =
        afterSequence === 0
          ? { sequence: 0, hash: FIRST_PREVIOUS_HASH }
          : { sequence: afterSequence, hash: before?.hash ?? '' }
      const chain = new ChainCheck(start)
      const verdict = async (
        broken: AuditVerified['broken'],
        nextSequence: number | null,
      ): Promise<AuditVerified> => ({
        tag: 'verified',
        valid: broken === null,
        events: chain.events,
        afterSequence,
        last: chain.events === 0 ? null : (chain.head ?? null),
        broken,
        nextSequence,
        unnumbered: await database.tenant(tenantId, (tx) => unnumberedEvents(tx, tenantId), {
          signal,
        }),
      })
      // Reads the head before the events: events appended during the verification lie after it.
      const head = await database.tenant(tenantId, (tx) => auditHead(tx, tenantId), { signal })
      let sequence = afterSequence
      while (chain.events < limit) {
        const rows = await read(sequence, Math.min(BATCH, limit - chain.events))
        for (const row of rows) {
          const broken = chain.add(row)
          if (broken !== undefined) return verdict(broken, null)
        }
        const last = rows.at(-1)
        if (last === undefined) break
        sequence = last.sequence
      }
      // Detects rows that were deleted at the end: the tenant's counter says how far the chain
      // went.
      if (head !== undefined && sequence < head.sequence && chain.events < limit) {
        const reason = `the chain ends before ${head.sequence}, its last appended sequence`
        return verdict({ sequence: sequence + 1, reason }, null)
      }
      if (head !== undefined && sequence === head.sequence && chain.head?.hash !== head.hash) {
        return verdict(
          { sequence, reason: 'is not the event that the chain was continued from' },
          null,
        )
      }
      return verdict(null, chain.events === limit ? sequence : null)
    },
  }),
})
