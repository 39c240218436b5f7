/** Dynamically registered clients and the tokens of registration (RFC 7591, RFC 7592). */
import type { ApplicationRow } from './applications.js'
import { firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'

/** The creator of a token. A user is identified by their `sub` in the tenant. */
export type TokenCreator = { readonly type: 'human' | 'agent' | 'service'; readonly id: string }

/** The scopes that a client may register. */
export type ScopeBounds = {
  /** The scopes of this service, in addition to the scopes of users and credentials. */
  readonly held: readonly string[]
  /** A client gets no scope outside of this list. Null without a list. */
  readonly chosen: readonly string[] | null
}

type NewRegistrationToken = {
  readonly tenantId: string
  readonly id: string
  readonly tokenSha256: Uint8Array
  readonly bounds: ScopeBounds
  readonly maker: TokenCreator
  readonly maxUses: number
  readonly createdAt: Date
  readonly expiresAt: Date
}

export async function insertRegistrationToken(
  tx: Transaction,
  token: NewRegistrationToken,
): Promise<void> {
  const { tenantId, id, tokenSha256, bounds, maker, maxUses, createdAt, expiresAt } = token
  await tx.query({
    name: 'registration_token.insert',
    text: `insert into registration_tokens
             (tenant_id, id, token_sha256, scopes, max_uses, created_at, expires_at, maker_type, maker_id,
              scope_bound)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    values: [
      tenantId,
      id,
      Buffer.from(tokenSha256),
      bounds.held,
      maxUses,
      createdAt,
      expiresAt,
      maker.type,
      maker.id,
      bounds.chosen,
    ],
  })
}

type RegistrationTokenRow = {
  readonly tenantId: string
  readonly tenantSlug: string
  readonly id: string
  readonly bounds: ScopeBounds
  /** Null for tokens created before the column existed. */
  readonly maker: TokenCreator | null
}

/** Finds a usable token. Its tenant is unknown, so the transaction crosses tenants. */
export const findRegistrationToken = (tx: Transaction, tokenSha256: Uint8Array, now: Date) =>
  firstRow<RegistrationTokenRow>(tx, {
    name: 'registration_token.find',
    text: `select r.tenant_id as "tenantId", t.slug as "tenantSlug", r.id,
             jsonb_build_object('held', r.scopes, 'chosen', r.scope_bound) as bounds,
             case when r.maker_type is not null
               then jsonb_build_object('type', r.maker_type, 'id', r.maker_id) end as maker
           from registration_tokens r join tenants t on t.id = r.tenant_id and t.status = 'active'
           where r.token_sha256 = $1 and r.uses < r.max_uses and r.expires_at > $2`,
    values: [Buffer.from(tokenSha256), now],
  })

/** Finds an agent that may work in the tenant. Its home may be elsewhere, so it crosses tenants. */
export const findAgentCreator = (tx: Transaction, tenantId: string, agentId: string) =>
  firstRow<{ role: 'owner' | 'admin' | 'member' | null; granted: string[] }>(tx, {
    name: 'registration_token.agent_maker',
    text: `select m.role, a.scopes as granted
             from agents a join tenants t on t.id = $1
             left join organization_members m on m.organization_id = t.organization_id
               and m.member_type = 'agent' and m.member_id = a.id
             where a.id = $2 and a.status = 'active' and (a.tenant_id = $1 or m.member_id is not null)
               and not exists (select from agent_suspensions x
                 where x.tenant_id = $1 and x.agent_id = a.id)`,
    values: [tenantId, agentId],
  })

/** Takes one use. False if no use is left. */
export const useRegistrationToken = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  isChanged(tx, {
    name: 'registration_token.use',
    text: `update registration_tokens set uses = uses + 1
           where tenant_id = $1 and id = $2 and uses < max_uses and expires_at > $3`,
    values: [tenantId, id, now],
  })

/** Deletes up to `limit` tokens that ended before `before`. */
export const removeEndedRegistrationTokens = removing(
  'registration_token.remove_ended',
  'registration_tokens',
)

/** Metadata that is stored and returned unchanged, with wire names. */
export type HandedOn = Readonly<Record<string, unknown>>

/** Writes the members that only registered clients have. A null token keeps the current one. */
export async function writeRegistration(
  tx: Transaction,
  registration: {
    readonly tenantId: string
    readonly applicationId: string
    readonly handedOn: HandedOn
    readonly tokenSha256: Uint8Array | null
    /** Null keeps the current ones. */
    readonly bounds: ScopeBounds | null
  },
): Promise<void> {
  const { tenantId, applicationId, handedOn, tokenSha256, bounds } = registration
  await tx.query({
    name: 'registration.write',
    text: `update applications set registration = $3,
             registration_token_sha256 = coalesce($4, registration_token_sha256),
             registration_scopes = coalesce($5, registration_scopes),
             registration_scope_bound = coalesce($6, registration_scope_bound)
           where tenant_id = $1 and id = $2`,
    values: [
      tenantId,
      applicationId,
      JSON.stringify(handedOn),
      tokenSha256 === null ? null : Buffer.from(tokenSha256),
      bounds?.held ?? null,
      bounds?.chosen ?? null,
    ],
  })
}

export type RegisteredRow = Pick<ApplicationRow, 'id' | 'tenantId' | 'name'> & {
  readonly tenantSlug: string
  readonly bounds: ScopeBounds
  readonly tokenSha256: Uint8Array
  readonly handedOn: HandedOn
  readonly active: boolean
}

/** Finds a registered client. Its tenant is unknown, so the transaction crosses tenants. */
export const findRegistered = (tx: Transaction, clientId: string) =>
  firstRow<RegisteredRow>(tx, {
    name: 'registration.find',
    text: `select a.name, a.id, a.tenant_id as "tenantId", t.slug as "tenantSlug",
             jsonb_build_object('held', a.registration_scopes, 'chosen', a.registration_scope_bound) as bounds,
             a.registration_token_sha256 as "tokenSha256", a.registration as "handedOn",
             a.status = 'active' and t.status = 'active' as active
           from applications a join tenants t on t.id = a.tenant_id
           where a.id = $1 and a.registration_token_sha256 is not null`,
    values: [clientId],
  })
