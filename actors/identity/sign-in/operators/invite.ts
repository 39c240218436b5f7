/**
 * Operator invites. The form accepts any address and responds the same whether or not it has an account. The invitation
 * message goes to the address, and accepting it proves the mailbox (invite-letter.ts). Under a reserved name (RFC 2606,
 * RFC 6761) no mailbox exists, so an account of such an address is created directly.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { insertAccountWithoutMailbox } from '../../../../storage/identity/accounts.js'
import {
  findOperatorInvite,
  keepInviteLetter,
  type UsedInvite,
  useOperatorInvite,
} from '../../../../storage/identity/operator-invites.js'
import { grantOrganizationRole } from '../../../../storage/identity/organizations.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import {
  activateWithRole,
  findTenantUserOfAccount,
} from '../../../../storage/identity/tenant-users.js'
import { setAppointed } from './appoint-person.js'
import { appendJoined, becomeTenantUser } from '../joining.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { choosePassword } from '../recovery/choose-password.js'
import { type Email, parseEmail } from '../../../domain/email.js'
import { shownName } from '../../../domain/shown-names.js'
import { MailShareUsed } from '../../../platform/mail/mail-queue.js'
import { isReserved, isUndeliverable } from '../../../platform/mail/reserved-domains.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import { orBusy } from '../limits/lockout.js'
import type { SignInActorTools, SignInHandler } from '../needs.js'
import type { AcceptInvite } from '../protocol.js'
import { answered, orFirst } from '../repeated-form.js'
import { openFirstSession } from '../sessions/open-session.js'

const LINK_TOKEN_BYTES = 32
const ACCOUNT = '/auth/account'

export const acceptOperatorInvite: SignInHandler<'acceptOperatorInvite'> = async (
  tools,
  message,
  context,
) => {
  const outcome = await acceptOnce(tools, message, context)
  return orFirst(tools, message, outcome, context)
}

const acceptOnce: SignInHandler<'acceptOperatorInvite'> = async (tools, message, context) => {
  const { database, clock, passwords, mailQuota } = tools
  const tokenSha256 = sha256(message.token)
  const typed = message.email.trim()
  const email = parseEmail(typed)
  const displayName = shownName(message.displayName)
  const known = await database.system((tx) => findOperatorInvite(tx, tokenSha256), context)
  if (known === undefined) return { tag: 'unknown_invite' }
  if (known.usedAt !== null || known.expiresAt <= clock.now()) return { tag: 'spent' }
  const { organizationName, expiresAt } = known
  const shown = { organizationName, expiresAt, email: typed, displayName }
  if (email === undefined) return { tag: 'invalid_email', ...shown }
  const hashed = await choosePassword(passwords, message.password, email, context)
  if (hashed.tag === 'busy') return hashed
  if (hashed.tag !== 'hashed') return { ...hashed, ...shown }
  const chosen = { email, displayName, phc: hashed.phc }
  if (isReserved(email) || isUndeliverable(email)) {
    const signedIn = await acceptDirectly(tools, message, chosen, context)
    if (signedIn !== null) return signedIn
  }
  const name = `invite:${hex(message.token)}:${email.toLowerCase()}`
  const quota = await orBusy(() => mailQuota.ask(name, message.visitor.address))
  return quota.tag === 'open' ? sendInvitation(tools, message, chosen, context) : quota
}

type Chosen = { readonly email: Email; readonly displayName: string; readonly phc: string }

/** Queues the message whether or not the address has an account; five addresses at most per invite. */
async function sendInvitation(
  { database, clock, random, mail, issuer }: SignInActorTools,
  message: AcceptInvite,
  { email, displayName, phc }: Chosen,
  context: MessageContext,
): ReturnType<SignInHandler<'acceptOperatorInvite'>> {
  const secret = random.token(LINK_TOKEN_BYTES)
  const letter = { token: hex(secret), email, displayName, phc, browser: hex(message.browserId) }
  const key = hex(`${message.token}\n${email.toLowerCase()}`)
  const tokenSha256 = sha256(message.token)
  const place = await database.system(
    (tx) => keepInviteLetter(tx, tokenSha256, key, letter, clock.now()),
    context,
  )
  if (place === undefined) return { tag: 'spent' }
  const { tenantId, tenantName, tenantSettings, expiresAt, organizationName } = place
  const { name: tenant, color, locale } = brandingOf(tenantId, tenantName, tenantSettings)
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
  return { tag: 'sent', email, organizationName }
}

