/** Initial access tokens: bearer tokens that permit registration (RFC 7591 section 3). */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import { idempotently } from '../../../../storage/platform/idempotency.js'
import { insertRegistrationToken } from '../../../../storage/oauth/client-registration.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { doneBy } from '../../../domain/audit.js'
import type { IdempotencyRefused } from '../../../domain/idempotency.js'
import type { Principal } from '../../../domain/principal.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { resourceScopesFor } from '../registered/resource-scopes.js'
import { knownScopesWithin } from '../registered/rules.js'
import type { CreateToken, ScopesRefused, TokenCreated } from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export const TOKEN_BYTES = 32

export type InitialTokenNeeds = WriteNeeds

export async function createRegistrationToken(
  { database, clock, random }: InitialTokenNeeds,
  { principal, address, expiresInSecs, maxUses, scopes: requested, idempotency }: CreateToken,
  context: MessageContext,
): Promise<TokenCreated | ScopesRefused | IdempotencyRefused> {
  const { tenantId, subject, subjectType } = principal
  const scopes =
    requested === null ? null : await grantable(database, principal, requested, context)
  if (scopes?.length === 0) return { tag: 'no_scope_left' }
  const now = clock.now()
  const token = random.token(TOKEN_BYTES)
  const id = random.uuid()
  const expiresAt = new Date(now.getTime() + expiresInSecs * 1000)
  return inTenant(database, tenantId, context, (tx) =>
    idempotently(
      tx,
      idempotency,
      async () => {
        await insertRegistrationToken(tx, {
          tenantId,
          id,
          tokenSha256: sha256(token),
          bounds: { held: scopes ?? [], chosen: scopes },
          maker: { type: subjectType, id: subject },
          maxUses,
          createdAt: now,
          expiresAt,
        })
        appendAudit(tx, [
          {
            ...doneBy({ principal, address }),
            id: random.uuid(),
            tenantId,
            type: 'admin.registration_token.created',
            occurredAt: now,
            grantId: null,
            resource: { type: 'registration_token', id },
            outcome: 'success',
            requestId: context.requestId ?? null,
            data: {
              max_uses: maxUses,
              expires_at: expiresAt.toISOString(),
              ...(scopes === null ? {} : { scopes }),
            },
          },
        ])
        return { tag: 'created', id, token, expiresAt, maxUses, scopes, replayed: false } as const
      },
      (created) => ({ ...created, token: null }),
    ),
  )
}

/** The scopes that the caller can pass on. */
async function grantable(
  database: Database,
  { tenantId, scopes: held }: Principal,
  scopes: readonly string[],
  { signal }: MessageContext,
): Promise<readonly string[]> {
  const ofResources = await resourceScopesFor(database, tenantId, { scopes }, 'open', signal)
  return knownScopesWithin(scopes, held, ofResources)
}
