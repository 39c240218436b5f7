/** The bearer tokens of directories: opaque, shown once, stored as SHA-256. */
import {
  deleteScimTokenRow,
  findScimToken,
  insertScimToken,
  isOrganizationOfTenant,
  listScimTokenRows,
  type ScimTokenRow,
} from '../../../storage/identity/scim-tokens.js'
import { createOnce } from '../../platform/creation.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { isUuid } from '../../domain/ids.js'
import type { Principal } from '../../domain/principal.js'
import { HUMAN_SCOPES } from '../../domain/scopes.js'
import { listOf } from '../../platform/paging.js'
import { recordAudit } from '../../platform/record-audit.js'
import { sha256 } from '../../domain/secret-hashes.js'
import { rolesBeyond } from '../../domain/people/role-powers.js'
import type { Handling } from './needs.js'
import type { ScimTokenRecord } from './protocol.js'

/** For tools that search for leaked secrets. */
const PREFIX = 'scim_'
const TOKEN_BYTES = 32

export const authenticate: Handling<'authenticate'> = async (
  { database, clock, knownTokens },
  { token },
) => {
  if (!token.startsWith(PREFIX)) return { tag: 'unknown' }
  const hash = sha256(token)
  const key = Buffer.from(hash).toString('base64url')
  const found = await knownTokens.get(
    key,
    [],
    // The token tells its tenant, so the look-up crosses tenants. Not cancelled: callers share it.
    () => database.system((tx) => findScimToken(tx, hash, clock.now())),
    (row) => (row === undefined ? [] : [row.id]),
  )
  const now = clock.now()
  if (found === undefined || (found.expiresAt !== null && found.expiresAt <= now))
    return { tag: 'unknown' }
  return { tag: 'authenticated', principal: principalOf(found) }
}

export const createScimToken: Handling<'createScimToken'> = async (needs, message, context) => {
  const { clock, random } = needs
  const { caller, organizationId, expiresAt, description } = message
  const { tenantId, scopes } = caller.principal
  const createdAt = clock.now()
  if (expiresAt !== null && expiresAt <= createdAt) return { tag: 'expired' }
  const beyond = rolesBeyond(message.roles ?? [], [], scopes)
  if (beyond.length > 0) return { tag: 'roles_beyond_caller', roles: beyond }
  const mayGiveAdmin = rolesBeyond(['admin'], [], scopes).length === 0
  const roles = message.roles ?? (mayGiveAdmin ? ['admin' as const] : [])
  const token = PREFIX + random.token(TOKEN_BYTES)
  const id = random.uuid()
  const row = { id, tenantId, organizationId, description, roles, createdAt, expiresAt }
  const insert = async (tx: Transaction) => {
    if (organizationId !== null && !(await isOrganizationOfTenant(tx, tenantId, organizationId)))
      return { tag: 'unknown_organization' } as const
    await insertScimToken(tx, { ...row, tokenSha256: sha256(token) })
    const expires = expiresAt?.toISOString() ?? null
    recordAudit(tx, needs, caller, context, {
      type: 'admin.scim_token.created',
      resource: { type: 'scim_token', id },
      data: { roles, expires_at: expires, organization_id: organizationId },
    })
    const created = { tag: 'created', record: recordOf(row), replayed: false } as const
    return { ...created, token: token as string | null }
  }
  return createOnce(needs, message, context, insert, (outcome) =>
    outcome.tag === 'created' ? { ...outcome, token: null } : undefined,
  )
}

export const listScimTokens: Handling<'listScimTokens'> = (needs, message, context) =>
  listOf(needs, message.caller.principal.tenantId, message, context, {
    list: listScimTokenRows,
    show: recordOf,
  })

export const deleteScimToken: Handling<'deleteScimToken'> = async (
  needs,
  { caller, tokenId },
  context,
) => {
  const { tenantId } = caller.principal
  const isDeleted = await needs.database.tenant(tenantId, async (tx) => {
    if (!isUuid(tokenId) || !(await deleteScimTokenRow(tx, tenantId, tokenId))) return false
    const resource = { type: 'scim_token', id: tokenId }
    recordAudit(tx, needs, caller, context, { type: 'admin.scim_token.deleted', resource })
    return true
  })
  needs.knownTokens.invalidate([tokenId])
  return isDeleted ? { tag: 'deleted' } : { tag: 'unknown_token' }
}

function recordOf({ tenantId: _tenant, ...record }: ScimTokenRow): ScimTokenRecord {
  return record
}

/** The scopes follow from the roles to give, so a token cannot give more than it has. */
function principalOf({ id, tenantId, organizationId, roles, expiresAt }: ScimTokenRow): Principal {
  const granted = roles.flatMap((role) => HUMAN_SCOPES[role])
  return {
    subject: id,
    subjectType: 'service',
    tenantId,
    organizationId,
    clientId: id,
    scopes: [...new Set(['users:read', 'users:manage', ...granted])],
    audience: [],
    actors: [],
    delegationId: null,
    sessionId: null,
    acr: null,
    authTimeSecs: null,
    jkt: null,
    tokenId: id,
    expiresAtSecs: expiresAt === null ? Number.MAX_SAFE_INTEGER : expiresAt.getTime() / 1000,
  }
}
