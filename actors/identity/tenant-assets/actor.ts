/** The logo and the favicon of a tenant. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { listTenantAssets, readTenantAsset } from './read.js'
import type { TenantAssetsNeeds } from './needs.js'
import { tenantAssets, type TenantAssetsProtocol } from './protocol.js'
import { deleteTenantAsset, uploadTenantAsset } from './upload.js'

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
  handlers: { listTenantAssets, readTenantAsset, uploadTenantAsset, deleteTenantAsset },
})
