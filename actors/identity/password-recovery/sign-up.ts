/**
 * Sign-up: an address gets a link, and the link leads to the page that creates the account. The account exists only
 * after the mailbox is proved, so no one can prepare an account for another person's address. The response to an
 * address is the same whether or not it has an account: a user of the tenant gets a mail that says so.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  findAccountByEmail,
  insertAccount,
  setFirstPassword,
} from '../../../storage/identity/accounts.js'
import {
  findSignInKeys,
  findSignUpStanding,
  recordSignIn,
  type SignUpStanding,
} from '../../../storage/identity/sign-ins.js'
import {
  acceptTenantUser,
  findTenantUserOfAccount,
  findTenantUserOfAccountSub,
  insertTenantUser,
} from '../../../storage/identity/tenant-users.js'
import {
  findSignUpTicket,
  type SignUpTicket,
  useSignUpTicket,
} from '../../../storage/operations/mail-tickets.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import { appendEvents, type NewEvent } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { isEmail } from '../../domain/email.js'
import { eventData } from '../../domain/events.js'
import { shownName } from '../../domain/shown-names.js'
import { brandingOf, signUpOf } from '../../domain/tenants/branding.js'
import type { MessageContent } from '../../platform/mail/render.js'
import { sendWithTicket } from '../../platform/mail/with-ticket.js'
import { proveMailbox } from '../accounts/mailbox-proof.js'
import { personEvent } from '../sessions/events.js'
import { sha256 } from '../sessions/flows.js'
import { expiredLink, readExpiredLink } from '../sign-in/expired-link.js'
import { beginAccountFlow, flowPage, progressIn, readProgress } from '../sign-in/flow.js'
import type { FlowPage } from '../sign-in/protocol.js'
import { openSession } from '../sign-in/session.js'
import { addressAt, tenantHostOf } from '../sign-in/tenant-host.js'
import { choosePassword } from './choose-password.js'
import { ABSENT, BUSY, LINK_TOKEN_BYTES, type PasswordRecoveryTools } from './needs.js'
import type { PasswordRecoveryProtocol, SignUpLinkShown, SignUpShown } from './protocol.js'

const SUBJECT_BYTES = 24

type Message<K extends keyof PasswordRecoveryProtocol> = PasswordRecoveryProtocol[K]['message']
type Outcome<K extends keyof PasswordRecoveryProtocol> = Promise<
  PasswordRecoveryProtocol[K]['reply']
>

/** The link leads nowhere: the user is suspended or was removed. Rolls back its use. */
class Refused extends Error {
  override readonly name = 'Refused'
}

