/** Links of messages. The tenant of an expired link is known while its row exists. */
import {
  findTicket,
  findTicketTenant,
  type TicketFound,
  type TicketPurpose,
} from '../../../storage/identity/ways/mail-tickets.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { brandingOf, type PageTenant } from '../../domain/tenants/branding.js'
import { sha256 } from '../../domain/secret-hashes.js'
import type { ExpiredLink } from './protocol.js'

export type OpenLink = {
  readonly tag: 'open'
  readonly ticket: TicketFound
  readonly tenant: PageTenant
}

/** Reads the link of a page. The tenant of a link is read from its row. */
export function readLink(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  purpose: TicketPurpose,
  token: string,
  context: MessageContext,
): Promise<OpenLink | ExpiredLink> {
  const hash = sha256(token)
  return database.system(async (tx) => {
    const ticket = await findTicket(tx, purpose, hash, clock.now())
    if (ticket === undefined) return expiredLink(tx, purpose, hash)
    const { tenantId, tenantName, tenantSettings } = ticket
    return { tag: 'open', ticket, tenant: brandingOf(tenantId, tenantName, tenantSettings) }
  }, context)
}

/** The page behind a link of an account. */
export async function linkPage(
  tools: { readonly database: Database; readonly clock: Clock },
  purpose: TicketPurpose,
  token: string,
  context: MessageContext,
) {
  const link = await readLink(tools, purpose, token, context)
  if (link.tag === 'gone') return link
  return { tag: 'page', tenant: link.tenant, email: link.ticket.email } as const
}

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
