/** Rotations of data keys, and the lease of their worker. */
import { execute, firstRow, isChanged, onlyRow, type Transaction } from '../sql.js'

export type RotationRow = { tenantId: string; version: number; startedAt: Date }

export const insertRotation = (tx: Transaction, { tenantId, version, startedAt }: RotationRow) =>
  execute(tx, {
    name: 'data_key_rotation.insert',
    text: `insert into data_key_rotations (tenant_id, version, started_at) values ($1, $2, $3)`,
    values: [tenantId, version, startedAt],
  })

/** Leases the oldest rotation without a worker. Undefined if every rotation has one. */
export const claimRotation = (
  tx: Transaction,
  { worker, now, until }: { worker: string; now: Date; until: Date },
) =>
  firstRow<RotationRow>(tx, {
    name: 'data_key_rotation.claim',
    text: `update data_key_rotations r set worker = $1, working_until = $3
           from (select tenant_id, version from data_key_rotations
                 where finished_at is null and (working_until is null or working_until <= $2)
                 order by started_at limit 1 for update skip locked) free
           where r.tenant_id = free.tenant_id and r.version = free.version
           returning r.tenant_id as "tenantId", r.version, r.started_at as "startedAt"`,
    values: [worker, now, until],
  })

/** Records a batch and extends the lease. False if another worker has the lease. */
export const continueRotation = (
  tx: Transaction,
  { tenantId, version }: Pick<RotationRow, 'tenantId' | 'version'>,
  { worker, until, resealed }: { worker: string; until: Date; resealed: number },
) =>
  isChanged(tx, {
    name: 'data_key_rotation.continue',
    text: `update data_key_rotations set working_until = $4, resealed = resealed + $5
           where tenant_id = $1 and version = $2 and worker = $3 and finished_at is null`,
    values: [tenantId, version, worker, until, resealed],
  })

/**
 * Ends a pass. With `nextAt` another pass follows at that time. Without it no value is left under an older key, and
 * older rotations of the tenant are finished as well.
 */
export const endRotationPass = (
  tx: Transaction,
  { tenantId, version }: Pick<RotationRow, 'tenantId' | 'version'>,
  end: { worker: string; now: Date; nextAt: Date | null; unopened: number },
) =>
  execute(tx, {
    name: 'data_key_rotation.end_pass',
    text: `update data_key_rotations
           set worker = case when $5::timestamptz is null then null else worker end,
             working_until = $5, unopened = $6,
             finished_at = case when $5::timestamptz is null then $4::timestamptz end
           where tenant_id = $1 and finished_at is null
             and ((version = $2 and worker = $3) or (version < $2 and $5::timestamptz is null))`,
    values: [tenantId, version, end.worker, end.now, end.nextAt, end.unopened],
  })

type RotationStanding = { open: number; resealed: number; unopened: number }

/** Crosses tenants: counts only. */
export const countRotations = (tx: Transaction) =>
  onlyRow<RotationStanding>(tx, {
    name: 'data_key_rotation.count',
    text: `select count(*) filter (where finished_at is null)::integer as open,
             coalesce(sum(resealed), 0)::integer as resealed,
             coalesce(sum(unopened), 0)::integer as unopened
           from data_key_rotations`,
  })
