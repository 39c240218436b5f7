/** The logo and the favicon of a tenant. See docs/guides/identity/hosted-pages.md. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { TenantId } from '../../domain/ids.js'
import type { NoEnvironment } from '../users/tenants/protocol.js'

export const ASSET_KINDS = ['logo', 'favicon'] as const
export type AssetKind = (typeof ASSET_KINDS)[number]

/** Most bytes of an upload. */
export const UPLOAD_BYTES_MAX = 512 * 1024
/** Most pixels of an uploaded image, once decoded. */
export const PIXELS_MAX = 4_000_000
/** Most stored images of a tenant, the retired ones included. */
export const ASSETS_MAX = 200

export type TenantAssetsProtocol = {
  /** One entry for each kind. */
  listTenantAssets: Ask<{ readonly tenantId: TenantId }, AssetsListed | NoEnvironment>
  readTenantAsset: Ask<
    { readonly tenantId: TenantId; readonly kind: AssetKind },
    AssetFound | NoEnvironment
  >
  /**
   * Decodes an image, encodes it again and shows it on the pages of the tenant. The previous one of the kind is
   * retired. The same image again changes nothing.
   */
  uploadTenantAsset: Ask<PutAsset, AssetFound | AssetInvalid | AssetsFull | NoEnvironment>
  /** Retires the image of a kind. */
  deleteTenantAsset: Ask<RemoveAsset, { readonly tag: 'removed' } | AssetAbsent | NoEnvironment>
}

export type PutAsset = {
  readonly caller: Caller
  readonly kind: AssetKind
  /** A PNG, JPEG or WebP file of at most `UPLOAD_BYTES_MAX`. */
  readonly bytes: Uint8Array
}
export type RemoveAsset = { readonly caller: Caller; readonly kind: AssetKind }

export type TenantAsset = {
  /** Absolute, and never used for another image. */
  readonly url: string
  readonly mediaType: AssetMediaType
  /** Pixels. */
  readonly width: number
  readonly height: number
  readonly sizeBytes: number
  readonly createdAt: Date
}
export type AssetMediaType = 'image/webp' | 'image/png'

export type AssetSlot = { readonly kind: AssetKind; readonly asset: TenantAsset | null }
export type AssetsListed = { readonly tag: 'listed'; readonly slots: readonly AssetSlot[] }
export type AssetFound = { readonly tag: 'found'; readonly slot: AssetSlot }
export type AssetInvalid = {
  readonly tag: 'invalid'
  readonly why: 'undecodable' | 'too_many_pixels' | 'too_slow'
}
/** The tenant keeps as many images as it may. */
export type AssetsFull = { readonly tag: 'full'; readonly most: number }
export type AssetAbsent = { readonly tag: 'absent' }

export const tenantAssets = address<TenantAssetsProtocol>('tenant-assets', {
  idempotent: ['listTenantAssets', 'readTenantAsset'],
})
