/** Wrapped data keys of tenants. Keys are added and wrapped again, and never changed. */
import { allRows, allValues, firstRow, isChanged, type Transaction } from '../sql.js'

export type DataKeyRow = {
  tenantId: string
  version: number
  wrapped: Uint8Array
  masterKeyId: string
}

/** With what may be sealed now: true once no process is left that opens no stamps. */
export type NewestDataKeyRow = DataKeyRow & { stamps: boolean }

/** The newest data key, which seals. Undefined if the tenant has none. */
export const findNewestDataKey = (tx: Transaction, tenantId: string) =>
  firstRow<NewestDataKeyRow>(tx, {
    name: 'data_key.newest',
    text: `select ${COLUMNS}, svc_seals_with_stamps() as stamps from data_keys
           where tenant_id = $1 order by version desc limit 1`,
    values: [tenantId],
  })

/**
 * A data key that may open values. Undefined if the key is unknown, or if a later key has replaced it: a rotation that
 * finished before `replacedBefore`, after which no live value is under an older key. So an older sealed value of a row
 * does not open if it is put back.
 */
export const findDataKey = (
  tx: Transaction,
  tenantId: string,
  version: number,
  replacedBefore: Date,
) =>
  firstRow<DataKeyRow>(tx, {
    name: 'data_key.find',
    text: `select ${COLUMNS} from data_keys
           where tenant_id = $1 and version = $2
             and not exists (select from data_key_rotations r
               where r.tenant_id = $1 and r.version > $2 and r.unopened = 0 and r.finished_at < $3)`,
    values: [tenantId, version, replacedBefore],
  })

/** Adds a version. False if another process has added it: its key is used then. */
export const insertDataKey = (tx: Transaction, key: DataKeyRow & { createdAt: Date }) =>
  isChanged(tx, {
    name: 'data_key.insert',
    text: `insert into data_keys (tenant_id, version, wrapped, master_key_id, created_at)
           values ($1, $2, $3, $4, $5)
           on conflict (tenant_id, version) do nothing`,
    values: [key.tenantId, key.version, key.wrapped, key.masterKeyId, key.createdAt],
  })

/** Keys that are not wrapped under the current master key, oldest tenants first. */
export const listDataKeysNotUnder = (tx: Transaction, masterKeyId: string, limit: number) =>
  allRows<DataKeyRow>(tx, {
    name: 'data_key.not_under',
    text: `select ${COLUMNS} from data_keys where master_key_id <> $1
           order by tenant_id, version limit $2`,
    values: [masterKeyId, limit],
  })

/** Replaces a wrapped key if it is unchanged. False if it has changed. */
export const rewrapDataKey = (tx: Transaction, key: DataKeyRow, previousMasterKeyId: string) =>
  isChanged(tx, {
    name: 'data_key.rewrap',
    text: `update data_keys set wrapped = $3, master_key_id = $4
           where tenant_id = $1 and version = $2 and master_key_id = $5`,
    values: [key.tenantId, key.version, key.wrapped, key.masterKeyId, previousMasterKeyId],
  })

/** All owners of data keys, including the service. Crosses tenants. */
export const listDataKeyOwners = (tx: Transaction) =>
  allValues<string>(tx, {
    name: 'data_key.owners',
    text: `select distinct tenant_id as "tenantId" from data_keys order by 1`,
  })

/** Number of data keys per master key. */
export const countDataKeysByMaster = (tx: Transaction) =>
  allRows<{ masterKeyId: string; dataKeys: number }>(tx, {
    name: 'data_key.by_master',
    text: `select master_key_id as "masterKeyId", count(*)::integer as "dataKeys"
           from data_keys group by master_key_id order by master_key_id`,
  })

const COLUMNS = `tenant_id as "tenantId", version, wrapped, master_key_id as "masterKeyId"`
