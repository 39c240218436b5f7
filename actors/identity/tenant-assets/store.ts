/** Where the images of tenants are: an object store with the API of S3, or a folder. */
import { randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { AssetMediaType } from './protocol.js'

/** Keys are `<tenant_id>/<sha256>.<extension>`: the content of a key never changes. */
export interface ObjectStore {
  /** Stores an object durably. @throws {ObjectStoreUnavailable} */
  put(key: string, bytes: Uint8Array, mediaType: AssetMediaType): Promise<void>
  /** Removes an object. An absent one is no error. @throws {ObjectStoreUnavailable} */
  remove(key: string): Promise<void>
  close(): Promise<void>
}

/** The object store cannot be reached, or refuses the request. */
export class ObjectStoreUnavailable extends DependencyUnavailable {
  override readonly name = 'ObjectStoreUnavailable'
}

/** What precedes a key in the URLs of pages: a path of the service, or the base URL of the object store. */
export function publicBase({
  folder,
  public_base_url: base = '',
}: {
  readonly folder?: string | undefined
  readonly public_base_url?: string | undefined
}): string {
  return folder === undefined ? `${base.replace(/\/$/, '')}/` : '/assets/'
}

export function keyOf(tenantId: string, sha256: string, mediaType: AssetMediaType): string {
  return `${tenantId}/${sha256}.${mediaType === 'image/png' ? 'png' : 'webp'}`
}

/** Stores objects as files. A crash leaves a whole file or none. */
export function folderStore(folder: string, log: Logger): ObjectStore {
  async function attempt(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      log.error({ err: error, folder }, `cannot ${what} a file of tenant_assets.folder`)
      throw new ObjectStoreUnavailable(`cannot ${what} a file of tenant_assets.folder`)
    }
  }

  return {
    put: (key, bytes) =>
      attempt('write', async () => {
        const path = join(folder, key)
        const written = `${path}.${randomUUID()}`
        await mkdir(dirname(path), { recursive: true })
        try {
          const file = await open(written, 'wx', 0o644)
          try {
            await file.writeFile(bytes)
            await file.sync()
          } finally {
            await file.close()
          }
          await rename(written, path)
        } catch (error) {
          await rm(written, { force: true })
          throw error
        }
      }),
    remove: (key) => attempt('remove', () => rm(join(folder, key), { force: true })),
    close: async () => undefined,
  }
}
