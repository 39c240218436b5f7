/** The images of a tenant as its administrators see them. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  listTenantAssetRows,
  type TenantAssetRow,
} from '../../../storage/identity/branding/tenant-assets.js'
import type { Handling, TenantAssetsNeeds } from './needs.js'
import { ASSET_KINDS, type AssetKind, type AssetSlot, type TenantAsset } from './protocol.js'
import { keyOf } from './store.js'
import { inTenant } from '../../platform/in-tenant.js'

const NO_ENVIRONMENT = { tag: 'no_environment' } as const

export const listTenantAssets: Handling<'listTenantAssets'> = async (
  needs,
  { tenantId },
  context,
) => {
  const slots = await slotsOf(needs, tenantId, context)
  return slots === null ? NO_ENVIRONMENT : { tag: 'listed', slots }
}

export const readTenantAsset: Handling<'readTenantAsset'> = async (
  needs,
  { tenantId, kind },
  context,
) => {
  const slots = await slotsOf(needs, tenantId, context)
  const slot = slots?.find((one) => one.kind === kind)
  return slot === undefined ? NO_ENVIRONMENT : { tag: 'found', slot }
}

/** Null for the control plane, which has no images. */
export async function slotsOf(
  needs: TenantAssetsNeeds,
  tenantId: string,
  context: MessageContext,
): Promise<readonly AssetSlot[] | null> {
  const rows = await inTenant(needs.database, tenantId, context, (tx) =>
    listTenantAssetRows(tx, tenantId),
  )
  if (rows === undefined) return null
  const assetOf = (kind: AssetKind) => {
    const row = rows.find((one) => one.kind === kind)
    return row === undefined ? null : shownAs(needs, tenantId, row)
  }
  return ASSET_KINDS.map((kind) => ({ kind, asset: assetOf(kind) }))
}

function shownAs(
  { base, issuer }: TenantAssetsNeeds,
  tenantId: string,
  row: TenantAssetRow,
): TenantAsset {
  const { sha256, mediaType, width, height, sizeBytes, shownSince } = row
  const url = new URL(base + keyOf(tenantId, sha256, mediaType), issuer).href
  return { url, mediaType, width, height, sizeBytes, createdAt: shownSince }
}
