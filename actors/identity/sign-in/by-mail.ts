/**
 * Sign-in by mail: a code for the page that requested it, a link to confirm in the browser that requested it, or both
 * in one message. An unknown address causes the same work and the same response: the rows are written, the message is
 * not sent.
 */
import { createHash } from 'node:crypto'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import {
  findTicket,
  type TicketFound,
  tryCode,
  useTicket,
} from '../../../storage/operations/mail-tickets.js'
import { findSignIn, type SignInRow } from '../../../storage/identity/sign-ins.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { recordSignInFailure } from '../sessions/events.js'
import { sha256 } from '../sessions/flows.js'
import { proveMailbox } from '../accounts/mailbox-proof.js'
import { isEmail } from '../../domain/email.js'
import { newUserCode, readUserCode, showUserCode } from '../../domain/user-code.js'
import type { MailQueue } from '../../platform/mail/mail-queue.js'
import { sendWithTicket } from '../../platform/mail/with-ticket.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { expiredLink, readExpiredLink } from './expired-link.js'
import {
  flowPage,
  type SignInTools,
  offersIn,
  onward,
  type Progress,
  progressIn,
  readProgress,
  upstreamsOf,
} from './flow.js'
import type { MailQuota } from './mail-quota.js'
import { openSessionInFlow } from './login-challenges.js'
import { addressAt, tenantHostOf } from './tenant-host.js'
import type {
  LinkPage,
  SignInProtocol,
  MailShown,
  RequestMail,
  SignInOffers,
  UseLink,
  Visitor,
} from './protocol.js'
import type { EmailOtpSettings, MagicLinkSettings } from './settings.js'

const LINK_TOKEN_BYTES = 32
/** RFC 8176 has no value for mail, so use the one for one-time passwords. */
const AMR = ['otp']
const ABSENT = { tag: 'absent' } as const
const BUSY = { tag: 'busy' } as const

export type ByMailTools = SignInTools & {
  readonly mail: MailQueue
  readonly mailQuota: MailQuota
  readonly offers: SignInOffers
  readonly emailOtp: EmailOtpSettings
  readonly magicLink: MagicLinkSettings
  /** `oidc.issuer_url`. */
  readonly issuer: string
  /** Path of the administration pages. Null: the deployment has none. */
  readonly consolePath: string | null
}

type Outcome<K extends keyof SignInProtocol> = Promise<SignInProtocol[K]['reply']>