export function signUpSteps(tools: PasswordRecoveryTools) {
  const { database, clock, random, passwords, mail, quota, selfService, issuer, gate, tenants } =
    tools

  const isOpen = (signUp: boolean | null) =>
    selfService.enabled && (signUp ?? selfService.sign_up_default)
  const isOffered = ({ controlPlane, tenantSettings }: SignUpTicket) =>
    !controlPlane && isOpen(signUpOf(tenantSettings))
  const closed = ({ tenant, uiLocales }: FlowPage) =>
    ({ tag: 'closed', tenant, uiLocales }) as const
  const expired = (hash: Uint8Array, context: MessageContext) =>
    readExpiredLink(database, 'sign_up', hash, context)

  return {
    async showSignUp(
      { flow, visitor, ...wanted }: Message<'showSignUp'>,
      context: MessageContext,
    ): Outcome<'showSignUp'> {
      if (!selfService.enabled) return ABSENT
      const token = flow ?? (await beginAccountFlow(tools, wanted, context))
      if (token === null) return { tag: 'unknown_tenant' }
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const page = flowPage(token, progress.flow)
      if (!isOpen(page.signUp)) return closed(page)
      const email = progress.flow.loginHint ?? ''
      return { tag: 'page', ...page, email, captcha: gate.widget() }
    },

    async requestSignUp(
      message: Message<'requestSignUp'>,
      context: MessageContext,
    ): Outcome<'requestSignUp'> {
      if (!selfService.enabled) return ABSENT
      const { flow: flowToken, visitor, languages, browserId, host } = message
      const progress = await progressIn(tools, flowToken, visitor.token, context)
      if ('tag' in progress) return progress
      const { flow } = progress
      const { tenantId } = flow
      const email = message.email.trim()
      const page = flowPage(flowToken, flow)
      if (!isOpen(page.signUp)) return closed(page)
      const shown: SignUpShown = { ...page, email, captcha: gate.widget() }
      if (!isEmail(email)) return { tag: 'invalid_email', ...shown }
      try {
        const judged = await gate.judge(message.captcha, visitor.address)
        if (judged.tag === 'captcha') return { ...shown, tag: 'captcha' }
        if (judged.tag === 'unavailable') return { tag: 'captcha_unavailable' }
        if (judged.tag === 'throttled') return { ...judged, tag: 'captcha_throttled' }
        const name = `sign-up:${tenantId}:${email.toLowerCase()}`
        const allowed = await quota.ask(name, visitor.address)
        if (allowed.tag === 'locked') return { ...shown, ...allowed }
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
      const standing = await database.system(
        (tx) => findSignUpStanding(tx, tenantId, email),
        context,
      )
      const now = clock.now()
      const expiresAt = new Date(now.getTime() + selfService.sign_up_ttl_secs * 1000)
      const token = random.token(LINK_TOKEN_BYTES)
      const address = addressAt(issuer, await tenantHostOf(tenants, tenantId, host, context))
      const isUser = isUserOf(standing)
      const content: MessageContent = isUser
        ? { kind: 'sign_up_known', link: `${address}/auth/login?tenant_id=${tenantId}` }
        : {
            kind: 'sign_up',
            link: `${address}/auth/register/${token}?flow=${flowToken}`,
            until: expiresAt,
          }
      const { name: tenant, color, locale } = page.tenant
      const sealedMail = await mail.seal({
        tenantId,
        to: email,
        known: isUser || mayJoin(standing),
        content,
        header: { tenant, color, locale, uiLocales: flow.uiLocales, languages },
        expiresAt,
      })
      const ticket = {
        tenantId,
        purpose: 'sign_up',
        accountId: null,
        email,
        // The link of a user's ticket is not sent, so it cannot be used.
        linkSha256: sha256(token),
        flowSha256: sha256(flowToken),
        browserSha256: sha256(browserId),
        createdAt: now,
        expiresAt,
      } as const
      await database.tenant(
        tenantId,
        (tx) => sendWithTicket(tx, tools, ticket, sealedMail),
        context,
      )
      return { tag: 'requested', ...page, email }
    },

    async showSignUpLink(
      { token, flow }: Message<'showSignUpLink'>,
      context: MessageContext,
    ): Outcome<'showSignUpLink'> {
      const hash = sha256(token)
      const found = await readLink(hash, context)
      return found === undefined ? expired(hash, context) : { tag: 'page', ...found.shown, flow }
    },

    async finishSignUp(
      message: Message<'finishSignUp'>,
      context: MessageContext,
    ): Outcome<'finishSignUp'> {
      const { token, flow, password, visitor, browserId } = message
      const hash = sha256(token)
      const found = await readLink(hash, context)
      if (found === undefined) return expired(hash, context)
      const displayName = shownName(message.displayName)
      const shown = { ...found.shown, displayName, flow }
      let phc: string | null = null
      if (!shown.isKnown) {
        const chosen = await choosePassword(passwords, password, shown.email, context)
        if (chosen.tag === 'busy') return chosen
        if (chosen.tag !== 'hashed') return { ...chosen, ...shown }
        phc = chosen.phc
      }
      const isSameBrowser = same(found.ticket.browserSha256, sha256(browserId))
      const isItsFlow = isSameBrowser && same(found.ticket.flowSha256, sha256(flow))
      const isAlive =
        isItsFlow && (await readProgress(tools, flow, visitor.token, context)) !== undefined
      const now = clock.now()
      try {
        // The account is global, the membership belongs to the tenant: all or nothing.
        return await database.system(async (tx) => {
          const used = await useSignUpTicket(tx, hash, now)
          if (used === undefined) return expiredLink(tx, 'sign_up', hash)
          if (!isOffered(used)) throw new Refused()
          const { tenantId, tenantSettings, email } = used
          const account = { id: random.uuid(), email, displayName, createdAt: now }
          await insertAccount(tx, { ...account, emailVerified: false, passwordHash: null })
          const standing = await findSignUpStanding(tx, tenantId, email)
          if (standing.accountActive !== true) throw new Refused()
          const accountId = await findAccountByEmail(tx, tenantId, email)
          if (accountId === undefined) throw new Error('the account of a sign-up is missing')
          const { id, sub, events } = await join(tx, { tenantId, accountId, email }, context, now)
          const { address } = visitor
          const how = 'sign_up'
          const proof = { accountId, how, inOwnSession: false, tenantId, sub, address } as const
          const proved = await proveMailbox(tx, tools, proof, context, now)
          const isFirst =
            phc !== null &&
            (proved !== 'known' || !shown.isKnown) &&
            (await setFirstPassword(tx, accountId, phc, displayName, now))
          if (!isFirst) {
            appendEvents(tx, events)
            return { tag: 'sign_in', location: onward(isAlive, flow, tenantId) } as const
          }
          const newSession = { tenantId, tenantSettings, accountId, pending: false, amr: ['pwd'] }
          const session = await openSession(tx, tools, newSession, visitor, now)
          await recordSignIn(tx, tenantId, id, now)
          const fields = { amr: ['pwd'], acr: 'aal1' }
          const base = { tenantId, sub, sessionId: session.id, requestId: context.requestId }
          const event = { ...base, type: 'auth.login.success', fields } as const
          appendEvents(tx, [...events, personEvent(random, event, now)])
          const location = isAlive ? `/auth/login?flow=${flow}` : '/auth/account'
          return { tag: 'accepted', token: session.token, location } as const
        }, context)
      } catch (error) {
        if (error instanceof Refused) return { tag: 'gone', tenant: shown.tenant }
        throw error
      }
    },
  }

  /** The link and its page. Undefined: it cannot be used. */
  async function readLink(
    hash: Uint8Array,
    context: MessageContext,
  ): Promise<
    { readonly ticket: SignUpTicket; readonly shown: Omit<SignUpLinkShown, 'flow'> } | undefined
  > {
    // The tenant of a link is read from its row.
    return database.system(async (tx) => {
      const ticket = await findSignUpTicket(tx, hash, clock.now())
      if (ticket === undefined || !isOffered(ticket)) return undefined
      const { tenantId, tenantName, tenantSettings, email } = ticket
      if (!mayJoin(await findSignUpStanding(tx, tenantId, email))) return undefined
      const { emailVerified, hasKey } = await findSignInKeys(tx, tenantId, email)
      const tenant = brandingOf(tenantId, tenantName, tenantSettings)
      const isKnown = emailVerified && hasKey
      return { ticket, shown: { tenant, email, displayName: '', isKnown } }
    }, context)
  }

  /** Makes the account a user of the tenant. @throws Refused for a user who is one, is suspended or was removed. */
  async function join(
    tx: Transaction,
    { tenantId, accountId, email }: { tenantId: string; accountId: string; email: string },
    { requestId }: MessageContext,
    now: Date,
  ): Promise<{ readonly id: string; readonly sub: string; readonly events: readonly NewEvent[] }> {
    const known = await findTenantUserOfAccount(tx, tenantId, accountId)
    if (known !== undefined) {
      if (known.status !== 'invited') throw new Refused()
      await acceptTenantUser(tx, tenantId, accountId, now)
      const sub = await findTenantUserOfAccountSub(tx, tenantId, accountId)
      if (sub === undefined) throw new Error('the user of a sign-up is missing')
      const event = {
        tenantId,
        sub,
        sessionId: null,
        requestId,
        type: 'tenant_user.activated',
      } as const
      return { id: known.id, sub, events: [personEvent(random, event, now)] }
    }
    const id = random.uuid()
    const sub = random.token(SUBJECT_BYTES)
    const user = { id, sub, tenantId, accountId, status: 'active', roles: [] } as const
    await insertTenantUser(tx, { ...user, fixture: false, createdAt: now })
    const about = { actor: { type: 'human', id: sub }, resource: { type: 'tenant_user', id } }
    const fields = { email, status: 'active', fixture: false }
    const data = eventData({ ...about, requestId }, fields)
    const created = { tenantId, occurredAt: now, type: 'admin.user.created', data } as const
    return { id, sub, events: [{ id: random.uuid(), ...created }] }
  }
}

/** The address belongs to a user who can sign in. */
const isUserOf = ({ accountActive, userStatus }: SignUpStanding): boolean =>
  accountActive === true && (userStatus === 'active' || userStatus === 'pre_provisioned')

/** The address has no account, or an active one that is not yet a user of the tenant. */
const mayJoin = ({ accountActive, userStatus }: SignUpStanding): boolean =>
  accountActive !== false && (userStatus === null || userStatus === 'invited')

const same = (a: Uint8Array | null, b: Uint8Array) => a !== null && Buffer.compare(a, b) === 0

const onward = (isAlive: boolean, flow: string, tenantId: string): string =>
  isAlive ? `/auth/login?flow=${flow}` : `/auth/login?tenant_id=${tenantId}`
