/**
 * The events of revoked delegations (docs/reference/agents.md). Every use case that ends delegations
 * composes its `admin.delegation.revoked` events here. What ends with a delegation stands in
 * docs/concepts/ends.md.
 */
import type { Random } from '../../runtime/kernel/random.js'
import { type DelegationFacts, delegationIntent } from './agents/delegation-intent.js'
import { actorOf, byPerson, type Caller, doneBy } from './audit.js'
import { catalogued, type NewEvent } from './events.js'
import type { TenantId } from './ids.js'

/** A delegation after its revocation. */
type RevokedDelegation = DelegationFacts & {
  readonly tenantId: TenantId
  readonly agentId: string
  readonly subject: string
  readonly revokedAt: Date | null
  readonly revokedReason: string | null
}

/** Who revoked it, as the event and the audit chain name them. */
export type RevokedBy = {
  readonly actor: { readonly type: string; readonly id: string }
  readonly audit?: NewEvent['audit']
  readonly requestId: string | undefined
}

/** Revoked by a request to the API. */
export function byCaller(caller: Caller, requestId: string | undefined): RevokedBy {
  return { actor: actorOf(caller), audit: doneBy(caller), requestId }
}

/** Revoked by the person in their browser. @param address the network address of the browser. */
export function byBrowser(sub: string, address: string, requestId: string | undefined): RevokedBy {
  return { actor: { type: 'human', id: sub }, audit: byPerson({ sub }, address), requestId }
}

/** Revoked by an OAuth client at the token or revocation endpoint. */
export function byClient(clientId: string, requestId: string | undefined): RevokedBy {
  return { actor: { type: 'client', id: clientId }, requestId }
}

/**
 * One `admin.delegation.revoked` event per delegation. @param by the same for all, or per delegation.
 */
export function delegationsRevoked(
  random: Random,
  delegations: readonly RevokedDelegation[],
  by: RevokedBy | ((delegation: RevokedDelegation) => RevokedBy),
): NewEvent[] {
  return delegations.map((delegation) => {
    const { actor, audit, requestId } = typeof by === 'function' ? by(delegation) : by
    if (delegation.revokedAt === null) throw new Error('a revoked delegation has a revocation time')
    return {
      id: random.uuid(),
      tenantId: delegation.tenantId,
      occurredAt: delegation.revokedAt,
      ...catalogued(
        'admin.delegation.revoked',
        { actor, resource: { type: 'delegation', id: delegation.id }, requestId },
        {
          delegation_id: delegation.id,
          agent_id: delegation.agentId,
          sub: delegation.subject,
          scope: delegation.scopes.join(' '),
          reason: delegation.revokedReason ?? 'revoked',
        },
      ),
      audit: {
        ...audit,
        delegationId: delegation.id,
        delegation: delegationIntent(delegation),
      },
    }
  })
}
