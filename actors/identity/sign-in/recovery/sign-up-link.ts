/** The link of a sign-up: its page, and the account that it creates. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Email } from '../../../domain/email.js'
import {
  findAccountByEmail,
  insertAccount,
  setFirstPassword,
} from '../../../../storage/identity/accounts.js'
import {
  findSignInKeys,
  findSignUpStanding,
  recordSignIn,
} from '../../../../storage/identity/sign-ins.js'
import {
  acceptTenantUser,
  findTenantUserOfAccount,
  findTenantUserOfAccountSub,
} from '../../../../storage/identity/tenant-users.js'
import {
  findSignUpTicket,
  type SignUpTicket,
  useSignUpTicket,
} from '../../../../storage/identity/ways/mail-tickets.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { shownName } from '../../../domain/shown-names.js'
import { brandingOf, signUpOf } from '../../../domain/tenants/branding.js'
import { proveMailbox } from '../../../platform/people/mailbox-proof.js'
import { personEvent } from '../../../platform/people/person-events.js'
import { isSameHash, sha256 } from '../../../domain/secret-hashes.js'
import { expiredLink, readExpiredLink } from '../expired-link.js'
import { readProgress } from '../flow/progress.js'
import { becomeTenantUser } from '../joining.js'
import { type Accepted, answered, orFirst } from '../repeated-form.js'
import { openFirstSession } from '../sessions/open-session.js'
import { choosePassword } from './choose-password.js'
import type { PasswordRecoveryHandler, PasswordRecoveryTools } from './needs.js'
import type { PasswordRecoveryProtocol, SignUpLinkShown } from './protocol.js'
import { isSignUpOpen, mayJoin } from './sign-up.js'

/** The link leads nowhere: the user is suspended or was removed. Rolls back its use. */
class Refused extends Error {
  override readonly name = 'Refused'
}

export const showSignUpLink: PasswordRecoveryHandler<'showSignUpLink'> = async (
  tools,
  { token, flow },
  context,
) => {
  const hash = sha256(token)
  const found = await readSignUpLink(tools, hash, context)
  return found === undefined
    ? readExpiredLink(tools.database, 'sign_up', hash, context)
    : { tag: 'page', ...found.shown, flow }
}

export const finishSignUp: PasswordRecoveryHandler<'finishSignUp'> = async (
  tools,
  message,
  context,
) => {
  const outcome = await finishOnce(tools, message, context)
  return orFirst(tools, message, outcome, context)
}

const finishOnce: PasswordRecoveryHandler<'finishSignUp'> = async (tools, message, context) => {
  const hash = sha256(message.token)
  const found = await readSignUpLink(tools, hash, context)
  if (found === undefined) return readExpiredLink(tools.database, 'sign_up', hash, context)
  const { flow } = message
  const shown = { ...found.shown, displayName: shownName(message.displayName), flow }
  let phc: string | null = null
  if (!shown.isKnown) {
    const chosen = await choosePassword(tools.passwords, message.password, shown.email, context)
    if (chosen.tag === 'busy') return chosen
    if (chosen.tag !== 'hashed') return { ...chosen, ...shown }
    phc = chosen.phc
  }
  const isAlive = await isFlowAlive(tools, found.ticket, message, context)
  try {
    return await createAccount(tools, { message, shown, phc, isAlive }, context)
  } catch (error) {
    if (error instanceof Refused) return { tag: 'gone', tenant: shown.tenant }
    throw error
  }
}

/** The link and its page. Undefined: it cannot be used. */
async function readSignUpLink(
  tools: PasswordRecoveryTools,
  hash: Uint8Array,
  context: MessageContext,
): Promise<
  { readonly ticket: SignUpTicket; readonly shown: Omit<SignUpLinkShown, 'flow'> } | undefined
> {
  // The tenant of a link is read from its row.
  return tools.database.system(async (tx) => {
    const ticket = await findSignUpTicket(tx, hash, tools.clock.now())
    if (ticket === undefined || !isOffered(tools, ticket)) return undefined
    const { tenantId, tenantName, tenantSettings, email } = ticket
    if (!mayJoin(await findSignUpStanding(tx, tenantId, email))) return undefined
    const { emailVerified, hasKey } = await findSignInKeys(tx, tenantId, email)
    const tenant = brandingOf(tenantId, tenantName, tenantSettings)
    const isKnown = emailVerified && hasKey
    return { ticket, shown: { tenant, email, displayName: '', isKnown } }
  }, context)
}

