/**
 * Sign-up: an address gets a link, and the link leads to the page that creates the account (sign-up-link.ts). The
 * account exists only after the mailbox is proved, so no one can prepare an account for another person's address. The
 * response to an address is the same whether or not it has an account: a user of the tenant gets a mail that says so.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { findSignUpStanding, type SignUpStanding } from '../../../../storage/identity/sign-ins.js'
import type { SignInFlowFound } from '../../../../storage/identity/sign-in-flows.js'
import { type Email, parseEmail } from '../../../domain/email.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import type { MessageContent } from '../../../platform/mail/render.js'
import { sendWithTicket } from '../../../platform/mail/with-ticket.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { beginAccountFlow, flowPage, progressIn } from '../flow/progress.js'
import type { FlowPage } from '../protocol.js'
import { addressAt, tenantHostOf } from '../tenant-host.js'
import { formFault } from './form-fault.js'
import {
  ABSENT,
  LINK_TOKEN_BYTES,
  type PasswordRecoveryHandler,
  type PasswordRecoveryTools,
} from './needs.js'
import type { PasswordRecoveryProtocol, SignUpShown } from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

/** @param signUp what the tenant decides; null: nothing. */
export const isSignUpOpen = (
  { selfService }: Pick<PasswordRecoveryTools, 'selfService'>,
  signUp: boolean | null,
): boolean => selfService.enabled && (signUp ?? selfService.sign_up_default)

const closed = ({ tenant, uiLocales }: FlowPage) => ({ tag: 'closed', tenant, uiLocales }) as const

export const showSignUp: PasswordRecoveryHandler<'showSignUp'> = async (
  tools,
  { flow, visitor, ...wanted },
  context,
) => {
  if (!tools.selfService.enabled) return ABSENT
  const token = flow ?? (await beginAccountFlow(tools, wanted, context))
  if (token === null) return { tag: 'unknown_tenant' }
  const progress = await progressIn(tools, token, visitor.token, context)
  if ('tag' in progress) return progress
  const page = flowPage(token, progress.flow)
  if (!isSignUpOpen(tools, page.signUp)) return closed(page)
  const email = progress.flow.loginHint ?? ''
  return { tag: 'page', ...page, email, captcha: tools.gate.widget() }
}

export const requestSignUp: PasswordRecoveryHandler<'requestSignUp'> = async (
  tools,
  message,
  context,
) => {
  if (!tools.selfService.enabled) return ABSENT
  const { flow: flowToken, visitor } = message
  const progress = await progressIn(tools, flowToken, visitor.token, context)
  if ('tag' in progress) return progress
  const { flow } = progress
  const typed = message.email.trim()
  const email = parseEmail(typed)
  const page = flowPage(flowToken, flow)
  if (!isSignUpOpen(tools, page.signUp)) return closed(page)
  const shown: SignUpShown = { ...page, email: typed, captcha: tools.gate.widget() }
  if (email === undefined) return { tag: 'invalid_email', ...shown }
  const name = `sign-up:${flow.tenantId}:${email.toLowerCase()}`
  const fault = await formFault(tools, shown, message, name)
  if (fault !== undefined) return fault
  await sendLink(tools, { ...message, email }, flow, context)
  return { tag: 'requested', ...page, email }
}

async function sendLink(
  tools: PasswordRecoveryTools,
  message: PasswordRecoveryProtocol['requestSignUp']['message'] & { readonly email: Email },
  flow: SignInFlowFound,
  context: MessageContext,
): Promise<void> {
  const { database, clock, random, mail, selfService, issuer, tenants } = tools
  const { flow: flowToken, email, languages, browserId, host } = message
  const { tenantId, uiLocales } = flow
  const standing = await database.system((tx) => findSignUpStanding(tx, tenantId, email), context)
  const now = clock.now()
  const expiresAt = new Date(now.getTime() + selfService.sign_up_ttl_secs * 1000)
  const token = random.token(LINK_TOKEN_BYTES)
  const address = addressAt(issuer, await tenantHostOf(tenants, tenantId, host, context))
  const isUser = isUserOf(standing)
  const link = `${address}/auth/register/${token}?flow=${flowToken}`
  const content: MessageContent = isUser
    ? { kind: 'sign_up_known', link: `${address}/auth/login?tenant_id=${tenantId}` }
    : { kind: 'sign_up', link, until: expiresAt }
  const { name, color, locale } = brandingOf(tenantId, flow.tenantName, flow.tenantSettings)
  const sealedMail = await mail.seal({
    tenantId,
    to: email,
    known: isUser || mayJoin(standing),
    content,
    header: { tenant: name, color, locale, uiLocales, languages },
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
  await inTenant(database, tenantId, context, (tx) => sendWithTicket(tx, tools, ticket, sealedMail))
}

/** The address belongs to a user who can sign in. */
const isUserOf = ({ accountActive, userStatus }: SignUpStanding): boolean =>
  accountActive === true && (userStatus === 'active' || userStatus === 'pre_provisioned')

/** The address has no account, or an active one that is not yet a user of the tenant. */
export const mayJoin = ({ accountActive, userStatus }: SignUpStanding): boolean =>
  accountActive !== false && (userStatus === null || userStatus === 'invited')