export function byMailStep(tools: ByMailTools) {
  const { database, clock, random, lockout, mail, mailQuota, offers, issuer, tenants } = tools
  const { emailOtp, magicLink } = tools
  const ttlSecs = Math.min(
    emailOtp.enabled ? emailOtp.ttl_secs : Infinity,
    magicLink.enabled ? magicLink.ttl_secs : Infinity,
  )

  const expired = (hash: Uint8Array, context: MessageContext) =>
    readExpiredLink(database, 'sign_in', hash, context)

  return {
    async requestSignInMail(
      message: RequestMail,
      context: MessageContext,
    ): Outcome<'requestSignInMail'> {
      if (!offers.code && !offers.link) return ABSENT
      const { flow: token, visitor, browserId, languages, host } = message
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { flow } = progress
      const { tenantId } = flow
      const email = message.email.trim()
      const upstreams = await upstreamsOf(tools, flow, context)
      const shown = {
        ...flowPage(token, flow),
        email,
        again: false,
        offers: offersIn(offers, flow),
        upstreams,
        captcha: null,
      }
      if (!isEmail(email)) return { tag: 'invalid_email', ...shown }
      try {
        const quota = await mailQuota.ask(`${tenantId}:${email.toLowerCase()}`, visitor.address)
        if (quota.tag === 'locked') return { ...shown, ...quota }
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
      const found = await database.system((tx) => findSignIn(tx, tenantId, email), context)
      const now = clock.now()
      const expiresAt = new Date(now.getTime() + ttlSecs * 1000)
      const code = offers.code ? newUserCode((count) => random.bytes(count)) : null
      const linkToken = offers.link ? random.token(LINK_TOKEN_BYTES) : null
      const address = addressAt(issuer, await tenantHostOf(tenants, tenantId, host, context))
      const { name, color, locale } = shown.tenant
      const sealedMail = await mail.seal({
        tenantId,
        to: found?.email ?? email,
        known: found !== undefined,
        content: {
          kind: 'sign_in',
          code: code === null ? null : showUserCode(code),
          link: linkToken === null ? null : `${address}/auth/magic/${linkToken}?flow=${token}`,
          until: expiresAt,
        },
        header: { tenant: name, color, locale, uiLocales: flow.uiLocales, languages },
        expiresAt,
      })
      const ticket = {
        tenantId,
        purpose: 'sign_in',
        accountId: found?.accountId ?? null,
        email,
        linkSha256: linkToken === null ? null : sha256(linkToken),
        codeSha256: code === null ? null : codeSha256(token, code),
        flowSha256: sha256(token),
        browserSha256: sha256(browserId),
        attempts: emailOtp.max_attempts,
        createdAt: now,
        expiresAt,
      } as const
      await database.tenant(
        tenantId,
        (tx) => sendWithTicket(tx, tools, ticket, sealedMail),
        context,
      )
      return { tag: 'sent', location: `/auth/login/mail?flow=${token}` }
    },

    async showSignInMail({ flow, visitor }, context): Outcome<'showSignInMail'> {
      if (!offers.code && !offers.link) return ABSENT
      const progress = await progressIn(tools, flow, visitor.token, context)
      if ('tag' in progress) return progress
      if (progress.step !== 'login' && progress.session?.pending !== true) return onward(progress)
      return { tag: 'page', ...flowPage(flow, progress.flow), offers }
    },

    async signInWithMailCode(
      { flow: token, code: typed, visitor },
      context,
    ): Outcome<'signInWithMailCode'> {
      if (!offers.code) return ABSENT
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { flow } = progress
      const { tenantId } = flow
      const shown: MailShown = { ...flowPage(token, flow), offers }
      try {
        const name = `mail-code:${Buffer.from(sha256(token)).toString('base64url')}`
        const attempted = { name, address: visitor.address, signal: context.signal }
        const judged = await lockout.attempt(attempted, async (attempt) => {
          const code = readUserCode(typed)
          const found =
            code === null
              ? undefined
              : await database.system((tx) => spend(tx, tenantId, token, code), context)
          if (found !== undefined) {
            await attempt.succeeded()
            return found
          }
          const locked = await attempt.failed()
          const { address } = visitor
          await recordSignInFailure(
            tools,
            { tenantId, factor: 'email_otp', sub: null, locked, address },
            context,
          )
          return null
        })
        if (judged.tag === 'locked') return { ...shown, ...judged }
        const found = judged.outcome
        if (found === null) return { tag: 'wrong', ...shown }
        const proves = proofOf(progress, found, 'code', visitor, context)
        return await openSessionInFlow(
          tools,
          { flow, token, found, amr: AMR, visitor, proves },
          context,
        )
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
    },

    async showMagicLink({ token, flow }, context): Outcome<'showMagicLink'> {
      const now = clock.now()
      const hash = sha256(token)
      const ticket = await database.system((tx) => findTicket(tx, 'sign_in', hash, now), context)
      if (ticket === undefined || !isOfFlow(ticket, flow)) return expired(hash, context)
      const { tenantId, tenantName, tenantSettings } = ticket
      const page: LinkPage = { tenant: brandingOf(tenantId, tenantName, tenantSettings), flow }
      return { tag: 'page', ...page }
    },

    async signInWithMagicLink(
      { token, flow: flowToken, browserId, visitor }: UseLink,
      context,
    ): Outcome<'signInWithMagicLink'> {
      const now = clock.now()
      const hash = sha256(token)
      const progress = await readProgress(tools, flowToken, visitor.token, context)
      if (progress === undefined) return expired(hash, context)
      // The tenant of a link is read from its row.
      const used = await database.system(async (tx) => {
        const ticket = await findTicket(tx, 'sign_in', hash, now)
        if (ticket === undefined || !isOfFlow(ticket, flowToken))
          return expiredLink(tx, 'sign_in', hash)
        const { tenantId, tenantName, tenantSettings } = ticket
        const tenant = brandingOf(tenantId, tenantName, tenantSettings)
        if (!same(ticket.browserSha256, sha256(browserId))) {
          return { tag: 'other_browser', tenant } as const
        }
        const isUsed = (await useTicket(tx, 'sign_in', hash, now)) !== undefined
        const found = isUsed ? await findSignIn(tx, tenantId, ticket.email) : undefined
        return found === undefined
          ? ({ tag: 'gone', tenant } as const)
          : ({ tag: 'found', found } as const)
      }, context)
      if (used.tag !== 'found') return used
      const { found } = used
      const proves = proofOf(progress, found, 'link', visitor, context)
      const { flow } = progress
      return openSessionInFlow(
        tools,
        { flow, token: flowToken, found, amr: AMR, visitor, proves },
        context,
      )
    },
  } satisfies {
    [K in
      | 'requestSignInMail'
      | 'showSignInMail'
      | 'signInWithMailCode'
      | 'showMagicLink'
      | 'signInWithMagicLink']: (
      message: SignInProtocol[K]['message'],
      context: MessageContext,
    ) => Outcome<K>
  }

  /** The mailbox proof for the transaction that opens the session. */
  function proofOf(
    { session, flow: { tenantId } }: Progress,
    { accountId, sub }: SignInRow,
    how: 'code' | 'link',
    { address }: Visitor,
    context: MessageContext,
  ) {
    const inOwnSession = session?.accountId === accountId && !session.pending && !session.confined
    const proof = { accountId, how, inOwnSession, tenantId, sub, address } as const
    return (tx: Transaction, now: Date) => proveMailbox(tx, tools, proof, context, now)
  }

  /** Uses up a code. Returns its account if the account may still sign in. */
  async function spend(
    tx: Transaction,
    tenantId: string,
    flow: string,
    code: string,
  ): Promise<SignInRow | undefined> {
    const spent = await tryCode(tx, sha256(flow), codeSha256(flow, code), clock.now())
    if (spent === undefined || spent === 'wrong') return undefined
    const found = await findSignIn(tx, tenantId, spent.email)
    return found?.accountId === spent.accountId ? found : undefined
  }
}

/** Bound to the secret of the flow, so that the database rows alone do not allow guessing codes. */
function codeSha256(flow: string, code: string): Uint8Array {
  return createHash('sha256').update(`svc-mail-code-v1\n${flow}\n${code}`).digest()
}

const same = (a: Uint8Array | null, b: Uint8Array) => a !== null && Buffer.compare(a, b) === 0

const isOfFlow = ({ flowSha256 }: TicketFound, flow: string) => same(flowSha256, sha256(flow))
