/**
 * The types of `authorization_details` that can be asked for (RFC 9396 section 10). Applications name
 * their own, so they are those of a tenant: told at its host, or where it is the only tenant, and never
 * at the address of all tenants, where a list of everybody's would tell who does what.
 */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import { ActorUnavailable } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'
import { authorizationDetailsTypes } from '../../../storage/oauth/applications.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { TenantsProtocol } from '../../identity/tenants/protocol.js'
import { nameTenant, type TenancySettings } from '../../domain/tenants/resolution.js'
import { briefMemory } from '../../platform/batching/ttl-cache.js'

/** A document stays one that clients read whole. */
const TYPES_MAX = 500

export type DetailTypesNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly tenants: ActorRef<TenantsProtocol>
  readonly tenancy: TenancySettings
}

/** Null where the host names no tenant, or nobody can say which types it has. */
export type DetailTypes = (
  host: string,
  context: MessageContext,
) => Promise<readonly string[] | null>

export function detailTypes({ database, clock, tenants, tenancy }: DetailTypesNeeds): DetailTypes {
  const memory = briefMemory<readonly string[]>(clock)

  return async (host, context) => {
    // Nearly everybody reads the documents at the one address of the service: nobody is asked then.
    if (nameTenant({ host }, tenancy).by === 'control_plane') return null
    try {
      const named = await tenants.ask('resolve', { host }, context)
      if (named.tag !== 'resolved' || named.tenant.status !== 'active') return null
      const { id } = named.tenant
      return await memory.get(id, [id], () =>
        database.tenant(id, (tx) => authorizationDetailsTypes(tx, id, TYPES_MAX)),
      )
    } catch (error) {
      // The member is optional: without a database the rest of the document is as true as before.
      if (error instanceof ActorUnavailable || error instanceof DependencyUnavailable) return null
      throw error
    }
  }
}
