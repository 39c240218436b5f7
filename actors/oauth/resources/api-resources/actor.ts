/** Manages the API resources of a tenant. */
import { type ActorRef, defineActor } from '../../../../runtime/kernel/actor.js'
import { apiResourceTable, resourceKey } from '../../../../storage/oauth/api-resources.js'
import { claimAudience, isAudienceTaken } from '../../../../storage/oauth/audiences.js'
import { apiResource, type ApiResourceMembers } from '../../../domain/entities/api-resource.js'
import { tenants, type TenantsProtocol } from '../../../identity/users/tenants/protocol.js'
import { entityHandlers } from '../../../platform/entity-handlers.js'
import { apiResources, type ApiResourcesProtocol, type AudienceRefused } from './protocol.js'
import { ownershipFault } from '../../../platform/oauth/audience-ownership.js'
import { draftFault } from './rules.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

const RESOURCES_MAX = 500

type ApiResourcesNeeds = WriteNeeds & {
  readonly tenants: ActorRef<TenantsProtocol>
  readonly issuer: string
  readonly isOwnAddress: (uri: string) => boolean
}

export const apiResourcesActor = defineActor<ApiResourcesProtocol, ApiResourcesNeeds>({
  address: apiResources,
  asks: { tenants },
  mailbox: { capacity: 1024, inflightMax: 64 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const handlers = entityHandlers<ApiResourceMembers, AudienceRefused>(needs, {
      entity: apiResource,
      table: apiResourceTable,
      most: RESOURCES_MAX,
      faultOf: draftFault,
      foreignFault: async ({ resource }, { principal: { tenantId } }, context) =>
        resource === undefined || resourceKey(resource) === null
          ? undefined
          : ownershipFault(needs, resource, tenantId, context),
      written: async (tx, row, before) => {
        if (row.resource === before?.resource) return
        await claimAudience(tx, { ...row, holder: 'resource' }, row.resource)
      },
      isConflict: isAudienceTaken,
      auditOf: ({ resource, name }) => ({ resource, name }),
      powersOf: ({ scopes, allowedClients, requireDpop }) => ({
        scopes: scopes.map(({ name }) => name),
        allowed_clients: allowedClients,
        require_dpop: requireDpop,
      }),
      forgets: ({ id }) => id,
    })
    return {
      ...handlers,
      async getApiResourceMetadata(message, context) {
        const read = await handlers.read(message, context)
        return read.tag === 'found'
          ? { tag: 'described', row: read.row, issuer: needs.issuer }
          : read
      },
    }
  },
})
