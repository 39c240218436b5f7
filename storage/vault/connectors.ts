/** Connectors of a tenant. Their secrets are sealed and unsealed by the callers. */
import { type Connector, connector } from '../../actors/domain/entities/connector.js'
import { entityTable } from '../platform/portable/entity-table.js'
import { partsOf, stamped } from '../platform/sealing/stamps.js'
import { allRows, execute, firstRow, type Transaction } from '../platform/sql.js'

// `listConnectors`, `createConnector`, `getConnector`, `updateConnector`, `deleteConnector`.
const table = entityTable(connector, {}, {}, 'removed_at is null')
export const connectorTable = { ...table, remove: removeConnectorRow }

/** The row stays until its connections have ended: they need its secret. Its name is free. */
async function removeConnectorRow(tx: Transaction, tenantId: string, id: string): Promise<void> {
  await execute(tx, {
    name: 'connector.remove',
    text: `update vault_connectors set removed_at = now(), name = id::text where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
}

/** Associated data of a sealed client secret, which binds it to its row. */
export const connectorSecretContext = (id: string) => ({
  rewritten: `vault_connector:${id}:client_secret`,
})

/** A connector with its sealed secret. Null: a public client. */
export type SecretConnector = Connector & { readonly clientSecretSealed: Uint8Array | null }

const SECRET = `${connectorTable.columns}, ${stamped('client_secret_sealed')} as "clientSecretSealed"`

export const findConnector = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<SecretConnector>(tx, {
    name: 'connector.with_secret',
    text: `select ${SECRET} from vault_connectors where tenant_id = $1 and id = $2 and removed_at is null`,
    values: [tenantId, id],
  })

/** The same against a change or a deletion until the transaction ends. */
export const holdConnector = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<SecretConnector>(tx, {
    name: 'connector.hold',
    text: `select ${SECRET} from vault_connectors where tenant_id = $1 and id = $2 and removed_at is null for share`,
    values: [tenantId, id],
  })

/** The connector of what has ended: a deleted one too. */
export const findAnyConnector = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<SecretConnector>(tx, {
    name: 'connector.any',
    text: `select ${SECRET} from vault_connectors where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })

/** Deleted connectors, the oldest first. Crosses tenants. */
export const listRemovedConnectors = (tx: Transaction, limit: number) =>
  allRows<{ readonly tenantId: string; readonly id: string }>(tx, {
    name: 'connector.list_removed',
    text: `select tenant_id as "tenantId", id from vault_connectors where removed_at is not null
           order by removed_at limit $1`,
    values: [limit],
  })

/** Deletes the row of a deleted connector that nothing needs any more. */
export const forgetConnector = (tx: Transaction, tenantId: string, id: string) =>
  execute(tx, {
    name: 'connector.forget',
    text: `delete from vault_connectors k where tenant_id = $1 and id = $2 and removed_at is not null
             and not exists (select from vault_connections c where c.tenant_id = $1 and c.connector_id = $2
               and c.status in ('pending', 'active', 'needs_reauthorization'))
             and not exists (select from vault_revocations r where r.tenant_id = $1 and r.connector_id = $2)`,
    values: [tenantId, id],
  })

export const findConnectorByName = (tx: Transaction, tenantId: string, name: string) =>
  firstRow<SecretConnector>(tx, {
    name: 'connector.by_name',
    text: `select ${SECRET} from vault_connectors where tenant_id = $1 and name = $2 and removed_at is null`,
    values: [tenantId, name],
  })

/** The connector of a connection. */
export const findConnectorOfConnection = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<SecretConnector>(tx, {
    name: 'connector.of_connection',
    text: `select ${SECRET} from vault_connectors
           where tenant_id = $1 and id = (
             select connector_id from vault_connections where tenant_id = $1 and id = $2)`,
    values: [tenantId, id],
  })

const NO_SECRET = { sealed: null, stamp: null }

/** Stores the secret of a connector, or deletes it. */
export const keepConnectorSecret = (
  tx: Transaction,
  tenantId: string,
  id: string,
  secret: Uint8Array | null,
) => {
  const { sealed, stamp } = secret === null ? NO_SECRET : partsOf(secret)
  return execute(tx, {
    name: 'connector.keep_secret',
    text: `update vault_connectors set client_secret_sealed = $3, client_secret_sealed_stamp = $4
           where tenant_id = $1 and id = $2`,
    values: [tenantId, id, sealed, stamp],
  })
}

/** True if a write failed because the tenant has a connector with the name. */
export const isConnectorNameTaken = (error: unknown): boolean =>
  (error as { readonly constraint?: unknown } | null)?.constraint === 'vault_connectors_name'
