/** Wrapped data keys of tenants. Keys are added and wrapped again, and never changed. */
import type { Transaction } from '../sql.js'

export type DataKeyRow = {
  tenantId: string
  version: number
  wrapped: Uint8Array
  masterKeyId: string
}

/** The newest data key, which seals. Undefined if the tenant has none. */
export async function findNewestDataKey(
  tx: Transaction,
  tenantId: string,
): Promise<DataKeyRow | undefined> {
  const { rows } = await tx.query<DataKeyRow>({
    name: 'data_key.newest',
    text: `select ${COLUMNS} from data_keys where tenant_id = $1 order by version desc limit 1`,
    values: [tenantId],
  })
  return rows[0]
}

/**
 * A data key that may open values. Undefined if there is none, or if a later key has replaced it: a rotation that
 * finished before `replacedBefore`, after which no live value is under an older key. So an older sealed value of a row
 * does not open if it is put back.
 */
export async function findDataKey(
  tx: Transaction,
  tenantId: string,
  version: number,
  replacedBefore: Date,
): Promise<DataKeyRow | undefined> {
  const { rows } = await tx.query<DataKeyRow>({
    name: 'data_key.find',
    text: `select ${COLUMNS} from data_keys
           where tenant_id = $1 and version = $2
             and not exists (select from data_key_rotations r
               where r.tenant_id = $1 and r.version > $2 and r.unopened = 0 and r.finished_at < $3)`,
    values: [tenantId, version, replacedBefore],
  })
  return rows[0]
}

/** Adds a version. False if another process has added it: its key is used then. */
export async function insertDataKey(
  tx: Transaction,
  key: DataKeyRow & { createdAt: Date },
): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: 'data_key.insert',
    text: `insert into data_keys (tenant_id, version, wrapped, master_key_id, created_at)
           values ($1, $2, $3, $4, $5)
           on conflict (tenant_id, version) do nothing`,
    values: [key.tenantId, key.version, key.wrapped, key.masterKeyId, key.createdAt],
  })
  return rowCount === 1
}

/** Keys that are not wrapped under the current master key, oldest tenants first. */
export async function listDataKeysNotUnder(
  tx: Transaction,
  masterKeyId: string,
  limit: number,
): Promise<DataKeyRow[]> {
  const { rows } = await tx.query<DataKeyRow>({
    name: 'data_key.not_under',
    text: `select ${COLUMNS} from data_keys where master_key_id <> $1
           order by tenant_id, version limit $2`,
    values: [masterKeyId, limit],
  })
  return rows
}

/** Replaces a wrapped key if it is unchanged. False if it has changed. */
export async function rewrapDataKey(
  tx: Transaction,
  key: DataKeyRow,
  previousMasterKeyId: string,
): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: 'data_key.rewrap',
    text: `update data_keys set wrapped = $3, master_key_id = $4
           where tenant_id = $1 and version = $2 and master_key_id = $5`,
    values: [key.tenantId, key.version, key.wrapped, key.masterKeyId, previousMasterKeyId],
  })
  return rowCount === 1
}

/** All owners of data keys, including the service. Crosses tenants. */
export async function listDataKeyOwners(tx: Transaction): Promise<string[]> {
  const { rows } = await tx.query<{ tenantId: string }>({
    name: 'data_key.owners',
    text: `select distinct tenant_id as "tenantId" from data_keys order by 1`,
  })
  return rows.map(({ tenantId }) => tenantId)
}

/** Number of data keys per master key. */
export async function countDataKeysByMaster(
  tx: Transaction,
): Promise<{ masterKeyId: string; dataKeys: number }[]> {
  const { rows } = await tx.query<{ masterKeyId: string; dataKeys: number }>({
    name: 'data_key.by_master',
    text: `select master_key_id as "masterKeyId", count(*)::integer as "dataKeys"
           from data_keys group by master_key_id order by master_key_id`,
  })
  return rows
}

const COLUMNS = `tenant_id as "tenantId", version, wrapped, master_key_id as "masterKeyId"`
