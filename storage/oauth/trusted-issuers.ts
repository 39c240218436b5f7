/** Issuers that a tenant trusts, and the rules for their tokens (docs/guides/oauth/workload-identity.md). */
import {
  type Rule,
  type TrustedIssuer,
  trustedIssuer,
} from '../../actors/domain/entities/trusted-issuer.js'
import { entityTable } from '../platform/portable/entity-table.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'
import { allRows, firstRow, type Transaction } from '../platform/sql.js'

// `listTrustedIssuers`, `createTrustedIssuer`, `getTrustedIssuer`,
// `updateTrustedIssuer`, `deleteTrustedIssuer`.
export const trustedIssuerTable = entityTable(trustedIssuer)

const RULE_COLUMNS =
  'id tenant_id trusted_issuer_id name client_id conditions scopes resources max_lifetime_secs position created_at'

/** The issuers of a tenant with these names whose tokens are accepted. */
export const activeIssuers = (tx: Transaction, tenantId: string, names: readonly string[]) =>
  allRows<TrustedIssuer>(tx, {
    name: 'trusted_issuer.active',
    text: `select ${trustedIssuerTable.columns} from trusted_issuers
           where tenant_id = $1 and issuer = any($2) and status = 'active'`,
    values: [tenantId, names],
  })

/** An active issuer that speaks for people. Its tenant is unknown, so the look-up crosses tenants. */
export const findIssuerOfPeople = (tx: Transaction, id: string) =>
  firstRow<TrustedIssuer>(tx, {
    name: 'trusted_issuer.of_people',
    text: `select ${trustedIssuerTable.columns} from trusted_issuers
           where id = $1 and status = 'active' and purposes = '{identity_assertion}'`,
    values: [id],
  })

/** The rules of an issuer in the order in which they are tried. */
export const rulesOfIssuer = (tx: Transaction, tenantId: string, issuerId: string) =>
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
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    values: [
      rule.id,
      rule.tenantId,
      rule.trustedIssuerId,
      rule.name,
      rule.clientId,
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

/** The scopes of an active application, and of API resources that list it. Undefined for another id. */
export const findRuleTarget = (tx: Transaction, tenantId: string, clientId: string) =>
  firstRow<{ readonly scopes: readonly string[] }>(tx, {
    name: 'trusted_issuer_rule.target',
    text: `select c.scopes || array(select s ->> 'name' from api_resources r, jsonb_array_elements(r.scopes) s
             where r.tenant_id = $1 and c.id::text = any(r.client_ids)) as scopes
           from applications c where c.tenant_id = $1 and c.id = $2 and c.status = 'active'`,
    values: [tenantId, clientId],
  })

/** True if a write failed because the tenant has the issuer for this purpose. */
export const isIssuerTaken = (error: unknown): boolean =>
  (error as { readonly constraint?: unknown } | null)?.constraint === 'trusted_issuers_one'
