/** Lists and reads the applications of a tenant. */
import type { ActorRef, Handler } from '../../../../runtime/kernel/actor.js'
import {
  type ApplicationRow,
  listApplicationRows,
  findApplication,
} from '../../../../storage/oauth/applications.js'
import { isUuid } from '../../../domain/ids.js'
import type { TenantsProtocol } from '../../../identity/users/tenants/protocol.js'
import { pageOf } from '../../../platform/paging.js'
import type { FaultOf } from '../../../platform/outbound-http/targets.js'
import type { Application, ApplicationsProtocol } from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export type ApplicationsNeeds = WriteNeeds & {
  readonly tenants: ActorRef<TenantsProtocol>
  readonly isOwnAddress: (uri: string) => boolean
  readonly urlFaultOf: FaultOf
}

export type Handling<K extends keyof ApplicationsProtocol> = Handler<
  ApplicationsNeeds,
  ApplicationsProtocol,
  K
>

export const listApplications: Handling<'listApplications'> = async (needs, message, context) => {
  const { tenantId } = message.principal
  const { items, next } = await pageOf(needs, tenantId, message, context, listApplicationRows)
  return { tag: 'listed', applications: items.map(toApplication), next }
}

export const getApplication: Handling<'getApplication'> = async (
  { database },
  { principal: { tenantId }, applicationId },
  context,
) => {
  if (!isUuid(applicationId)) return { tag: 'unknown' }
  const row = await inTenant(database, tenantId, context, (tx) =>
    findApplication(tx, tenantId, applicationId),
  )
  return row === undefined ? { tag: 'unknown' } : { tag: 'found', application: toApplication(row) }
}

export function toApplication({ heldToMethod: _held, ...row }: ApplicationRow): Application {
  return { ...row, clientId: row.id }
}
