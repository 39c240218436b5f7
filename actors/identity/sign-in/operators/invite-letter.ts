/** The message of an operator invite. Accepting it proves the mailbox. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { soughtEmail } from '../../../domain/email.js'
import {
  findAccountByEmail,
  insertAccount,
  setFirstPassword,
} from '../../../../storage/identity/accounts.js'
import {
  findInviteMessage,
  type InviteMessage,
  type InvitePlace,
  useInviteMessage,
} from '../../../../storage/identity/operator-invites.js'
import { findSignInKeys } from '../../../../storage/identity/sign-ins.js'
import { choosePassword } from '../recovery/choose-password.js'
import { proveMailbox } from '../../../platform/people/mailbox-proof.js'
import { isUuid } from '../../../domain/ids.js'
import { hex, homeOf, joinAsOperator, Suspended } from './invite.js'
import type { SignInActorTools, SignInHandler } from '../needs.js'
import type { InviteMessageShown, SignInProtocol } from '../protocol.js'
import { type Accepted, answered, orFirst } from '../repeated-form.js'
import { openFirstSession } from '../sessions/open-session.js'

export const readOperatorInviteLetter: SignInHandler<'readOperatorInviteLetter'> = async (
  tools,
  { token, browserId },
  context,
) => {
  const found = await messageOf(tools, token, context)
  return found === undefined ? { tag: 'spent' } : { tag: 'page', ...shownOf(found, browserId) }
}

export const acceptOperatorInviteLetter: SignInHandler<'acceptOperatorInviteLetter'> = async (
  tools,
  message,
  context,
) => {
  const outcome = await acceptOnce(tools, message, context)
  return orFirst(tools, message, outcome, context)
}

const acceptOnce: SignInHandler<'acceptOperatorInviteLetter'> = async (tools, message, context) => {
  const known = await messageOf(tools, message.token, context)
  if (known === undefined) return { tag: 'spent' }
  const { place, isKnown } = known
  const { email, phc: chosenBefore } = place.letter
  const shown = shownOf(known, message.browserId)
  let phc = isKnown ? null : chosenBefore
  if (shown.needsPassword) {
    const chosen = await choosePassword(tools.passwords, message.password, email, context)
    if (chosen.tag === 'busy') return chosen
    if (chosen.tag !== 'hashed') return { ...chosen, ...shown }
    phc = chosen.phc
  }
  try {
    return await accept(tools, place, phc, message, context)
  } catch (error) {
    if (error instanceof Suspended) return { tag: 'spent' }
    throw error
  }
}

/** The account is global, the membership belongs to the tenant: all or nothing. @throws Suspended */
function accept(
  tools: SignInActorTools,
  place: OpenPlace,
  phc: string | null,
  message: SignInProtocol['acceptOperatorInviteLetter']['message'],
  context: MessageContext,
): ReturnType<SignInHandler<'acceptOperatorInviteLetter'>> {
  const { database, clock, random, consolePath } = tools
  const { token, visitor } = message
  const { tenantId, tenantSettings, letter } = place
  const { email, displayName } = letter
  const now = clock.now()
  return database.system(async (tx) => {
    const used = await useInviteMessage(tx, place, hex(secretOf(token)), now)
    if (used === undefined) return { tag: 'spent' }
    const account = { id: random.uuid(), email, displayName }
    const bare = { ...account, emailVerified: false, passwordHash: null, createdAt: now }
    await insertAccount(tx, bare)
    const accountId = await findAccountByEmail(tx, tenantId, email)
    if (accountId === undefined) throw new Error('the account of an invite is missing')
    const invite = { ...place, ...used }
    const sub = await joinAsOperator(tx, tools, { ...invite, accountId, email }, now, context)
    const { address } = visitor
    const how = 'invitation'
    const proof = { accountId, how, inOwnSession: false, tenantId, sub, address } as const
    await proveMailbox(tx, tools, proof, now, context)
    const done = (answer: Accepted) => answered(tx, tools, message, tenantId, answer)
    const home = homeOf(tools, tenantId)
    if (phc === null || !(await setFirstPassword(tx, accountId, phc, displayName, now))) {
      const query = new URLSearchParams({ tenant_id: tenantId })
      if (consolePath !== null) query.set('return_to', home)
      return done({ tag: 'sign_in', location: `/auth/login?${query}` })
    }
    const person = { tenantId, tenantSettings, accountId, sub }
    const session = await openFirstSession(tx, tools, { ...person, visitor }, now, context)
    return done({ tag: 'accepted', token: session, location: home })
  }, context)
}

type OpenPlace = InvitePlace & { readonly letter: InviteMessage }
type OpenedMessage = {
  readonly place: OpenPlace
  /** The account's address is verified and it has a sign-in method. */
  readonly isKnown: boolean
}

async function messageOf(
  { database, clock }: SignInActorTools,
  token: string,
  context: MessageContext,
): Promise<OpenedMessage | undefined> {
  const [id = ''] = token.split('.')
  if (!isUuid(id)) return undefined
  const secret = hex(secretOf(token))
  return database.system(async (tx) => {
    const found = await findInviteMessage(tx, id, secret, clock.now())
    if (found === undefined) return undefined
    const { email } = found.letter
    // A process of an older release may have stored it in letters.
    const place = { ...found, letter: { ...found.letter, email: soughtEmail(email) ?? email } }
    const { emailVerified, hasKey } = await findSignInKeys(tx, place.tenantId, place.letter.email)
    return { place, isKnown: emailVerified && hasKey }
  }, context)
}

function shownOf({ place, isKnown }: OpenedMessage, browserId: string): InviteMessageShown {
  const { organizationName, expiresAt, letter } = place
  const needsPassword = !isKnown && letter.browser !== hex(browserId)
  return { organizationName, expiresAt, email: letter.email, isKnown, needsPassword }
}

const secretOf = (token: string) => token.slice(token.indexOf('.') + 1)
