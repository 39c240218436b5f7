/** Ends the session of the browser. */
import { findBrowserSession } from '../../../storage/identity/browser-sessions.js'
import { findTenantWithSettings } from '../../../storage/identity/tenants.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { sha256 } from '../../domain/secret-hashes.js'
import type { SignInHandler } from './needs.js'

export const signOut: SignInHandler<'signOut'> = async (
  { database, clock, browserSessions },
  { token },
  context,
) => {
  if (token === null) return { tag: 'signed_out', tenant: null }
  // A session with a pending second factor is ended too.
  const found = await database.system(async (tx) => {
    const row = await findBrowserSession(tx, sha256(token), clock.now())
    return row && { row, tenant: await findTenantWithSettings(tx, row.tenantId) }
  }, context)
  if (found === undefined) return { tag: 'signed_out', tenant: null }
  const { row, tenant } = found
  const session = { tenantId: row.tenantId, id: row.id }
  await browserSessions.end({ session, reason: 'logout' }, context)
  const branding = tenant === undefined ? null : brandingOf(tenant.id, tenant.name, tenant.settings)
  return { tag: 'signed_out', tenant: branding }
}
