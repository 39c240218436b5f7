/** Browser sessions: looked up by cookie, checked against a demand, listed and ended. */
import {
  reachOf,
  type AssuranceLevel,
  type SessionDemand,
  acrOf,
} from '../../../domain/assurance.js'
import type { Registry } from 'prom-client'
import { defineActor, type MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  type BrowserSessionRow,
  endBrowserSession,
  endOtherBrowserSessions,
  findBrowserSession,
  findSessionTenant,
  listBrowserSessions,
  touchBrowserSession,
  type BrowserSessionSeen,
} from '../../../../storage/identity/browser-sessions.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import { accountFactors } from '../../../../storage/identity/passkeys.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { isUuid, type TenantId } from '../../../domain/ids.js'
import { type PersonEvent, personEvent } from '../../../platform/people/person-events.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { beginFlow, nextStep, pathOf, storedDemand } from '../flow/flows.js'
import {
  browserSessions,
  type BrowserSessionsProtocol,
  type DemandSession,
  type BrowserSession,
  type SessionSeen,
} from './protocol.js'
import { highestRole } from '../../../domain/scopes.js'
import { inTenant } from '../../../platform/in-tenant.js'
import { counted } from '../../../platform/metrics.js'
import { getStatementOptions, signStatement } from '../ways/passkey/approval.js'
import { ceremonyOutcomes } from '../ways/passkey/ceremonies.js'
import type { RelyingParty } from '../ways/passkey/settings.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

/** Resolution of `last_seen_at`: a page view causes a write at most this often. */
const SEEN_EVERY_MS = 60_000
/** For short idle timeouts: a session may go unrecorded for at most this fraction of its timeout. */
const UNRECORDED_FRACTION = 1 / 20

type BrowserSessionsNeeds = WriteNeeds & {
  readonly registry: Registry
  /** Null: `passkey.enabled` is false. */
  readonly relyingParty: RelyingParty | null
  /** `two_factor.enabled`: sessions below level 2 are not valid. */
  readonly alwaysTwo: boolean
}

