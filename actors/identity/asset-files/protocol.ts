/** Serves the images of tenants from the folder `tenant_assets.folder`. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type AssetFilesProtocol = {
  /** The bytes of a file. Its name is the hash of its content, so that they never change. */
  getAssetFile: Ask<ReadAssetFile, AssetFileFound | AssetFileUnknown>
}

export type ReadAssetFile = {
  readonly tenantId: string
  /** As `ASSET_FILE`. */
  readonly file: string
}
export type AssetFileFound = { readonly tag: 'webp' | 'png'; readonly bytes: Uint8Array }
export type AssetFileUnknown = { readonly tag: 'unknown' }

/** The SHA-256 of the content and the extension of its type. */
export const ASSET_FILE = /^[0-9a-f]{64}\.(?:webp|png)$/

export const assetFiles = address<AssetFilesProtocol>('asset-files', {
  idempotent: ['getAssetFile'],
})
