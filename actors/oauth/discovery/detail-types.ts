/**
 * `authorization_details_types_supported` (RFC 9396 section 10). Applications define their types, so
 * the list belongs to a tenant. It is published at the tenant's host, or if the service has only one
 * tenant. A list of all tenants would reveal who uses which API. `openid_credential` is of the service.
 */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import { ActorUnavailable } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'
import { authorizationDetailsTypes } from '../../../storage/oauth/applications.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { TenantsProtocol } from '../../identity/users/tenants/protocol.js'
import { CREDENTIAL_DETAILS_TYPE } from '../../domain/credentials/catalogue.js'
import { nameTenant, type TenancySettings } from '../../domain/tenants/resolution.js'
import { ttlCache } from '../../platform/batching/ttl-cache.js'

/** Keeps the document small enough for clients with a size limit. */
const TYPES_MAX = 500

type DetailTypesNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly tenants: ActorRef<TenantsProtocol>
  readonly tenancy: TenancySettings
  /** `credentials.enabled`. */
  readonly credentials: boolean
}

/** Null if the host does not name a tenant, or the types cannot be read. */
type DetailTypes = (host: string, context: MessageContext) => Promise<readonly string[] | null>

export function detailTypes(needs: DetailTypesNeeds): DetailTypes {
  const { database, clock, tenants, tenancy, credentials } = needs
  const memory = ttlCache<readonly string[]>(clock)

  return async (host, context) => {
    // Most requests use the host of the service, which needs no look-up.
    if (nameTenant({ host }, tenancy).by === 'control_plane') return null
    try {
      const named = await tenants.resolve({ host }, context)
      if (named.tag !== 'resolved' || named.tenant.status !== 'active') return null
      const { id, credentialIssuerEnabled } = named.tenant
      const types = await memory.get(id, [id], () =>
        database.tenant(id, (tx) => authorizationDetailsTypes(tx, id, TYPES_MAX)),
      )
      return credentials && credentialIssuerEnabled ? [...types, CREDENTIAL_DETAILS_TYPE] : types
    } catch (error) {
      // The member is optional: without a database the other members are still correct.
      if (error instanceof ActorUnavailable || error instanceof DependencyUnavailable) return null
      throw error
    }
  }
}
