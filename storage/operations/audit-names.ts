/** The names of people and things that audit events mention by id. */
import { SHOWN_EMAIL, SHOWN_NAME } from '../identity/tenant-users.js'
import { allRows, type Transaction } from '../platform/sql.js'

type AuditNameRow = {
  /** As in the event: an id, or the `sub` of a person. */
  readonly id: string
  readonly type: string
  /** The id of the object. For the `sub` of a person: the id of the user. */
  readonly objectId: string
  readonly name: string
}

/** Types of resources, with their table and the name, which is no secret: of a webhook only the host. */
const NAMED = [
  ['agent', 'agents', 'name'],
  ['application', 'applications', 'name'],
  ['api_key', 'api_keys', 'name'],
  ['api_resource', 'api_resources', 'name'],
  ['access_policy', 'access_policies', 'name'],
  ['sso_provider', 'sso_providers', 'name'],
  ['webhook', 'webhooks', `split_part(url, '/', 3)`],
  ['product', 'products', 'name'],
  ['vault_credential', 'vault_credentials', 'label'],
] as const

const THINGS = NAMED.map(
  ([type, table, column]) =>
    `select id::text, '${type}', id::text, ${column} from ${table}
     where tenant_id = $1 and id = any ($2::uuid[]) and ${column} <> ''`,
).join(' union all ')

/**
 * The names of objects of the tenant with these ids, and of agents of other tenants that act for its people.
 * @param subs subjects of people. Empty: no person is named.
 */
export const nameAudited = (
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
  subs: readonly string[],
) =>
  allRows<AuditNameRow>(tx, {
    name: 'audit.name',
    text: `with people as (
             select u.id, u.sub, coalesce(nullif(${SHOWN_NAME}, ''), ${SHOWN_EMAIL}) as name
             from tenant_users u join accounts a on a.id = u.account_id
             where u.tenant_id = $1 and cardinality($3::text[]) > 0
               and (u.sub = any ($3::text[]) or u.id = any ($2::uuid[])))
           select sub as id, 'tenant_user' as type, id::text as "objectId", name from people
           union all select id::text, 'tenant_user', id::text, name from people
           union all select a.id::text, 'delegated_agent', a.id::text, a.name from agents a
             where a.id = any ($2::uuid[]) and a.tenant_id <> $1 and a.name <> ''
               and exists (select 1 from delegations d
                 where d.agent_id = a.id and d.tenant_id = $1 and d.revoked_at is null)
           union all ${THINGS}`,
    values: [tenantId, ids, subs],
  })