export const browserSessionsActor = defineActor<BrowserSessionsProtocol, BrowserSessionsNeeds>({
  address: browserSessions,
  asks: {},
  mailbox: { capacity: 2048, inflightMax: 128 },
  create: ({ database, clock, random, alwaysTwo, registry, relyingParty }) => {
    const outcomes = ceremonyOutcomes(registry)
    const signing = { database, clock, random, relyingParty, outcomes }
    const sign = counted('approval', signStatement)

    /** The cookie is the only input. Its tenant is read from the row. */
    async function seen(
      tx: Transaction,
      token: string | null,
    ): Promise<BrowserSessionRow | undefined> {
      if (token === null) return undefined
      const now = clock.now()
      const row = await findBrowserSession(tx, sha256(token), now)
      if (row === undefined) return undefined
      const everyMs = Math.min(SEEN_EVERY_MS, row.idleSecs * 1000 * UNRECORDED_FRACTION)
      const before = new Date(now.getTime() - everyMs)
      if (row.lastSeenAt < before) {
        await touchBrowserSession(tx, row.tenantId, row.id, now, before)
      }
      return row
    }

    /** Ends a session and emits the event. False when it had already ended. */
    async function logOut(
      tx: Transaction,
      { tenantId, sessionId }: { readonly tenantId: string; readonly sessionId: string },
      reason: string,
      now: Date,
      { requestId }: Pick<MessageContext, 'requestId'>,
    ): Promise<boolean> {
      const ended = await endBrowserSession(tx, tenantId, sessionId, reason, now)
      if (ended === undefined) return false
      appendEvents(tx, [loggedOut({ tenantId, sub: ended.sub, sessionId, requestId }, reason, now)])
      return true
    }

    const loggedOut = (event: Omit<PersonEvent, 'type' | 'fields'>, reason: string, now: Date) =>
      personEvent(random, { ...event, type: 'auth.logout', fields: { reason } }, now)

    async function demanded(tx: Transaction, message: DemandSession) {
      const now = clock.now()
      const row = await seen(tx, message.token)
      const reach = row === undefined ? 1 : reachOf(await accountFactors(tx, row.accountId))
      const order = { ...message, demand: levelled(message.demand, reach, alwaysTwo) }
      const { reason } = message.flow
      const step = nextStep({ ...storedDemand(order), reason }, row, reach, now)
      if (step === 'done') return { tag: 'met', session: sessionRecord(row!) } as const
      const flow = await beginFlow(tx, order, random, now)
      return { tag: 'sign_in', location: pathOf(step, flow, message.flow.returnTo) } as const
    }

    return {
      getStatementOptions: (message, context) => getStatementOptions(signing, message, context),
      signStatement: (message, context) => sign(signing, message, context),
      async read({ token }, context) {
        if (token === null) return { tag: 'none', tenantId: null }
        return database.system(async (tx) => {
          const row = await seen(tx, token)
          if (row !== undefined && !row.pending && (!alwaysTwo || row.level >= 2))
            return { tag: 'open', session: sessionRecord(row) }
          const tenantId = row?.tenantId ?? (await findSessionTenant(tx, sha256(token)))
          return { tag: 'none', tenantId: (tenantId ?? null) as TenantId | null }
        }, context)
      },

      demand(message, context) {
        return database.system((tx) => demanded(tx, message), context)
      },

      async end({ session, reason }, { signal, requestId }) {
        const now = clock.now()
        const { tenantId, id } = session
        return inTenant(database, tenantId, { signal }, async (tx) => {
          const ended = await logOut(tx, { tenantId, sessionId: id }, reason, now, { requestId })
          return { tag: ended ? 'ended' : 'not_open' }
        })
      },

      async list({ tenantId, accountId }, context) {
        const rows = await database.system(
          (tx) => listBrowserSessions(tx, tenantId, accountId, clock.now()),
          context,
        )
        return { tag: 'listed', sessions: rows.map(seenRecord) }
      },

      async revokeOthers({ tenantId, accountId, exceptId }, { signal, requestId }) {
        const now = clock.now()
        return database.system(
          async (tx) => {
            const person = { tenantId, accountId, exceptId }
            const ended = await endOtherBrowserSessions(tx, person, 'revoked', now)
            const events = ended.map(({ id: sessionId, sub }) =>
              loggedOut({ tenantId, sub, sessionId, requestId }, 'revoked', now),
            )
            appendEvents(tx, events)
            return { tag: 'revoked_others' }
          },
          { signal },
        )
      },

      async revokeOne({ tenantId, accountId, sessionId }, { signal, requestId }) {
        if (!isUuid(sessionId)) return { tag: 'unknown_session' }
        const now = clock.now()
        return database.system(
          async (tx) => {
            const open = await listBrowserSessions(tx, tenantId, accountId, now)
            if (!open.some(({ id }) => id === sessionId)) return { tag: 'unknown_session' }
            const ended = await logOut(tx, { tenantId, sessionId }, 'revoked', now, { requestId })
            return { tag: ended ? 'revoked' : 'unknown_session' }
          },
          { signal },
        )
      },
    }
  },
})

/** The demand as a number, for an account that can reach this level. */
function levelled(
  { level, ...demand }: DemandSession['demand'],
  reach: AssuranceLevel,
  alwaysTwo: boolean,
): SessionDemand {
  const highest = reach > 2 ? reach : 2
  const required = level === 'highest' ? highest : level
  return { ...demand, level: alwaysTwo && required < 2 ? 2 : required }
}

/** A session as other actors see it. */
function sessionRecord(row: BrowserSessionRow): BrowserSession {
  return {
    id: row.id,
    tenantId: row.tenantId,
    organizationId: row.organizationId,
    accountId: row.accountId,
    tenantUserId: row.tenantUserId,
    sub: row.sub,
    email: row.email,
    emailVerified: row.emailVerified,
    displayName: row.displayName,
    roles: row.roles,
    role: highestRole(row.roles),
    confined: row.confined,
    level: row.level,
    acr: acrOf(row.level),
    amr: row.amr,
    authTime: row.authTime,
    createdAt: row.createdAt,
    expiresAt: row.expiresAt,
  }
}

function seenRecord(row: BrowserSessionSeen): SessionSeen {
  const { level, ...seen } = row
  return { ...seen, acr: acrOf(level) }
}
