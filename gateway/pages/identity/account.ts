/** The account page: sessions, second factors, consents and delegations, each with a button to end it. */
import { PROFILE_TEXTS } from '../../../actors/domain/people/profile-claims.js'
import type {
  AccountSeen,
  ProfileRefused,
} from '../../../actors/identity/sign-in/account/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import { failurePage } from '../platform/error.js'
import { INBOX_PAGE } from '../oauth/ciba-inbox.js'
import { renderPage } from '../platform/render.js'
import { browserName } from '../platform/user-agent.js'

/** HTML of the time zones that the form suggests, the same for every user. */
const ZONES = Intl.supportedValuesOf('timeZone')
  .map((zone) => `<option value="${zone}"></option>`)
  .join('')
const PROFILE_FIELDS = ['name', ...PROFILE_TEXTS] as const

export function accountPage(
  { tenant, session, sessions, profile, ...seen }: AccountSeen,
  { browser }: ReplyContext,
  refused?: Pick<ProfileRefused, 'field' | 'typed'>,
): PageAnswer {
  const frame = {
    titleKey: 'account.title',
    branding: tenant,
    layout: 'sections',
    acceptLanguage: browser.languages,
    scripted: seen.signals !== null,
    ...(refused === undefined
      ? {}
      : {
          error: {
            key: `profile.${refused.field}.invalid`,
            field: refused.field,
          } as const,
        }),
  } as const
  const html = renderPage('account', frame, {
    session,
    sessions: sessions.map((listed) => ({
      ...listed,
      browser: browserName(listed.userAgent),
      handheld: /\b(?:Android|iPhone|iPad|iPod)\b/.test(listed.userAgent),
      own: listed.id === session.id,
    })),
    ...seen,
    profile,
    fields: PROFILE_FIELDS.map((name) => ({
      name,
      value: (refused?.typed ?? profile.values)[name],
      ofTenant: profile.ofTenant.includes(name),
      invalid: refused?.field === name,
    })),
    editing: refused !== undefined,
    zones: ZONES,
    looksAfter: session.role !== 'member',
    csrf: browser.csrfToken,
  })
  return { html, scripted: frame.scripted }
}

/** The account page again, with what was typed and the field that is not valid. */
export function refusedProfilePage(
  { seen, ...refused }: ProfileRefused,
  context: ReplyContext,
): PageAnswer {
  return accountPage(seen, context, refused)
}

/** The part of the account does not exist (any more). */
export function accountPartGonePage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return partGone('/auth/account', context)
}

/** The inbox request is not pending (any more), or was never for this user. */
export function requestGonePage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return partGone(INBOX_PAGE, context)
}

/** The user pressed a button, so the text does not blame a mistyped address. */
function partGone(path: string, { browser, requestId }: ReplyContext): PageAnswer {
  const html = failurePage({
    status: 404,
    key: 'account.gone',
    acceptLanguage: browser.languages,
    requestId,
    link: { path, key: 'common.continue' },
  })
  return { html }
}
