/** The bearer tokens of directories: opaque, shown once, stored as SHA-256. */
import { createHash } from 'node:crypto'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  deleteScimToken,
  findScimToken,
  insertScimToken,
  isOrganizationOfTenant,
  listScimTokens,
  type ScimTokenRow,
} from '../../../storage/identity/scim-tokens.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import type { Database } from '../../../storage/platform/sql.js'
import { type AuditOnlyType, audited, type Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import type { Principal } from '../../domain/principal.js'
import { HUMAN_SCOPES } from '../../domain/scopes.js'
import { ttlCache } from '../../platform/batching/ttl-cache.js'
import { page } from '../../platform/paging.js'
import { rolesBeyond } from '../users/rules.js'
import type {
  CreateScimToken,
  ListScimTokens,
  ScimProtocol,
  ScimTokenCreated,
  ScimTokenRecord,
  ScimTokensListed,
} from './protocol.js'

/** For tools that search for leaked secrets. */
const PREFIX = 'scim_'
const TOKEN_BYTES = 32

export type ScimTokensNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
}

type Outcome<K extends keyof ScimProtocol> = Promise<ScimProtocol[K]['reply']>

const sha256 = (token: string): Uint8Array => createHash('sha256').update(token, 'utf8').digest()

export function scimTokens({ database, clock, random }: ScimTokensNeeds) {
  /** A deleted token is refused here at once, and within a second in other processes. */
  const known = ttlCache<ScimTokenRow | undefined>(clock)

  const record = (
    caller: Caller,
    type: AuditOnlyType,
    id: string,
    data: Readonly<Record<string, unknown>>,
    { requestId }: MessageContext,
  ) =>
    audited(caller, {
      id: random.uuid(),
      tenantId: caller.principal.tenantId,
      type,
      occurredAt: clock.now(),
      resource: { type: 'scim_token', id },
      requestId,
      data,
    })

  return {
    async authenticate({ token }: { readonly token: string }): Outcome<'authenticate'> {
      if (!token.startsWith(PREFIX)) return { tag: 'unknown' }
      const hash = sha256(token)
      const key = Buffer.from(hash).toString('base64url')
      const found = await known.get(
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
    },

    async createScimToken(
      message: CreateScimToken,
      context: MessageContext,
    ): Outcome<'createScimToken'> {
      const { caller, organizationId, expiresAt, description, idempotency } = message
      const { tenantId, scopes } = caller.principal
      const now = clock.now()
      if (expiresAt !== null && expiresAt <= now) return { tag: 'expired' }
      const beyond = rolesBeyond(message.roles ?? [], [], scopes)
      if (beyond.length > 0) return { tag: 'roles_beyond_caller', roles: beyond }
      const roles =
        message.roles ?? (rolesBeyond(['admin'], [], scopes).length === 0 ? ['admin' as const] : [])
      const token = PREFIX + random.token(TOKEN_BYTES)
      const id = random.uuid()
      return database.tenant(
        tenantId,
        (tx) =>
          idempotently(
            tx,
            idempotency,
            async () => {
              if (
                organizationId !== null &&
                !(await isOrganizationOfTenant(tx, tenantId, organizationId))
              )
                return { tag: 'unknown_organization' as const }
              const row = {
                id,
                tenantId,
                organizationId,
                description,
                roles,
                createdAt: now,
                expiresAt,
              }
              await insertScimToken(tx, { ...row, tokenSha256: sha256(token) })
              const expires = expiresAt?.toISOString() ?? null
              const data = { roles, expires_at: expires, organization_id: organizationId }
              appendAudit(tx, [record(caller, 'admin.scim_token.created', id, data, context)])
              const created: ScimTokenCreated = {
                tag: 'created',
                record: recordOf(row),
                token,
                replayed: false,
              }
              return created
            },
            (outcome) => (outcome.tag === 'created' ? { ...outcome, token: null } : undefined),
          ),
        { signal: context.signal },
      )
    },

    async listScimTokens({ caller, limit, after }: ListScimTokens, { signal }: MessageContext) {
      const { tenantId } = caller.principal
      const rows = await database.tenant(
        tenantId,
        (tx) => listScimTokens(tx, tenantId, limit + 1, after),
        { signal },
      )
      const { items, next } = page(rows, limit)
      return { tag: 'listed', tokens: items.map(recordOf), next } satisfies ScimTokensListed
    },

    async deleteScimToken(
      { caller, tokenId }: { readonly caller: Caller; readonly tokenId: string },
      context: MessageContext,
    ): Outcome<'deleteScimToken'> {
      const { tenantId } = caller.principal
      const isDeleted = await database.tenant(tenantId, async (tx) => {
        if (!isUuid(tokenId) || !(await deleteScimToken(tx, tenantId, tokenId))) return false
        appendAudit(tx, [record(caller, 'admin.scim_token.deleted', tokenId, {}, context)])
        return true
      })
      known.invalidate([tokenId])
      return isDeleted ? { tag: 'deleted' } : { tag: 'unknown_token' }
    },
  }
}

function recordOf({ tenantId: _tenant, ...record }: ScimTokenRow): ScimTokenRecord {
  return record
}

/** The scopes are those of the roles to give, so a token cannot give more than it has. */
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
