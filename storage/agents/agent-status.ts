/** Sessions of agents and their scopes. All statements cross tenants. */
import { changedRows, firstValue, type Transaction } from '../platform/sql.js'

/** The key of a session's login; undefined for an ended session. */
export const findSessionKey = async (tx: Transaction, tenantId: string, sessionId: string) =>
  (await firstValue<string | null>(tx, {
    name: 'session.key',
    text: `select key_fingerprint as fingerprint from sessions
           where tenant_id = $1 and id = $2 and ended_at is null`,
    values: [tenantId, sessionId],
  })) ?? undefined

/** The scopes stored with an agent. */
export const findGrantedScopes = async (tx: Transaction, agentId: string) =>
  (await firstValue<string[]>(tx, {
    name: 'agent.granted',
    text: 'select scopes from agents where id = $1',
    values: [agentId],
  })) ?? []

type SessionsToEnd = {
  readonly agentId: string
  /** Null for every tenant. */
  readonly tenantId: string | null
  /** Null for any key of the login. */
  readonly fingerprint: string | null
}

/**
 * Ends an agent's own sessions; a trigger notifies every process at the commit. Sessions of delegations
 * end with their delegation. @returns the number.
 */
export const endAgentSessions = (
  tx: Transaction,
  { agentId, tenantId, fingerprint }: SessionsToEnd,
  reason: string,
  now: Date,
) =>
  changedRows(tx, {
    name: 'session.end_of_agent',
    text: `update sessions set ended_at = $5, ended_reason = $4
           where agent_id = $1 and subject_type = 'agent' and ended_at is null
             and ($2::uuid is null or tenant_id = $2)
             and ($3::text is null or key_fingerprint = $3)`,
    values: [agentId, tenantId, fingerprint, reason, now],
  })
