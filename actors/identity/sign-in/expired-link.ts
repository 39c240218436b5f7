/** An invalid or expired link: the tenant it belonged to, while its row still exists. */
import { findTicketTenant, type TicketPurpose } from '../../../storage/operations/mail-tickets.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import type { ExpiredLink } from './protocol.js'

export async function expiredLink(
  tx: Transaction,
  purpose: TicketPurpose,
  linkSha256: Uint8Array,
): Promise<ExpiredLink> {
  const found = await findTicketTenant(tx, purpose, linkSha256)
  const tenant = found === undefined ? null : brandingOf(found.id, found.name, found.settings)
  return { tag: 'gone', tenant }
}

/** The same in its own transaction. The tenant of a link is read from its row. */
export function readExpiredLink(
  database: Database,
  purpose: TicketPurpose,
  linkSha256: Uint8Array,
  context: MessageContext,
): Promise<ExpiredLink> {
  return database.system((tx) => expiredLink(tx, purpose, linkSha256), context)
}
