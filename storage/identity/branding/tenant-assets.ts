/** Logos and favicons of tenants. The content is in the object store, or in the folder. */
import { lockUntilEnd } from '../../platform/portable/locks.js'
import { allRows, changedRows, type Transaction } from '../../platform/sql.js'

export type TenantAssetRow = {
  readonly kind: 'logo' | 'favicon'
  /** Hexadecimal. */
  readonly sha256: string
  readonly mediaType: 'image/webp' | 'image/png'
  /** Pixels. */
  readonly width: number
  readonly height: number
  readonly sizeBytes: number
  readonly shownSince: Date
}

type NewAsset = Omit<TenantAssetRow, 'shownSince'>

const COLUMNS = `kind, encode(sha256, 'hex') as sha256, media_type as "mediaType", width, height,
  size_bytes as "sizeBytes", shown_since as "shownSince"`

/** An upload of a tenant and the removal of its old images take turns, so that no image in use is removed. */
async function takeTurn(tx: Transaction, tenantId: string): Promise<void> {
  await lockUntilEnd(tx, { kind: 'tenant_assets', tenantId })
}

/** The images that a tenant shows. Undefined for the control plane, which has none. */
export async function listTenantAssetRows(
  tx: Transaction,
  tenantId: string,
): Promise<readonly TenantAssetRow[] | undefined> {
  const [tenant, assets] = await Promise.all([
    tx.query({
      name: 'tenant_asset.tenant',
      text: 'select from tenants where id = $1 and not control_plane',
      values: [tenantId],
    }),
    tx.query<TenantAssetRow>({
      name: 'tenant_asset.list',
      text: `select ${COLUMNS} from tenant_assets
             where tenant_id = $1 and shown_since is not null and retired_at is null`,
      values: [tenantId],
    }),
  ])
  return tenant.rowCount === 0 ? undefined : assets.rows
}

/**
 * Records that an upload begins, before its content is stored.
 * @returns `shown` if the tenant shows this image already, `full` if it keeps `most` images.
 */
export async function beginTenantAsset(
  tx: Transaction,
  tenantId: string,
  asset: NewAsset,
  most: number,
  now: Date,
): Promise<'begun' | 'shown' | 'full'> {
  await takeTurn(tx, tenantId)
  const { rows } = await tx.query<{ shown: boolean }>({
    name: 'tenant_asset.begin',
    text: `insert into tenant_assets (tenant_id, kind, sha256, media_type, width, height, size_bytes, begun_at)
           select $1, $2, decode($3, 'hex'), $4, $5, $6, $7, $8
           where (select count(*) from tenant_assets where tenant_id = $1) < $9
             or exists (select from tenant_assets
               where tenant_id = $1 and kind = $2 and sha256 = decode($3, 'hex'))
           on conflict (tenant_id, kind, sha256) do update set begun_at = excluded.begun_at
           returning shown_since is not null and retired_at is null as shown`,
    values: [
      tenantId,
      asset.kind,
      asset.sha256,
      asset.mediaType,
      asset.width,
      asset.height,
      asset.sizeBytes,
      now,
      most,
    ],
  })
  const [row] = rows
  if (row === undefined) return 'full'
  return row.shown ? 'shown' : 'begun'
}

/**
 * Shows a stored image and retires the previous one. `url` is the address that pages use.
 * @returns the hash of the one before, or null. Undefined if the upload was not begun.
 */
export async function showTenantAsset(
  tx: Transaction,
  tenantId: string,
  { kind, sha256 }: Pick<NewAsset, 'kind' | 'sha256'>,
  url: string,
  now: Date,
): Promise<{ readonly before: string | null } | undefined> {
  await takeTurn(tx, tenantId)
  const retired = await tx.query<{ sha256: string }>({
    name: 'tenant_asset.replace',
    text: `update tenant_assets set retired_at = $4
           where tenant_id = $1 and kind = $2 and shown_since is not null and retired_at is null
             and sha256 <> decode($3, 'hex')
           returning encode(sha256, 'hex') as sha256`,
    values: [tenantId, kind, sha256, now],
  })
  const [shown] = await Promise.all([
    tx.query({
      name: 'tenant_asset.show',
      text: `update tenant_assets set shown_since = $4, retired_at = null
             where tenant_id = $1 and kind = $2 and sha256 = decode($3, 'hex')`,
      values: [tenantId, kind, sha256, now],
    }),
    tx.query({
      name: 'tenant_asset.publish',
      text: `update tenants set updated_at = $4, settings = settings || jsonb_build_object('assets',
               coalesce(settings -> 'assets', '{}') || jsonb_build_object($2::text, $3::text))
             where id = $1 and not control_plane`,
      values: [tenantId, kind, url, now],
    }),
  ])
  if (shown.rowCount === 0) return undefined
  return { before: retired.rows[0]?.sha256 ?? null }
}