const isOffered = (tools: PasswordRecoveryTools, { controlPlane, tenantSettings }: SignUpTicket) =>
  !controlPlane && isSignUpOpen(tools, signUpOf(tenantSettings))

/** True if this browser requested the link in this flow, which has not ended. */
async function isFlowAlive(
  tools: PasswordRecoveryTools,
  { browserSha256, flowSha256 }: SignUpTicket,
  { flow, browserId, visitor }: PasswordRecoveryProtocol['finishSignUp']['message'],
  context: MessageContext,
): Promise<boolean> {
  const isSameBrowser = isSameHash(browserSha256, sha256(browserId))
  if (!isSameBrowser || !isSameHash(flowSha256, sha256(flow))) return false
  return (await readProgress(tools, flow, visitor.token, context)) !== undefined
}

type NewAccount = {
  readonly message: PasswordRecoveryProtocol['finishSignUp']['message']
  readonly shown: SignUpLinkShown
  /** Null: the account keeps its sign-in methods. */
  readonly phc: string | null
  readonly isAlive: boolean
}

/** The account is global, the membership belongs to the tenant: all or nothing. @throws Refused */
function createAccount(
  tools: PasswordRecoveryTools,
  { message, shown, phc, isAlive }: NewAccount,
  context: MessageContext,
): ReturnType<PasswordRecoveryHandler<'finishSignUp'>> {
  const { database, clock, random } = tools
  const { token, flow, visitor } = message
  const { displayName } = shown
  const hash = sha256(token)
  const now = clock.now()
  return database.system(async (tx) => {
    const used = await useSignUpTicket(tx, hash, now)
    if (used === undefined) return expiredLink(tx, 'sign_up', hash)
    if (!isOffered(tools, used)) throw new Refused()
    const { tenantId, tenantSettings, email } = used
    const account = { id: random.uuid(), email, displayName, createdAt: now }
    await insertAccount(tx, { ...account, emailVerified: false, passwordHash: null })
    const standing = await findSignUpStanding(tx, tenantId, email)
    if (standing.accountActive !== true) throw new Refused()
    const accountId = await findAccountByEmail(tx, tenantId, email)
    if (accountId === undefined) throw new Error('the account of a sign-up is missing')
    const { id, sub } = await join(tx, tools, { tenantId, accountId, email }, now, context)
    const { address } = visitor
    const how = 'sign_up'
    const proof = { accountId, how, inOwnSession: false, tenantId, sub, address } as const
    const proved = await proveMailbox(tx, tools, proof, now, context)
    const isFirst =
      phc !== null &&
      (proved !== 'known' || !shown.isKnown) &&
      (await setFirstPassword(tx, accountId, phc, displayName, now))
    const done = (answer: Accepted) => answered(tx, tools, message, tenantId, answer)
    if (!isFirst) {
      const query = isAlive ? `flow=${flow}` : `tenant_id=${tenantId}`
      return done({ tag: 'sign_in', location: `/auth/login?${query}` })
    }
    await recordSignIn(tx, tenantId, id, now)
    const person = { tenantId, tenantSettings, accountId, sub }
    const session = await openFirstSession(tx, tools, { ...person, visitor }, now, context)
    const location = isAlive ? `/auth/login?flow=${flow}` : '/auth/account'
    return done({ tag: 'accepted', token: session, location })
  }, context)
}

/** Makes the account a user of the tenant. @throws Refused for a user who is one, is suspended or was removed. */
async function join(
  tx: Transaction,
  { random }: PasswordRecoveryTools,
  { tenantId, accountId, email }: { tenantId: string; accountId: string; email: Email },
  now: Date,
  context: MessageContext,
): Promise<{ readonly id: string; readonly sub: string }> {
  const known = await findTenantUserOfAccount(tx, tenantId, accountId)
  if (known === undefined)
    return becomeTenantUser(tx, random, { tenantId, accountId, email, roles: [] }, now, context)
  if (known.status !== 'invited') throw new Refused()
  await acceptTenantUser(tx, tenantId, accountId, now)
  const sub = await findTenantUserOfAccountSub(tx, tenantId, accountId)
  if (sub === undefined) throw new Error('the user of a sign-up is missing')
  const { requestId } = context
  const type = 'tenant_user.activated'
  const event = { tenantId, sub, sessionId: null, requestId, type } as const
  appendEvents(tx, [personEvent(random, event, now)])
  return { id: known.id, sub }
}