/** Creates an account for an address without a mailbox. Null: the address has an account in the tenant. */
async function acceptDirectly(
  tools: SignInActorTools,
  message: AcceptInvite,
  { email, displayName, phc }: Chosen,
  context: MessageContext,
) {
  const { database, clock, random } = tools
  const now = clock.now()
  try {
    // The invite names its tenant. Accounts are global.
    return await database.system(async (tx) => {
      const invite = await useOperatorInvite(tx, sha256(message.token), now)
      if (invite === undefined) return { tag: 'spent' } as const
      const id = random.uuid()
      const account = { id, email, displayName, passwordHash: phc, createdAt: now }
      const { tenantId, tenantSettings } = invite
      const isNew = await insertAccountWithoutMailbox(tx, { ...account, tenantId })
      if (!isNew) throw new AddressTaken()
      const sub = await joinAsOperator(tx, tools, { ...invite, accountId: id, email }, now, context)
      const { visitor } = message
      const person = { tenantId, tenantSettings, accountId: id, sub, visitor }
      const token = await openFirstSession(tx, tools, person, now, context)
      const accepted = { tag: 'accepted', token, location: homeOf(tools, tenantId) } as const
      return answered(tx, tools, message, tenantId, accepted)
    }, context)
  } catch (error) {
    if (error instanceof AddressTaken) return null
    throw error
  }
}

/** Adds the user to the organization and its tenant. @returns its subject. @throws Suspended */
export async function joinAsOperator(
  tx: Transaction,
  { clock, random }: Pick<SignInActorTools, 'clock' | 'random'>,
  invited: UsedInvite & { readonly accountId: string; readonly email: Email },
  now: Date,
  context: MessageContext,
): Promise<string> {
  const { tenantId, organizationId, role, appointedScopes, accountId, email } = invited
  const known = await findTenantUserOfAccount(tx, tenantId, accountId)
  const newUser = { tenantId, accountId, email, roles: [role] }
  const person =
    known === undefined
      ? await becomeTenantUser(tx, random, newUser, now, context)
      : await activateWithRole(tx, tenantId, accountId, role, now)
  if (person === undefined) throw new Suspended()
  const { id: userId, sub } = person
  const member = { organizationId, memberType: 'account', memberId: accountId } as const
  const id = await grantOrganizationRole(tx, { ...member, role, createdAt: now })
  if (appointedScopes.length > 0) {
    const appointed = { tenantId, accountId, userId, scopes: appointedScopes }
    await setAppointed(tx, { clock, random }, appointed)
  }
  const { requestId } = context
  const joined = { id, organizationId, role }
  await appendJoined(tx, random, joined, { tenantId, sub, requestId }, now)
  return sub
}

/** Where a new owner continues: in the console of the tenant, otherwise on the account page. */
export const homeOf = (
  { consolePath }: Pick<SignInActorTools, 'consolePath'>,
  tenantId: string,
): string => (consolePath === null ? ACCOUNT : `${consolePath}?tenant_id=${tenantId}`)

export const hex = (text: string): string => Buffer.from(sha256(text)).toString('hex')

/** Rolls back the use of the invite: the tenant has suspended the user. */
export class Suspended extends Error {
  override readonly name = 'Suspended'
}

/** Rolls back the use of the invite: the address has an account in the tenant. */
class AddressTaken extends Error {
  override readonly name = 'AddressTaken'
}
