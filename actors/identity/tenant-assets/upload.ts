/** Stores and retires the images of a tenant. */
import { createHash } from 'node:crypto'
import { ActorUnavailable, type MessageContext } from '../../../runtime/kernel/actor.js'
import { ComputeFailed } from '../../../runtime/kernel/threads/pool.js'
import {
  beginTenantAsset,
  retireTenantAsset,
  showTenantAsset,
} from '../../../storage/identity/branding/tenant-assets.js'
import { recordAudit } from '../../platform/record-audit.js'
import type { Encoded } from './compute.js'
import type { Handling, TenantAssetsNeeds } from './needs.js'
import { ASSETS_MAX, type AssetKind } from './protocol.js'
import { readTenantAsset, slotsOf } from './read.js'
import { keyOf } from './store.js'
import { inTenant } from '../../platform/in-tenant.js'

const NO_ENVIRONMENT = { tag: 'no_environment' } as const

export const uploadTenantAsset: Handling<'uploadTenantAsset'> = async (
  needs,
  { caller, kind, bytes },
  context,
) => {
  const { database, clock, store, base, count } = needs
  const { tenantId } = caller.principal
  if ((await slotsOf(needs, tenantId, context)) === null) return NO_ENVIRONMENT
  const image = await encoded(needs, kind, bytes, context)
  if (image.tag !== 'image') {
    count(image.tag)
    return { tag: 'invalid', why: image.tag }
  }
  const { mediaType, width, height } = image
  const sha256 = createHash('sha256').update(image.bytes).digest('hex')
  const asset = { kind, sha256, mediaType, width, height, sizeBytes: image.bytes.length }
  const begun = await inTenant(database, tenantId, context, (tx) =>
    beginTenantAsset(tx, tenantId, asset, ASSETS_MAX, clock.now()),
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
    return readTenantAsset(needs, { tenantId, kind }, context)
  }
  const shown = await inTenant(database, tenantId, context, async (tx) => {
    const done = await showTenantAsset(tx, tenantId, asset, base + key, clock.now())
    if (done !== undefined)
      recordAudit(tx, needs, caller, context, {
        type: 'tenant.asset.uploaded',
        resource: { type: 'tenant', id: tenantId },
        data: { kind, sha256, replaced: done.before },
      })
    return done
  })
  if (shown === undefined) throw new Error('the record of an upload was removed before it ended')
  count('shown')
  return readTenantAsset(needs, { tenantId, kind }, context)
}

async function encoded(
  { compute }: TenantAssetsNeeds,
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

export const deleteTenantAsset: Handling<'deleteTenantAsset'> = async (
  needs,
  { caller, kind },
  context,
) => {
  const { tenantId } = caller.principal
  if ((await slotsOf(needs, tenantId, context)) === null) return NO_ENVIRONMENT
  return inTenant(needs.database, tenantId, context, async (tx) => {
    const retired = await retireTenantAsset(tx, tenantId, kind, needs.clock.now())
    if (retired === undefined) return { tag: 'absent' }
    recordAudit(tx, needs, caller, context, {
      type: 'tenant.asset.removed',
      resource: { type: 'tenant', id: tenantId },
      data: { kind, sha256: retired.sha256 },
    })
    return { tag: 'removed' }
  })
}
