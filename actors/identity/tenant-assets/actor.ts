/** Stores and retires the logo and the favicon of a tenant. */
import { createHash } from 'node:crypto'
import {
  ActorUnavailable,
  defineActor,
  type MessageContext,
} from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type Compute,
  ComputeFailed,
  type PoolOptions,
} from '../../../runtime/kernel/threads/pool.js'
import {
  beginTenantAsset,
  listTenantAssets,
  retireTenantAsset,
  showTenantAsset,
  type TenantAssetRow,
} from '../../../storage/identity/branding/tenant-assets.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { audited, type Caller } from '../../domain/audit.js'
import type { Encoded } from './compute.js'
import {
  ASSET_KINDS,
  ASSETS_MAX,
  type AssetInvalid,
  type AssetKind,
  type AssetSlot,
  type TenantAsset,
  tenantAssets,
  type TenantAssetsProtocol,
} from './protocol.js'
import { keyOf, type ObjectStore } from './store.js'

const NO_ENVIRONMENT = { tag: 'no_environment' } as const
/** The decoder stops after 5 seconds. A thread that does not is replaced. */
const THREAD_MS_MAX = 8_000
const QUEUE_MAX = 32
const QUEUE_PER_TENANT_MAX = 4

export type ImageModule = typeof import('./compute.js')
export type ImageCompute = Compute<ImageModule>

/** Options of the pool behind `TenantAssetsNeeds.compute`. */
export function imagePool(processors: number): PoolOptions {
  return {
    name: 'images',
    module: new URL('./compute.js', import.meta.url),
    threadsMax: processors,
    // Uploads are rare, and the decoder is large: no thread waits for them.
    threadsMin: 0,
    queueMax: QUEUE_MAX,
    queuePerShareMax: QUEUE_PER_TENANT_MAX,
    batchMax: 1,
    batchMsMax: THREAD_MS_MAX,
    nice: 5,
  }
}

/** A PNG of one pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** Encodes a pixel. @throws if the decoder does not work on this machine: then every upload would be refused. */
export async function checkImageEngine(compute: ImageCompute): Promise<void> {
  const bytes = Uint8Array.from(Buffer.from(PIXEL, 'base64'))
  const { tag } = await compute.run('encode', { kind: 'favicon', bytes })
  if (tag !== 'image') throw new Error(`the image decoder failed its smoke test: ${tag}`)
}

export type UploadOutcome = 'shown' | 'unchanged' | AssetInvalid['why'] | 'full'

export type TenantAssetsNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly compute: ImageCompute
  readonly store: ObjectStore
  /** What precedes the key of an image in the URLs of pages (`publicBase`). */
  readonly base: string
  /** The public base URL of the service. */
  readonly issuer: string
  readonly count: (outcome: UploadOutcome) => void
}

