/** Delegations once they are made: looked at, and ended. decisions.md section 3, 17 and 21. */
import { byPerson } from '../../domain/audit.js'
import { highestRole } from '../../domain/scopes.js'
import { reachOf } from '../../domain/assurance.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  activeDelegations,
  type DelegationRow,
  type DelegationsOf,
  findDelegation,
  listDelegations,
  revokeDelegation,
} from '../../../storage/agents/delegations.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { personFactors } from '../../../storage/identity/passkeys.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { findPersonRoles } from '../../../storage/identity/tenant-users.js'
import { actorOf, doneBy } from '../../domain/audit.js'
import { delegationRevoked, type EndedBy } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { isDirect, type Principal } from '../../domain/principal.js'
import type { DelegationNeeds } from './needs.js'
import type {
  DelegationProtocol,
  ListDelegations,
  OneDelegation,
  RevokeOwn,
  UnknownDelegation,
} from './protocol.js'
import { isSteppedUp, MANAGE_SCOPE, recordOf, visibleTo } from './rules.js'

const UNKNOWN: UnknownDelegation = { tag: 'unknown_delegation' }
type Reply<K extends keyof DelegationProtocol> = Promise<DelegationProtocol[K]['reply']>

export function holding(needs: DelegationNeeds) {
  const { database, clock, random, browserSessions, tokens, metrics, settings } = needs
  const maxAgeSecs = settings.approval_max_auth_age_secs

  /** Whether the account is active is nobody's own: it crosses tenants. */
  async function visible(
    principal: Principal,
    { signal }: MessageContext,
  ): Promise<DelegationsOf | null> {
    const { tenantId, subject, subjectType, scopes } = principal
    const person = subjectType === 'human' && isDirect(principal)
    if (!person || !scopes.includes(MANAGE_SCOPE)) return visibleTo(principal, null)
    const roles = await database.system((tx) => findPersonRoles(tx, tenantId, subject), { signal })
    return visibleTo(principal, roles === undefined ? null : highestRole(roles))
  }

  async function end(
    tx: Transaction,
    { tenantId, id }: DelegationRow,
    by: EndedBy,
  ): Promise<Date | undefined> {
    const ended = await revokeDelegation(tx, tenantId, id, 'revoked', clock.now())
    if (ended === undefined) return undefined
    appendEvents(tx, [delegationRevoked(random.uuid(), ended, by)])
    return ended.revokedAt ?? undefined
  }

  /** Ends it once, then has this process forget its tokens; the others hear of it by the commit. */
  async function revoking(
    tenantId: string,
    delegationId: string,
    of: DelegationsOf,
    by: EndedBy,
  ): Promise<{ tag: 'revoked'; id: string; revokedAt: Date } | UnknownDelegation> {
    if (!isUuid(delegationId)) return UNKNOWN
    // Not cancelled with the request: it must not depend on whether the one who asked stays.
    const outcome = await database.tenant(tenantId, async (tx) => {
      const row = await findDelegation(tx, tenantId, delegationId, of)
      if (row === undefined) return UNKNOWN
      const first = row.revokedAt === null ? await end(tx, row, by) : undefined
      // Another call was faster: it has committed, as its row lock is gone.
      const again = first ?? (await findDelegation(tx, tenantId, delegationId))?.revokedAt
      if (again == null) throw new Error('a delegation that ended has an end')
      if (first !== undefined) metrics.took('revoked')
      return { tag: 'revoked' as const, id: delegationId, revokedAt: again }
    })
    if (outcome.tag === 'revoked') tokens.send('invalidate', { ids: [delegationId] })
    return outcome
  }

  /** Of the person's account, which belongs to no tenant. decisions.md 3, highest AAL. */
  async function highestLevel(
    { tenantId, subject }: Principal,
    { signal }: MessageContext,
  ): Promise<2 | 3> {
    const factors = await database.system((tx) => personFactors(tx, tenantId, subject), { signal })
    return reachOf(factors) === 3 ? 3 : 2
  }

  async function read(
    { caller, delegationId }: OneDelegation,
    context: MessageContext,
  ): Reply<'read'> {
    const { tenantId } = caller.principal
    const of = await visible(caller.principal, context)
    if (of === null) return { tag: 'may_not_see' }
    if (!isUuid(delegationId)) return UNKNOWN
    const row = await database.tenant(
      tenantId,
      (tx) => findDelegation(tx, tenantId, delegationId, of),
      { signal: context.signal },
    )
    return row === undefined ? UNKNOWN : { tag: 'found', delegation: recordOf(row, clock.now()) }
  }

  return {
    read,

    async list(
      { principal, limit, after }: ListDelegations,
      context: MessageContext,
    ): Reply<'list'> {
      const { tenantId } = principal
      const of = await visible(principal, context)
      if (of === null) return { tag: 'may_not_see' }
      // One more than asked for tells whether there is another page.
      const rows = await database.tenant(
        tenantId,
        (tx) => listDelegations(tx, tenantId, of, limit + 1, after),
        { signal: context.signal },
      )
      const now = clock.now()
      const page = rows.slice(0, limit)
      const last = page.at(-1)
      return {
        tag: 'listed',
        delegations: page.map((row) => recordOf(row, now)),
        next: rows.length > limit && last !== undefined ? last : null,
      }
    },

    async revoke(message: OneDelegation, context: MessageContext): Reply<'revoke'> {
      const { caller } = message
      const { principal } = caller
      const found = await read(message, context)
      if (found.tag !== 'found') return UNKNOWN
      const level = await highestLevel(principal, context)
      if (!isSteppedUp(principal, level, clock.nowSecs(), maxAgeSecs))
        return { tag: 'step_up_needed', level, maxAgeSecs }
      const { requestId } = context
      const by = { actor: actorOf(caller), audit: doneBy(caller), requestId }
      const { subject } = found.delegation
      const of = { agentId: null, subject }
      return revoking(principal.tenantId, message.delegationId, of, by)
    },

    async ofPerson(
      { tenantId, sub }: DelegationProtocol['ofPerson']['message'],
      { signal }: MessageContext,
    ): Reply<'ofPerson'> {
      const now = clock.now()
      const rows = await database.tenant(
        tenantId,
        (tx) => activeDelegations(tx, tenantId, sub, now),
        { signal },
      )
      return { tag: 'listed', delegations: rows.map((row) => recordOf(row, now)) }
    },

    async revokeOwn(
      { session, token, delegationId, address }: RevokeOwn,
      context: MessageContext,
    ): Reply<'revokeOwn'> {
      const { tenantId, sub } = session
      const verdict = await browserSessions.ask(
        'demand',
        {
          token,
          tenantId,
          sub,
          demand: { level: 'highest', maxAgeSecs },
          flow: { returnTo: '/auth/account', reason: { tag: 'sensitive' } },
        },
        context,
      )
      if (verdict.tag === 'sign_in') return verdict
      const by = {
        actor: { type: 'human', id: sub },
        audit: byPerson(session, address),
        requestId: context.requestId,
      }
      const of = { agentId: null, subject: sub }
      const ended = await revoking(tenantId, delegationId, of, by)
      return ended.tag === 'revoked' ? { tag: 'revoked' } : ended
    },
  }
}
