/** The identities of an account: listed and removed on the account page. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { findTenantBranding } from '../../../../../storage/identity/sign-in-flows.js'
import {
  listIdentities,
  removeIdentity,
} from '../../../../../storage/identity/upstream-identities.js'
import { isUuid } from '../../../../domain/ids.js'
import { socialOf } from '../../../../domain/tenants/branding.js'
import type { OwnAccount, SignInFirst } from '../../account/protocol.js'
import { auditOwn, demanded, SENSITIVE_SECS } from '../../account/own-account.js'
import type { FederatedLoginHandler, FederatedLoginTools } from './needs.js'
import { ACCOUNT } from './state.js'
import { inTenant } from '../../../../platform/in-tenant.js'

/** Returns null when the authentication is fresh enough to add or remove an identity. */
export function freshSignIn(
  tools: Pick<FederatedLoginTools, 'browserSessions'>,
  own: OwnAccount,
  context: MessageContext,
): Promise<SignInFirst | null> {
  const level = own.session.level >= 2 ? 2 : 1
  return demanded(tools, own, { level, maxAgeSecs: SENSITIVE_SECS }, ACCOUNT, context)
}

export const identities: FederatedLoginHandler<'identities'> = async (
  { database, providers },
  { session },
  context,
) => {
  const { tenantId, accountId } = session
  const rows = await database.system((tx) => listIdentities(tx, tenantId, accountId), context)
  const branding = await inTenant(database, tenantId, context, (tx) =>
    findTenantBranding(tx, tenantId),
  )
  const deployment = socialOf(branding?.tenantSettings ?? {}).enabled
  const upstreams = await providers.offered({ id: tenantId, deployment }, context)
  const names = new Map(upstreams.map(({ id, name }) => [id, name]))
  return {
    tag: 'listed',
    // A tenant's provider must not learn the user's identities at the deployment's providers.
    identities: rows
      .filter((row) => !session.confined || row.tenantId !== null)
      .map((row) => ({
        id: row.id,
        name: names.get(row.provider) ?? row.issuer,
        email: row.email,
        linkedAt: row.createdAt,
        lastUsedAt: row.lastUsedAt,
      })),
    upstreams,
  }
}

export const unlinkOwnIdentity: FederatedLoginHandler<'unlinkOwnIdentity'> = async (
  tools,
  { identityId, address, ...own },
  context,
) => {
  if (!isUuid(identityId)) return { tag: 'unknown_identity' }
  const first = await freshSignIn(tools, own, context)
  if (first !== null) return first
  const { session } = own
  const { tenantId, accountId } = session
  const now = tools.clock.now()
  const outcome = await tools.database.system(async (tx) => {
    const removed = await removeIdentity(tx, tenantId, accountId, identityId, now)
    const done = { type: 'account.identity.unlinked', address } as const
    if (removed === 'removed') auditOwn(tx, tools, session, context, done)
    return removed
  }, context)
  if (outcome === 'last') return { tag: 'last_way_in' }
  return { tag: outcome === 'removed' ? 'unlinked' : 'unknown_identity' }
}