export const tenantAssetsActor = defineActor<TenantAssetsProtocol, TenantAssetsNeeds>({
  address: tenantAssets,
  asks: {},
  mailbox: { capacity: 256, inflightMax: 32 },
  // The last of two uploads is shown, in the order of their arrival.
  lane: {
    uploadTenantAsset: ({ caller }) => caller.principal.tenantId,
    deleteTenantAsset: ({ caller }) => caller.principal.tenantId,
  },
  supervision: { onFailure: 'resume' },
  create: ({ database, clock, random, compute, store, base, issuer, count }) => {
    async function slotsOf(
      tenantId: string,
      { signal }: MessageContext,
    ): Promise<readonly AssetSlot[] | null> {
      const rows = await database.tenant(tenantId, (tx) => listTenantAssets(tx, tenantId), {
        signal,
      })
      if (rows === undefined) return null
      const assetOf = (kind: AssetKind) => {
        const row = rows.find((one) => one.kind === kind)
        return row === undefined ? null : shownAs(tenantId, row)
      }
      return ASSET_KINDS.map((kind) => ({ kind, asset: assetOf(kind) }))
    }

    function shownAs(tenantId: string, row: TenantAssetRow): TenantAsset {
      const { sha256, mediaType, width, height, sizeBytes, shownSince } = row
      const url = new URL(base + keyOf(tenantId, sha256, mediaType), issuer).href
      return { url, mediaType, width, height, sizeBytes, createdAt: shownSince }
    }

    async function found(kind: AssetKind, tenantId: string, context: MessageContext) {
      const slots = await slotsOf(tenantId, context)
      const slot = slots?.find((one) => one.kind === kind)
      return slot === undefined ? NO_ENVIRONMENT : ({ tag: 'found', slot } as const)
    }

    function record(
      tx: Transaction,
      caller: Caller,
      did: 'uploaded' | 'removed',
      kind: AssetKind,
      data: Readonly<Record<string, unknown>>,
      requestId: string | undefined,
    ): void {
      const { tenantId } = caller.principal
      appendAudit(tx, [
        audited(caller, {
          id: random.uuid(),
          tenantId,
          type: `tenant.asset.${did}`,
          occurredAt: clock.now(),
          resource: { type: 'tenant', id: tenantId },
          requestId,
          data: { kind, ...data },
        }),
      ])
    }

    async function encoded(
      kind: AssetKind,
      bytes: Uint8Array,
      context: MessageContext,
    ): Promise<Encoded> {
      try {
        // A copy of these bytes alone goes to the thread.
        return await compute.run('encode', { kind, bytes: Uint8Array.from(bytes) }, context)
      } catch (error) {
        if (error instanceof ActorUnavailable || !(error instanceof ComputeFailed)) throw error
        // The image ended its thread or kept it busy beyond its time.
        return { tag: 'undecodable' }
      }
    }

    return {
      async listTenantAssets({ tenantId }, context) {
        const slots = await slotsOf(tenantId, context)
        return slots === null ? NO_ENVIRONMENT : { tag: 'listed', slots }
      },

      readTenantAsset: ({ tenantId, kind }, context) => found(kind, tenantId, context),

      async uploadTenantAsset({ caller, kind, bytes }, context) {
        const { tenantId } = caller.principal
        const { signal, requestId } = context
        if ((await slotsOf(tenantId, context)) === null) return NO_ENVIRONMENT
        const image = await encoded(kind, bytes, context)
        if (image.tag !== 'image') {
          count(image.tag)
          return { tag: 'invalid', why: image.tag }
        }
        const { mediaType, width, height } = image
        const sha256 = createHash('sha256').update(image.bytes).digest('hex')
        const asset = { kind, sha256, mediaType, width, height, sizeBytes: image.bytes.length }
        const begun = await database.tenant(
          tenantId,
          (tx) => beginTenantAsset(tx, tenantId, asset, ASSETS_MAX, clock.now()),
          { signal },
        )
        if (begun === 'full') {
          count('full')
          return { tag: 'full', most: ASSETS_MAX }
        }
        const key = keyOf(tenantId, sha256, mediaType)
        // Also for a shown image: the store may have lost it.
        await store.put(key, image.bytes, mediaType)
        if (begun === 'shown') {
          count('unchanged')
          return found(kind, tenantId, context)
        }
        const shown = await database.tenant(
          tenantId,
          async (tx) => {
            const done = await showTenantAsset(tx, tenantId, asset, base + key, clock.now())
            if (done !== undefined)
              record(tx, caller, 'uploaded', kind, { sha256, replaced: done.before }, requestId)
            return done
          },
          { signal },
        )
        if (shown === undefined)
          throw new Error('the record of an upload was removed before it ended')
        count('shown')
        return found(kind, tenantId, context)
      },

      async deleteTenantAsset({ caller, kind }, context) {
        const { tenantId } = caller.principal
        const { signal, requestId } = context
        if ((await slotsOf(tenantId, context)) === null) return NO_ENVIRONMENT
        return database.tenant(
          tenantId,
          async (tx) => {
            const retired = await retireTenantAsset(tx, tenantId, kind, clock.now())
            if (retired === undefined) return { tag: 'absent' } as const
            record(tx, caller, 'removed', kind, { sha256: retired.sha256 }, requestId)
            return { tag: 'removed' } as const
          },
          { signal },
        )
      },
    }
  },
})
