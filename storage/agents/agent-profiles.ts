/** What agents publish about themselves as clients of other services: their documents. */
import { agentInForce } from '../platform/in-force.js'
import { execute, firstRow, type Transaction } from '../platform/sql.js'

type PublishedAgent<Profile> = {
  readonly id: string
  readonly tenantId: string
  readonly name: string
  /** Plain JSON. */
  readonly profile: Profile
  /** The active keys. */
  readonly keys: readonly {
    readonly fingerprint: string
    readonly algorithm: 'ed25519' | 'es256'
    /** The raw key in hexadecimal: 32 bytes (ed25519) or 33 bytes (es256). */
    readonly publicKey: string
  }[]
}

/**
 * An active agent of an active home tenant. Its documents are public, so the look-up crosses tenants.
 * @param seenIn a tenant that must not have suspended it.
 */
export const findAgentProfile = <Profile>(
  tx: Transaction,
  agentId: string,
  seenIn: string | null = null,
) =>
  firstRow<PublishedAgent<Profile>>(tx, {
    name: 'agent.profile',
    text: `select a.id, a.tenant_id as "tenantId", a.name, a.profile,
             (select coalesce(json_agg(json_build_object('fingerprint', k.fingerprint,
                'algorithm', k.algorithm, 'publicKey', encode(k.public_key, 'hex'))
                order by k.created_at), '[]')
              from agent_keys k where k.tenant_id = a.tenant_id and k.agent_id = a.id
                and k.status = 'active') as keys
           from agents a where a.id = $1 and ${agentInForce('a.id')} and not exists (
             select from agent_suspensions x where x.tenant_id = $2 and x.agent_id = a.id)`,
    values: [agentId, seenIn],
  })

/** Replaces the profile. The agent may work with a token of a tenant that is not its home, so it crosses tenants. */
export const replaceAgentProfile = (tx: Transaction, agentId: string, profile: object, now: Date) =>
  execute(tx, {
    name: 'agent.replace_profile',
    text: 'update agents set profile = $2, updated_at = $3 where id = $1',
    values: [agentId, JSON.stringify(profile), now],
  })
