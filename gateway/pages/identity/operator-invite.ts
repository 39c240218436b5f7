/** The page of an operator invite: organization, expiry, and the form to accept. */
import type {
  InviteFault,
  InviteMessageShown,
  InviteSent,
} from '../../../actors/identity/sign-in/protocol.js'
import type { InviteValid } from '../../../actors/agents/workspaces/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import type { MessageKey } from '../texts/texts.js'
import { chooseLanguage } from '../platform/language.js'
import { type Frame, renderPage } from '../platform/render.js'

/** A valid invite. */
export function invitePage(invite: InviteValid, context: ReplyContext): PageAnswer {
  return formPage({ ...invite, email: '', displayName: '' }, undefined, context)
}

const FAULTS: Readonly<Record<InviteFault['tag'], { key: MessageKey; field: string }>> = {
  invalid_email: { key: 'invite.email.invalid', field: 'email' },
  weak_password: { key: 'invite.weak', field: 'password' },
  common_password: { key: 'password.common', field: 'password' },
  breached_password: { key: 'password.breached', field: 'password' },
}

/** The same page with a form error. */
export function inviteFaultPage(invite: InviteFault, context: ReplyContext): PageAnswer {
  return formPage(invite, FAULTS[invite.tag], context)
}

export function inviteUnknownPage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return notice('invite.unknown.title', 'invite.unknown', context)
}

export function inviteGonePage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return notice('invite.spent.title', 'invite.spent', context)
}

export function inviteSentPage(
  { email, organizationName: organization }: InviteSent,
  { browser }: ReplyContext,
): PageAnswer {
  const { languages: acceptLanguage } = browser
  const frame = { titleKey: 'mail.title', branding: null, acceptLanguage } as const
  return { html: renderPage('invite-sent', frame, { email, organization }) }
}

const MESSAGE_FAULTS: Readonly<Record<string, { key: MessageKey; field: string }>> = FAULTS

/** The page behind the link of the mail, with a password field if the account has no password. */
export function inviteMessagePage(
  shown: InviteMessageShown & { readonly tag: string },
  { browser, path }: ReplyContext,
): PageAnswer {
  const { languages: acceptLanguage, csrfToken: csrf } = browser
  const { time } = chooseLanguage(null, acceptLanguage)
  const { organizationName: organization, email, expiresAt, isKnown, needsPassword } = shown
  const error = MESSAGE_FAULTS[shown.tag]
  const frame = { titleKey: 'invite.title', branding: null, acceptLanguage, error } as const
  const html = renderPage('invite-letter', frame, {
    organization,
    until: time(expiresAt),
    email,
    isKnown,
    needsPassword,
    csrf,
    action: path,
    invalid: error?.field ?? null,
  })
  return { html }
}

function formPage(
  invite: Omit<InviteFault, 'tag'>,
  error: Frame['error'],
  { browser, path }: ReplyContext,
): PageAnswer {
  const { languages: acceptLanguage, csrfToken: csrf } = browser
  const { time } = chooseLanguage(null, acceptLanguage)
  const { organizationName: organization, email, displayName, expiresAt } = invite
  const html = renderPage(
    'invite',
    { titleKey: 'invite.title', branding: null, acceptLanguage, error },
    {
      organization,
      until: time(expiresAt),
      email,
      displayName,
      csrf,
      action: path,
      invalid: error?.field ?? null,
    },
  )
  return { html }
}

function notice(titleKey: MessageKey, key: MessageKey, { browser }: ReplyContext): PageAnswer {
  const frame = { titleKey, branding: null, acceptLanguage: browser.languages }
  return { html: renderPage('notice', frame, { key, link: null }) }
}