/** Retires the image of a kind. Undefined if the tenant shows none. */
export async function retireTenantAsset(
  tx: Transaction,
  tenantId: string,
  kind: NewAsset['kind'],
  now: Date,
): Promise<{ readonly sha256: string } | undefined> {
  await takeTurn(tx, tenantId)
  const [retired] = await Promise.all([
    tx.query<{ sha256: string }>({
      name: 'tenant_asset.retire',
      text: `update tenant_assets set retired_at = $3
             where tenant_id = $1 and kind = $2 and shown_since is not null and retired_at is null
             returning encode(sha256, 'hex') as sha256`,
      values: [tenantId, kind, now],
    }),
    tx.query({
      name: 'tenant_asset.unpublish',
      text: `update tenants set updated_at = $3, settings = settings #- array['assets', $2::text]
             where id = $1 and settings -> 'assets' ? $2::text`,
      values: [tenantId, kind, now],
    }),
  ])
  return retired.rows[0]
}

/** What may be removed: retired before one time, or begun before the other and never shown. */
type EndedBefore = { readonly retiredBefore: Date; readonly begunBefore: Date }
type EndedAsset = Pick<NewAsset, 'kind' | 'sha256' | 'mediaType'> & {
  readonly tenantId: string
}

/** An image that was uploaded again a moment ago is not removed. */
const ENDED = `begun_at < $2 and (retired_at < $1 or shown_since is null)`

/** Images of all tenants that may be removed, oldest first. */
export const findEndedAssets = (
  tx: Transaction,
  { retiredBefore, begunBefore }: EndedBefore,
  limit: number,
) =>
  allRows<EndedAsset>(tx, {
    name: 'tenant_asset.ended',
    text: `select tenant_id as "tenantId", kind, encode(sha256, 'hex') as sha256, media_type as "mediaType"
           from tenant_assets
           where (shown_since is null or retired_at is not null) and ${ENDED}
           order by coalesce(retired_at, begun_at) limit $3`,
    values: [retiredBefore, begunBefore, limit],
  })

/**
 * Removes the record of an image if it may still be removed. The caller removes the content in the same transaction:
 * uploads of the tenant wait for its end.
 */
export async function deleteEndedAsset(
  tx: Transaction,
  { tenantId, kind, sha256 }: EndedAsset,
  { retiredBefore, begunBefore }: EndedBefore,
): Promise<boolean> {
  await takeTurn(tx, tenantId)
  const { rowCount } = await tx.query({
    name: 'tenant_asset.delete_ended',
    text: `delete from tenant_assets
           where tenant_id = $3 and kind = $4 and sha256 = decode($5, 'hex') and ${ENDED}`,
    values: [retiredBefore, begunBefore, tenantId, kind, sha256],
  })
  return rowCount > 0
}

/**
 * Rewrites the URLs of all shown images after a change of `tenant_assets.public_base_url`. `base` is what precedes
 * the id of the tenant.
 * @returns the number of tenants whose URLs have changed.
 */
export const alignAssetUrls = (tx: Transaction, base: string) =>
  changedRows(tx, {
    name: 'tenant_asset.align',
    text: `update tenants t set settings = settings || jsonb_build_object('assets', a.urls)
           from (select tenant_id, jsonb_object_agg(kind, $1::text || tenant_id || '/' || encode(sha256, 'hex') ||
                   case media_type when 'image/png' then '.png' else '.webp' end) as urls
                 from tenant_assets where shown_since is not null and retired_at is null
                 group by tenant_id) a
           where t.id = a.tenant_id and t.settings -> 'assets' is distinct from a.urls`,
    values: [base],
  })
