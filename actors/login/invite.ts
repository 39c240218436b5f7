/** Accepting an operator invite: an account with a password, and a place in the organization. */
import type { Turn } from '../../runtime/kernel/actor.js'
import { insertAccount } from '../../storage/accounts.js'
import { findOperatorInvite, useOperatorInvite } from '../../storage/operator-invites.js'
import { insertOrganizationMember } from '../../storage/organizations.js'
import { appendEvents } from '../../storage/outbox.js'
import { insertTenantUser } from '../../storage/tenant-users.js'
import { type Doing, personEvent } from '../browser-sessions/events.js'
import { sha256 } from '../browser-sessions/flows.js'
import { choosePassword } from '../credentials/choosing.js'
import { isEmail } from '../domain/email.js'
import { shownName } from '../domain/shown-names.js'
import { eventData } from '../domain/events.js'
import type { LoginTools } from './flow.js'
import type { AcceptInvite, InviteAccepted, InviteFault, InviteRefused } from './protocol.js'
import { openSession } from './session.js'

const SUBJECT_BYTES = 24

export function inviteStep(tools: LoginTools) {
  const { database, clock, random, passwords } = tools

  return async (
    message: AcceptInvite,
    turn: Turn,
  ): Promise<InviteAccepted | InviteRefused | InviteFault | { tag: 'busy' }> => {
    const now = clock.now()
    const tokenSha256 = sha256(message.token)
    const email = message.email.trim()
    const displayName = shownName(message.displayName)
    const known = await database.system((tx) => findOperatorInvite(tx, tokenSha256), turn)
    if (known === undefined) return { tag: 'unknown_invite' }
    if (known.usedAt !== null || known.expiresAt <= now) return { tag: 'spent' }
    const shown = {
      organizationName: known.organizationName,
      expiresAt: known.expiresAt,
      email,
      displayName,
    }
    if (!isEmail(email)) return { tag: 'invalid_email', ...shown }
    const hashed = await choosePassword(passwords, message.password, email, turn)
    if (hashed.tag === 'busy') return hashed
    if (hashed.tag !== 'hashed') return { ...hashed, ...shown }

    try {
      // The invite names its tenant; the account belongs to none.
      return await database.system(async (tx) => {
        const invite = await useOperatorInvite(tx, tokenSha256, now)
        if (invite === undefined) return { tag: 'spent' }
        const { tenantId, organizationId, role } = invite
        const accountId = random.uuid()
        const isNew = await insertAccount(tx, {
          id: accountId,
          email,
          emailVerified: false,
          displayName,
          passwordHash: hashed.phc,
          createdAt: now,
        })
        if (!isNew) throw new AddressTaken()
        const member = { organizationId, memberType: 'account', memberId: accountId } as const
        await insertOrganizationMember(tx, { ...member, role, createdAt: now })
        const id = random.uuid()
        const sub = random.token(SUBJECT_BYTES)
        await insertTenantUser(tx, {
          tenantId,
          id,
          accountId,
          sub,
          status: 'active',
          roles: [role],
          fixture: false,
          createdAt: now,
        })
        const session = await openSession(
          tx,
          tools,
          {
            tenantId,
            tenantSettings: invite.tenantSettings,
            accountId,
            pending: false,
            amr: ['pwd'],
          },
          message.visitor,
          now,
        )
        const person = { type: 'human', id: sub }
        const about = (type: string, about: string) =>
          eventData({ actor: person, resource: { type, id: about }, requestId: turn.requestId }, {})
        const told = { tenantId, occurredAt: now }
        const doing: Doing = {
          tenantId,
          type: 'auth.login.success',
          sub,
          sessionId: session.id,
          requestId: turn.requestId,
          fields: { amr: ['pwd'], acr: 'aal1' },
        }
        appendEvents(tx, [
          {
            ...told,
            id: random.uuid(),
            type: 'admin.user.created',
            data: { ...about('tenant_user', id), email, status: 'active', fixture: false },
          },
          {
            ...told,
            id: random.uuid(),
            type: 'org.member.added',
            data: { ...about('organization', organizationId), member: person, role },
          },
          personEvent(random, doing, now),
        ])
        return { tag: 'accepted', token: session.token, location: '/auth/account' }
      }, turn)
    } catch (error) {
      if (error instanceof AddressTaken) return { tag: 'email_taken', ...shown }
      throw error
    }
  }
}

/** Thrown to take back the use of the invite. */
class AddressTaken extends Error {
  override readonly name = 'AddressTaken'
}
