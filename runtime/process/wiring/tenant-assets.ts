/** The images of tenants: their store, and the removal of retired ones. */
import { assetFilesActor } from '../../../actors/identity/asset-files/actor.js'
import { tenantAssetsActor } from '../../../actors/identity/tenant-assets/actor.js'
import type { TenantAssetsNeeds } from '../../../actors/identity/tenant-assets/needs.js'
import { checkImageEngine, type ImageCompute } from '../../../actors/identity/tenant-assets/pool.js'
import { assetRetirement } from '../../../actors/identity/tenant-assets/retirement.js'
import { s3Store } from '../../../actors/identity/tenant-assets/s3-store.js'
import {
  folderStore,
  type ObjectStore,
  publicBase,
} from '../../../actors/identity/tenant-assets/store.js'
import { counter } from '../../../actors/platform/metrics.js'
import { type ActorContext, type ActorWiring, wireActor } from '../../kernel/wiring.js'
import type { ProcessResources } from '../process-resources.js'

type OnStop = (close: () => Promise<void>) => void

/** @param computeOf opens the pool that decodes images. */
export function tenantAssetWirings(
  resources: ProcessResources,
  computeOf: (context: ActorContext) => ImageCompute,
): readonly ActorWiring[] {
  return [
    wireActor(tenantAssetsActor, async (context) => {
      const compute = computeOf(context)
      await checkImageEngine(compute)
      return tenantAssetsNeeds(resources, compute, context.onStop)
    }),
    wireActor(assetFilesActor, () => ({ folder: resources.settings.tenant_assets.folder! })),
  ]
}

function tenantAssetsNeeds(
  resources: ProcessResources,
  compute: ImageCompute,
  onStop: OnStop,
): TenantAssetsNeeds {
  const { settings, database, clock, random, metrics } = resources
  const uploads = counter(
    metrics.registry,
    'svc_tenant_asset_uploads_total',
    'Uploaded images of tenants, by what became of them.',
    ['outcome'],
  )
  return {
    database,
    clock,
    random,
    compute,
    store: storeOf(resources, onStop),
    base: publicBase(settings.tenant_assets),
    issuer: settings.oidc.issuer_url,
    count: (outcome) => uploads.inc({ outcome }),
  }
}

/** One round of the removal of retired images, or null where tenants have none. */
export function assetRetirementOf(resources: ProcessResources, onStop: OnStop) {
  const { settings, database, clock } = resources
  const { tenant_assets: assets } = settings
  if (!assets.enabled) return null
  return assetRetirement({
    database,
    clock,
    store: storeOf(resources, onStop),
    base: publicBase(assets),
    retirementDays: assets.retirement_days,
  })
}

/** The settings are complete: a start without them is refused (runtime/process/configuration/load-settings.ts). */
function storeOf({ settings, clock, metrics, log }: ProcessResources, onStop: OnStop): ObjectStore {
  const { folder, s3_endpoint, bucket, region, access_key_id, secret_access_key } =
    settings.tenant_assets
  if (folder !== undefined) return folderStore(folder, log)
  const calls = counter(
    metrics.registry,
    'svc_object_store_calls_total',
    'Requests to the object store of tenant assets.',
    ['operation', 'outcome'],
  )
  const store = s3Store({
    endpoint: s3_endpoint!,
    bucket: bucket!,
    credentials: {
      accessKeyId: access_key_id!,
      secretAccessKey: secret_access_key!,
      region: region!,
    },
    proxy: settings.proxy,
    clock,
    log,
    count: (operation, outcome) => calls.inc({ operation, outcome }),
  })
  onStop(() => store.close())
  return store
}
