/** Issuers that a tenant trusts, and the rules for their tokens (docs/guides/oauth/workload-identity.md). */
import {
  type Rule,
  type TrustedIssuer,
  trustedIssuer,
} from '../../actors/domain/entities/trusted-issuer.js'
import type { OrganizationRole } from '../../actors/domain/scopes.js'
import { roleIn } from '../agents/agents.js'
import { agentInForce } from '../platform/in-force.js'
import { entityTable } from '../platform/portable/entity-table.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'
import { allRows, firstRow, type Transaction } from '../platform/sql.js'

export const trustedIssuerTable = entityTable(trustedIssuer)

const RULE_COLUMNS =
  'id tenant_id trusted_issuer_id name client_id agent_id conditions scopes resources max_lifetime_secs position created_at'

/** The issuers of a tenant whose tokens are accepted. */
export const activeIssuers = (tx: Transaction, tenantId: string) =>
  allRows<TrustedIssuer>(tx, {
    name: 'trusted_issuer.active',
    text: `select ${trustedIssuerTable.columns} from trusted_issuers
           where tenant_id = $1 and status = 'active'`,
    values: [tenantId],
  })

/** The rules of an issuer in the order in which they are tried. */
export const rulesOf = (tx: Transaction, tenantId: string, issuerId: string) =>
  allRows<Rule>(tx, {
    name: 'trusted_issuer_rule.of_issuer',
    text: `select ${columnsOf(RULE_COLUMNS)} from trusted_issuer_rules
           where tenant_id = $1 and trusted_issuer_id = $2 order by position, created_at, id`,
    values: [tenantId, issuerId],
  })

export async function insertRule(tx: Transaction, rule: Rule): Promise<void> {
  await tx.query({
    name: 'trusted_issuer_rule.insert',
    text: `insert into trusted_issuer_rules (${RULE_COLUMNS.replaceAll(' ', ', ')})
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
    values: [
      rule.id,
      rule.tenantId,
      rule.trustedIssuerId,
      rule.name,
      rule.clientId,
      rule.agentId,
      JSON.stringify(rule.conditions),
      rule.scopes,
      rule.resources,
      rule.maxLifetimeSecs,
      rule.position,
      rule.createdAt,
    ],
  })
}

/** The name of the deleted rule. Undefined for an unknown one. */
export const deleteRule = (tx: Transaction, tenantId: string, issuerId: string, ruleId: string) =>
  firstRow<Pick<Rule, 'name'>>(tx, {
    name: 'trusted_issuer_rule.delete',
    text: `delete from trusted_issuer_rules
           where tenant_id = $1 and trusted_issuer_id = $2 and id = $3 returning name`,
    values: [tenantId, issuerId, ruleId],
  })

/** The target of rules, and the scopes that it has been given. */
export type RuleTarget = {
  readonly scopes: readonly string[]
  /** The role of an agent in the organization of the tenant. Null for others. */
  readonly role: OrganizationRole | null
}

/**
 * The target of a rule. Undefined if it is no active application or agent of the tenant. The home tenant of an agent may be
 * another one, so the transaction crosses tenants.
 */
export const findRuleTarget = (
  tx: Transaction,
  tenantId: string,
  { clientId, agentId }: Pick<Rule, 'clientId' | 'agentId'>,
) =>
  firstRow<RuleTarget>(tx, {
    name: 'trusted_issuer_rule.target',
    text: `select c.scopes || array(select s ->> 'name' from api_resources r, jsonb_array_elements(r.scopes) s
               where r.tenant_id = $1 and c.id::text = any(r.client_ids)) as scopes, null as role
           from applications c where c.tenant_id = $1 and c.id = $2 and c.status = 'active'
           union all
           select a.scopes, ${roleIn('t')} as role
           from agents a join tenants t on t.id = $1 and t.status = 'active'
           where a.id = $3 and ${agentInForce('a.id')}
             and (a.tenant_id = t.id or ${roleIn('t')} is not null)
             and not exists (select from agent_suspensions x
               where x.tenant_id = t.id and x.agent_id = a.id)`,
    values: [tenantId, clientId, agentId],
  })

/** True if a write failed because the tenant has the issuer for this purpose. */
export const isIssuerTaken = (error: unknown): boolean =>
  (error as { readonly constraint?: unknown } | null)?.constraint === 'trusted_issuers_one'
