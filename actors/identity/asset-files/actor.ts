/** Reads images from the folder. Browsers keep them for a year, so that reads are rare. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defineActor } from '../../../runtime/kernel/actor.js'
import { isUuid } from '../../domain/ids.js'
import { ASSET_FILE, assetFiles, type AssetFilesProtocol } from './protocol.js'

const UNKNOWN = { tag: 'unknown' } as const

type AssetFilesNeeds = {
  /** `tenant_assets.folder`. */
  readonly folder: string
}

export const assetFilesActor = defineActor<AssetFilesProtocol, AssetFilesNeeds>({
  address: assetFiles,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 64 },
  create: ({ folder }) => ({
    async getAssetFile({ tenantId, file }) {
      // Both are parts of a path.
      if (!isUuid(tenantId) || !ASSET_FILE.test(file)) return UNKNOWN
      try {
        const bytes = await readFile(join(folder, tenantId.toLowerCase(), file))
        return { tag: file.endsWith('.png') ? 'png' : 'webp', bytes }
      } catch (error) {
        const { code } = error as { code?: unknown }
        if (code === 'ENOENT' || code === 'ENOTDIR') return UNKNOWN
        throw error
      }
    },
  }),
})
