/**
 * Operator invites. The form accepts any address and responds the same whether or not it has an account. The invitation
 * message goes to the address, and accepting it proves the mailbox. Under a reserved name (RFC 2606, RFC 6761) no
 * mailbox exists, so an account of such an address is created directly.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  findAccountByEmail,
  insertAccount,
  insertAccountWithoutMailbox,
  setFirstPassword,
} from '../../../storage/identity/accounts.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import {
  findInviteMessage,
  findOperatorInvite,
  type InvitePlace,
  storeInviteMessage,
  type UsedInvite,
  useInviteMessage,
  useOperatorInvite,
} from '../../../storage/identity/operator-invites.js'
import { grantOrganizationRole } from '../../../storage/identity/organizations.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { findSignInKeys } from '../../../storage/identity/sign-ins.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  activateWithRole,
  findTenantUserOfAccount,
  insertTenantUser,
} from '../../../storage/identity/tenant-users.js'
import { setAppointed } from '../organizations/appoint-person.js'
import { appendJoined } from '../organizations/join-by-invitation.js'
import { type PersonEvent, personEvent } from '../sessions/events.js'
import { sha256 } from '../sessions/flows.js'
import { choosePassword } from '../password-recovery/choose-password.js'
import { proveMailbox } from '../accounts/mailbox-proof.js'
import { isEmail } from '../../domain/email.js'
import { eventData } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { shownName } from '../../domain/shown-names.js'
import { MailShareUsed } from '../../platform/mail/mail-queue.js'
import { isReserved, isUndeliverable } from '../../platform/mail/reserved-domains.js'
import type { ByMailTools } from './by-mail.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import type { SignInProtocol, Visitor } from './protocol.js'
import { openSession } from './session.js'

const SUBJECT_BYTES = 24
const LINK_TOKEN_BYTES = 32
const ACCOUNT = '/auth/account'

type Outcome<K extends keyof SignInProtocol> = Promise<SignInProtocol[K]['reply']>
type Message<K extends keyof SignInProtocol> = SignInProtocol[K]['message']

export function inviteSteps(tools: ByMailTools) {
  const { database, clock, random, passwords, mail, mailQuota, issuer, consolePath } = tools
  /** Where a new owner continues: in the console of the tenant, otherwise on the account page. */
  const homeOf = (tenantId: string) =>
    consolePath === null ? ACCOUNT : `${consolePath}?tenant_id=${tenantId}`

  return {
    async acceptOperatorInvite(
      message: Message<'acceptOperatorInvite'>,
      context: MessageContext,
    ): Outcome<'acceptOperatorInvite'> {
      const now = clock.now()
      const tokenSha256 = sha256(message.token)
      const email = message.email.trim()
      const displayName = shownName(message.displayName)
      const known = await database.system((tx) => findOperatorInvite(tx, tokenSha256), context)
      if (known === undefined) return { tag: 'unknown_invite' }
      if (known.usedAt !== null || known.expiresAt <= now) return { tag: 'spent' }
      const { organizationName, expiresAt } = known
      const shown = { organizationName, expiresAt, email, displayName }
      if (!isEmail(email)) return { tag: 'invalid_email', ...shown }
      const hashed = await choosePassword(passwords, message.password, email, context)
      if (hashed.tag === 'busy') return hashed
      if (hashed.tag !== 'hashed') return { ...hashed, ...shown }
      const { visitor } = message
      if (isReserved(email) || isUndeliverable(email)) {
        const fresh = { email, displayName, phc: hashed.phc }
        const signedIn = await acceptDirectly(tokenSha256, fresh, visitor, context)
        if (signedIn !== null) return signedIn
      }
      try {
        const name = `invite:${hex(message.token)}:${email.toLowerCase()}`
        const quota = await mailQuota.ask(name, visitor.address)
        if (quota.tag === 'locked') return quota
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return { tag: 'busy' }
        throw error
      }
      return sendInvitation(message, { email, displayName, phc: hashed.phc }, context)
    },

    async readOperatorInviteLetter(
      { token, browserId }: Message<'readOperatorInviteLetter'>,
      context: MessageContext,
    ): Outcome<'readOperatorInviteLetter'> {
      const found = await messageOf(token, context)
      if (found === undefined) return { tag: 'spent' }
      return { tag: 'page', ...shownOf(found, browserId) }
    },

    async acceptOperatorInviteLetter(
      message: Message<'acceptOperatorInviteLetter'>,
      context: MessageContext,
    ): Outcome<'acceptOperatorInviteLetter'> {
      const { token, password, browserId, visitor } = message
      const known = await messageOf(token, context)
      if (known === undefined) return { tag: 'spent' }
      const { place, isKnown } = known
      const { email, displayName } = place.letter
      const shown = shownOf(known, browserId)
      let phc: string | null = null
      if (!isKnown && !shown.needsPassword) phc = place.letter.phc
      else if (!isKnown) {
        const chosen = await choosePassword(passwords, password, email, context)
        if (chosen.tag === 'busy') return chosen
        if (chosen.tag !== 'hashed') return { ...chosen, ...shown }
        phc = chosen.phc
      }
      const now = clock.now()
      // The account is global, the membership belongs to the tenant: all or nothing.
      const accept = async (tx: Transaction): Outcome<'acceptOperatorInviteLetter'> => {
        const used = await useInviteMessage(tx, place, hex(secretOf(token)), now)
        if (used === undefined) return { tag: 'spent' }
        const account = { id: random.uuid(), email, displayName }
        const bare = { ...account, emailVerified: false, passwordHash: null, createdAt: now }
        await insertAccount(tx, bare)
        const accountId = await findAccountByEmail(tx, place.tenantId, email)
        if (accountId === undefined) throw new Error('the account of an invite is missing')
        const invite = { ...place, ...used }
        const person = await joinAsOperator(tx, invite, { accountId, email }, context, now)
        const { address } = visitor
        const where = { tenantId: place.tenantId, sub: person.sub, address }
        const proof = { accountId, how: 'invitation', inOwnSession: false, ...where } as const
        await proveMailbox(tx, tools, proof, context, now)
        if (phc === null || !(await setFirstPassword(tx, accountId, phc, displayName, now)))
          return { tag: 'sign_in', location: signInAt(place.tenantId) }
        const session = await signIn(tx, invite, { accountId, ...person }, visitor, context, now)
        return { tag: 'accepted', token: session, location: homeOf(place.tenantId) }
      }
      try {
        return await database.system(accept, context)
      } catch (error) {
        if (error instanceof Suspended) return { tag: 'spent' }
        throw error
      }
    },
  }

  function signInAt(tenantId: string): string {
    const query = new URLSearchParams({ tenant_id: tenantId })
    if (consolePath !== null) query.set('return_to', homeOf(tenantId))
    return `/auth/login?${query}`
  }

  /** Queues the message whether or not the address has an account; five addresses at most per invite. */
  async function sendInvitation(
    message: Message<'acceptOperatorInvite'>,
    { email, displayName, phc }: { email: string; displayName: string; phc: string },
    context: MessageContext,
  ): Outcome<'acceptOperatorInvite'> {
    const now = clock.now()
    const secret = random.token(LINK_TOKEN_BYTES)
    const letter = { token: hex(secret), email, displayName, phc, browser: hex(message.browserId) }
    const key = hex(`${message.token}\n${email.toLowerCase()}`)
    const tokenSha256 = sha256(message.token)
    const place = await database.system(
      (tx) => storeInviteMessage(tx, tokenSha256, key, letter, now),
      context,
    )
    if (place === undefined) return { tag: 'spent' }
    const { tenantId, expiresAt } = place
    const {
      name: tenant,
      color,
      locale,
    } = brandingOf(tenantId, place.tenantName, place.tenantSettings)
    const link = `${issuer}/auth/invites/letters/${place.id}.${secret}`
    const sealed = await mail.seal({
      tenantId,
      to: email,
      known: true,
      invitesOwner: true,
      content: { kind: 'invitation', link, until: expiresAt },
      header: { tenant, color, locale, languages: message.languages },
      expiresAt,
    })
    try {
      // The share of an address is counted over all tenants.
      await database.system((tx) => mail.queue(tx, sealed), context)
    } catch (error) {
      if (!(error instanceof MailShareUsed)) throw error
      return { tag: 'locked', retryAfterSecs: error.retryAfterSecs }
    }
    return { tag: 'sent', email, organizationName: place.organizationName }
  }

  /** Creates an account for an address without a mailbox. Null: the address has an account in the tenant. */
  async function acceptDirectly(
    tokenSha256: Uint8Array,
    { email, displayName, phc }: { email: string; displayName: string; phc: string },
    visitor: Visitor,
    context: MessageContext,
  ) {
    const now = clock.now()
    try {
      // The invite names its tenant. Accounts are global.
      return await database.system(async (tx) => {
        const invite = await useOperatorInvite(tx, tokenSha256, now)
        if (invite === undefined) return { tag: 'spent' } as const
        const accountId = random.uuid()
        const account = { id: accountId, email, displayName, passwordHash: phc, createdAt: now }
        const { tenantId } = invite
        const isNew = await insertAccountWithoutMailbox(tx, { ...account, tenantId })
        if (!isNew) throw new AddressTaken()
        const person = await joinAsOperator(tx, invite, { accountId, email }, context, now)
        const token = await signIn(tx, invite, { accountId, ...person }, visitor, context, now)
        return { tag: 'accepted', token, location: homeOf(invite.tenantId) } as const
      }, context)
    } catch (error) {
      if (error instanceof AddressTaken) return null
      throw error
    }
  }

  /** Adds the user to the organization and its tenant. @throws Suspended */
  async function joinAsOperator(
    tx: Transaction,
    { tenantId, organizationId, role, appointedScopes }: UsedInvite,
    { accountId, email }: { readonly accountId: string; readonly email: string },
    context: MessageContext,
    now: Date,
  ): Promise<{ readonly id: string; readonly sub: string }> {
    const known = await findTenantUserOfAccount(tx, tenantId, accountId)
    const isNew = known === undefined
    let person: { readonly id: string; readonly sub: string } | undefined
    if (isNew) {
      person = { id: random.uuid(), sub: random.token(SUBJECT_BYTES) }
      const user = { ...person, tenantId, accountId, status: 'active', roles: [role] } as const
      await insertTenantUser(tx, { ...user, fixture: false, createdAt: now })
    } else person = await activateWithRole(tx, tenantId, accountId, role, now)
    if (person === undefined) throw new Suspended()
    const member = { organizationId, memberType: 'account', memberId: accountId } as const
    const memberId = await grantOrganizationRole(tx, { ...member, role, createdAt: now })
    const { id, sub } = person
    if (appointedScopes.length > 0) {
      const appointed = { tenantId, accountId, userId: id, scopes: appointedScopes }
      await setAppointed(tx, appointed, { clock, random })
    }
    const actor = { type: 'human', id: sub }
    const { requestId } = context
    if (isNew) {
      const about = { actor, resource: { type: 'tenant_user', id }, requestId }
      const data = eventData(about, { email, status: 'active', fixture: false })
      const event = { id: random.uuid(), tenantId, occurredAt: now, data }
      appendEvents(tx, [{ ...event, type: 'admin.user.created' }])
    }
    const joined = { id: memberId, organizationId, role }
    await appendJoined(tx, random, joined, { tenantId, sub, requestId }, now)
    return { id, sub }
  }

  async function signIn(
    tx: Transaction,
    { tenantId, tenantSettings }: Pick<UsedInvite, 'tenantId' | 'tenantSettings'>,
    { accountId, sub }: { readonly accountId: string; readonly sub: string },
    visitor: Visitor,
    { requestId }: MessageContext,
    now: Date,
  ): Promise<string> {
    const newSession = { tenantId, tenantSettings, accountId, pending: false, amr: ['pwd'] }
    const session = await openSession(tx, tools, newSession, visitor, now)
    const fields = { amr: ['pwd'], acr: 'aal1' }
    const base = { tenantId, sub, sessionId: session.id, requestId, fields }
    const event: PersonEvent = { ...base, type: 'auth.login.success' }
    appendEvents(tx, [personEvent(random, event, now)])
    return session.token
  }

  async function messageOf(token: string, context: MessageContext) {
    const [id = ''] = token.split('.')
    if (!isUuid(id)) return undefined
    const secret = hex(secretOf(token))
    return database.system(async (tx) => {
      const place = await findInviteMessage(tx, id, secret, clock.now())
      if (place === undefined) return undefined
      const { emailVerified, hasKey } = await findSignInKeys(tx, place.tenantId, place.letter.email)
      return { place, isKnown: emailVerified && hasKey }
    }, context)
  }
}

type OpenedMessage = {
  readonly place: InvitePlace & { readonly letter: { email: string; browser: string } }
  /** The account's address is verified and it has a sign-in method. */
  readonly isKnown: boolean
}

function shownOf({ place, isKnown }: OpenedMessage, browserId: string) {
  const { organizationName, expiresAt, letter } = place
  const needsPassword = !isKnown && letter.browser !== hex(browserId)
  return { organizationName, expiresAt, email: letter.email, isKnown, needsPassword }
}

const hex = (text: string) => Buffer.from(sha256(text)).toString('hex')

const secretOf = (token: string) => token.slice(token.indexOf('.') + 1)

/** Rolls back the use of the invite: the tenant has suspended the user. */
class Suspended extends Error {
  override readonly name = 'Suspended'
}

/** Rolls back the use of the invite: the address has an account in the tenant. */
class AddressTaken extends Error {
  override readonly name = 'AddressTaken'
}
