/** SCIM groups (RFC 7643 section 4.2): the roles of a tenant. docs/reference/identity.md, SCIM. */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Caller } from '../../../domain/audit.js'
import type {
  AskedAttributes,
  Conditional,
  JsonObject,
  ScimRefusal,
  ScimUsersListed,
} from '../protocol.js'

export type ScimGroupsProtocol = {
  createScimGroup: Ask<
    WriteGroup & AskedAttributes,
    (Omit<GroupFound, 'tag'> & { readonly tag: 'created' }) | ScimRefusal
  >
  readScimGroup: Ask<OneGroup & AskedAttributes, GroupFound | ScimRefusal>
  listScimGroups: Ask<ListGroups & AskedAttributes, ScimUsersListed | ScimRefusal>
  replaceScimGroup: Ask<
    OneGroup & WriteGroup & Conditional & AskedAttributes,
    GroupFound | ScimRefusal
  >
  patchScimGroup: Ask<
    OneGroup & WriteGroup & Conditional & AskedAttributes,
    GroupFound | ScimRefusal
  >
  deleteScimGroup: Ask<OneGroup & Conditional, { readonly tag: 'deleted' } | ScimRefusal>
}

export type OneGroup = { readonly caller: Caller; readonly groupId: string }
export type WriteGroup = { readonly caller: Caller; readonly body: JsonObject }
export type ListGroups = {
  readonly caller: Caller
  readonly filter: string | null
  /** As in the query. */
  readonly startIndex: string | null
  readonly count: string | null
}
/** A group as the client gets it, with `meta`. */
export type GroupFound = {
  readonly tag: 'found'
  readonly id: string
  readonly resource: JsonObject
  /** The weak entity tag. */
  readonly version: string
}

export const scimGroups = address<ScimGroupsProtocol>('scim-groups', {
  idempotent: ['readScimGroup', 'listScimGroups'],
})
