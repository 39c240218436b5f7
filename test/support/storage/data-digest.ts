/** Digests of a tenant's data, to detect changes. */
import { Client } from 'pg'
import type { Workspace } from '../api.js'
import type { FreshDatabase } from './database.js'

/** Number and digest of rows by table, for tables with rows of the tenant. */
export type DataDigest = Readonly<Record<string, string>>

/** By table, so that a difference can be located. Without `read_to`: how far a background job has read. */
export async function dataDigest(
  { superuserUrl }: Pick<FreshDatabase, 'superuserUrl'>,
  { tenantId, organizationId }: Pick<Workspace, 'tenantId' | 'organizationId'>,
): Promise<DataDigest> {
  const client = new Client({ connectionString: superuserUrl })
  await client.connect()
  try {
    const { rows: columns } = await client.query<{ table: string; column: string }>(
      `select table_name as table, column_name as column from information_schema.columns
       join information_schema.tables using (table_schema, table_name)
       where table_schema = 'public' and table_type = 'BASE TABLE'
         and (column_name in ('tenant_id', 'organization_id')
           or (table_name in ('tenants', 'organizations') and column_name = 'id'))
       order by 1, 2`,
    )
    const { rows } = await client.query<{ name: string; digest: string }>(
      columns
        .map(
          ({ table, column }) =>
            `select '${table}.${column}' as name, count(*) || ' ' ||
               md5(coalesce(string_agg(md5(y), '' order by y), '')) as digest
             from public.${table} x cross join lateral (select (to_jsonb(x) - 'read_to')::text as y) z
             where ${column} = any($1::uuid[]) having count(*) > 0`,
        )
        .join(' union all '),
      [[tenantId, organizationId]],
    )
    return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]))
  } finally {
    await client.end()
  }
}
