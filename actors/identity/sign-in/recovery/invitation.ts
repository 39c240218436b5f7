/** Accepting an invitation to a tenant: the user who controls the mailbox becomes its user. */
import { setFirstPassword } from '../../../../storage/identity/accounts.js'
import { type TicketFound, useTicket } from '../../../../storage/identity/ways/mail-tickets.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import { acceptTenantUser } from '../../../../storage/identity/tenant-users.js'
import { personEvent } from '../../../platform/people/person-events.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { shownName } from '../../../domain/shown-names.js'
import { expiredLink, type OpenLink, readLink } from '../expired-link.js'
import { type Accepted, answered, orFirst } from '../repeated-form.js'
import { openFirstSession } from '../sessions/open-session.js'
import { choosePassword } from './choose-password.js'
import { proveMailbox } from '../../../platform/people/mailbox-proof.js'
import type { PasswordRecoveryHandler } from './needs.js'
import type { InvitationShown } from './protocol.js'

/**
 * True if the account keeps its sign-in methods. If the mailbox was never verified, another person may have set them:
 * anybody can create an account for an address. Accepting verifies the mailbox, so it must not make that person's
 * password valid here.
 */
const isKnown = (ticket: TicketFound) => ticket.emailVerified && ticket.hasKey

function shownOf({ ticket, tenant }: OpenLink): InvitationShown {
  const { email, displayName, expiresAt } = ticket
  return { tenant, email, displayName, isKnown: isKnown(ticket), expiresAt }
}

export const showInvitation: PasswordRecoveryHandler<'showInvitation'> = async (
  tools,
  { token },
  context,
) => {
  const link = await readLink(tools, 'invitation', token, context)
  return link.tag === 'gone' ? link : { tag: 'page', ...shownOf(link) }
}

export const acceptInvitation: PasswordRecoveryHandler<'acceptInvitation'> = async (
  tools,
  message,
  context,
) => {
  const outcome = await acceptOnce(tools, message, context)
  return orFirst(tools, message, outcome, context)
}

const acceptOnce: PasswordRecoveryHandler<'acceptInvitation'> = async (tools, message, context) => {
  const { token, password, visitor } = message
  const link = await readLink(tools, 'invitation', token, context)
  if (link.tag === 'gone') return link
  const displayName = shownName(message.displayName)
  const shown = { ...shownOf(link), displayName }
  let phc: string | null = null
  if (!shown.isKnown) {
    const chosen = await choosePassword(tools.passwords, password, shown.email, context)
    if (chosen.tag === 'busy') return chosen
    if (chosen.tag !== 'hashed') return { ...chosen, ...shown }
    phc = chosen.phc
  }
  const now = tools.clock.now()
  const hash = sha256(token)
  // The account is global, the membership belongs to the tenant.
  return tools.database.system(async (tx) => {
    const used = await useTicket(tx, 'invitation', hash, now)
    if (used === undefined) return expiredLink(tx, 'invitation', hash)
    const { tenantId, tenantSettings, accountId } = used
    // First: an invitation that was withdrawn concurrently must have no effect.
    const user = await acceptTenantUser(tx, tenantId, accountId, now)
    if (user === undefined) return expiredLink(tx, 'invitation', hash)
    const { sub } = user
    const { address } = visitor
    const how = 'invitation'
    const proof = { accountId, how, inOwnSession: false, tenantId, sub, address } as const
    const proved = await proveMailbox(tx, tools, proof, now, context)
    const isFirst =
      phc !== null &&
      (proved !== 'known' || !isKnown(used)) &&
      (await setFirstPassword(tx, accountId, phc, displayName, now))
    const { requestId } = context
    const type = 'tenant_user.activated'
    const activated = { tenantId, sub, sessionId: null, requestId, type } as const
    appendEvents(tx, [personEvent(tools.random, activated, now)])
    const done = (answer: Accepted) => answered(tx, tools, message, tenantId, answer)
    if (!isFirst) return done({ tag: 'sign_in', location: `/auth/login?tenant_id=${tenantId}` })
    const person = { tenantId, tenantSettings, accountId, sub }
    const session = await openFirstSession(tx, tools, { ...person, visitor }, now, context)
    return done({ tag: 'accepted', token: session, location: '/auth/account' })
  }, context)
}
