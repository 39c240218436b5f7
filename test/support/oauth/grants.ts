/** Many grants of one agent, as if it got one for each task. */
import type { Database } from '../../../storage/platform/sql.js'
import { sql } from '../storage/sql.js'

/** Adds many newer, expired grants of the same kind. */
export function crowdWithEnded(database: Database, grantId: string): Promise<unknown> {
  return sql(database)`
    insert into vault_grants (tenant_id, id, credential_id, grantee_type, grantee_id,
    capabilities,
    snapshot, expires_at, created_at)
    select tenant_id, gen_random_uuid(), credential_id, grantee_type, grantee_id, capabilities,
    snapshot, now() - interval '1 minute', now()
    from vault_grants, generate_series(1, 250) where id = ${grantId}`
}
