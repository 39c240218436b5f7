/** Accepting an invitation to a tenant: the user who controls the mailbox becomes its user. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { setFirstPassword } from '../../../storage/identity/accounts.js'
import {
  findTicket,
  type TicketFound,
  useTicket,
} from '../../../storage/operations/mail-tickets.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { acceptTenantUser } from '../../../storage/identity/tenant-users.js'
import { type PersonEvent, personEvent } from '../sessions/events.js'
import { sha256 } from '../sessions/flows.js'
import { shownName } from '../../domain/shown-names.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { expiredLink, readExpiredLink } from '../sign-in/expired-link.js'
import { openSession } from '../sign-in/session.js'
import { choosePassword } from './choose-password.js'
import { proveMailbox } from '../accounts/mailbox-proof.js'
import { type PasswordRecoveryTools } from './needs.js'
import type { PasswordRecoveryProtocol, InvitationShown } from './protocol.js'

type Message<K extends keyof PasswordRecoveryProtocol> = PasswordRecoveryProtocol[K]['message']
type Outcome<K extends keyof PasswordRecoveryProtocol> = Promise<
  PasswordRecoveryProtocol[K]['reply']
>

/**
 * True if the account keeps its sign-in methods. If the mailbox was never verified, another person may have set them:
 * anybody can create an account for an address. Accepting verifies the mailbox, so it must not make that person's
 * password valid here.
 */
const isKnown = (ticket: TicketFound) => ticket.emailVerified && ticket.hasKey

export function invitationSteps(tools: PasswordRecoveryTools) {
  const { database, clock, random, passwords } = tools

  async function shownOf(
    token: string,
    context: MessageContext,
  ): Promise<InvitationShown | undefined> {
    // The tenant of the invitation is read from its row.
    const ticket = await database.system(
      (tx) => findTicket(tx, 'invitation', sha256(token), clock.now()),
      context,
    )
    if (ticket === undefined) return undefined
    const { tenantId, tenantName, tenantSettings } = ticket
    const { email, displayName, expiresAt } = ticket
    const tenant = brandingOf(tenantId, tenantName, tenantSettings)
    return { tenant, email, displayName, isKnown: isKnown(ticket), expiresAt }
  }

  return {
    async showInvitation(message: Message<'showInvitation'>, context: MessageContext) {
      const shown = await shownOf(message.token, context)
      if (shown === undefined)
        return readExpiredLink(database, 'invitation', sha256(message.token), context)
      return { tag: 'page', ...shown } as const
    },

    async acceptInvitation(
      message: Message<'acceptInvitation'>,
      context: MessageContext,
    ): Outcome<'acceptInvitation'> {
      const { token, password, visitor } = message
      const known = await shownOf(token, context)
      if (known === undefined)
        return readExpiredLink(database, 'invitation', sha256(token), context)
      const displayName = shownName(message.displayName)
      const shown = { ...known, displayName }
      let phc: string | null = null
      if (!known.isKnown) {
        const chosen = await choosePassword(passwords, password, known.email, context)
        if (chosen.tag === 'busy') return chosen
        if (chosen.tag !== 'hashed') return { ...chosen, ...shown }
        phc = chosen.phc
      }
      const now = clock.now()
      const hash = sha256(token)
      // The account is global, the membership belongs to the tenant.
      return database.system(async (tx) => {
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
        const proved = await proveMailbox(tx, tools, proof, context, now)
        const isFirst =
          phc !== null &&
          (proved !== 'known' || !isKnown(used)) &&
          (await setFirstPassword(tx, accountId, phc, displayName, now))
        const base = { tenantId, sub: user.sub, requestId: context.requestId }
        const activated: PersonEvent = { ...base, sessionId: null, type: 'tenant_user.activated' }
        if (!isFirst) {
          append(tx, [activated], now)
          return { tag: 'sign_in', location: `/auth/login?tenant_id=${tenantId}` } as const
        }
        const newSession = { tenantId, tenantSettings, accountId, pending: false, amr: ['pwd'] }
        const session = await openSession(tx, tools, newSession, visitor, now)
        const fields = { amr: ['pwd'], acr: 'aal1' }
        const sessionId = session.id
        const signedIn: PersonEvent = { ...base, sessionId, type: 'auth.login.success', fields }
        append(tx, [activated, signedIn], now)
        return { tag: 'accepted', token: session.token, location: '/auth/account' } as const
      }, context)
    },
  }

  function append(tx: Transaction, newEvents: readonly PersonEvent[], now: Date): void {
    appendEvents(
      tx,
      newEvents.map((event) => personEvent(random, event, now)),
    )
  }
}
