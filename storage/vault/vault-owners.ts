/** Organization owners may act as the owner of their agents' credentials. */
import { onlyValue, type Transaction } from '../platform/sql.js'

/** An agent by id, a human by pairwise subject in the tenant. */
type OwnerCandidate = {
  readonly subjectType: 'human' | 'agent'
  readonly subject: string
}

/**
 * True if the candidate owns the tenant's organization and the agent belongs to it: registered in the
 * tenant, or a member.
 */
export const ownsAgentCredentials = (
  tx: Transaction,
  tenantId: string,
  agentId: string,
  { subjectType, subject }: OwnerCandidate,
) =>
  onlyValue<boolean>(tx, {
    name: 'vault_owner.of_agent',
    text: `select exists (select from tenants t
             join organizations o on o.id = t.organization_id and o.status = 'active'
             join organization_members m on m.organization_id = o.id and m.role = 'owner'
             where t.id = $1
               and (m.member_type, m.member_id::text) in (
                 select 'agent', $4::text where $3 = 'agent'
                 union all
                 select 'account', u.account_id::text from tenant_users u
                 where $3 = 'human' and u.tenant_id = $1 and u.sub = $4 and u.status = 'active')
               and (exists (select from agents a
                      where a.tenant_id = $1 and a.id = $2::uuid)
                 or exists (select from organization_members own
                      where own.organization_id = o.id and own.member_type = 'agent'
                        and own.member_id = $2::uuid))) as owns`,
    values: [tenantId, agentId, subjectType, subject],
  })
