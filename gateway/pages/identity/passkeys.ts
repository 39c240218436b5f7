/** Passkey pages: errors in a flow, and the page to add a passkey to the account. */
import type { PageTenant } from '../../../actors/domain/tenants/branding.js'
import type {
  PasskeyRefused,
  SyncPage,
} from '../../../actors/identity/sign-in/ways/passkey/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import type { MessageKey } from '../texts/texts.js'
import { deviceOf, enrolmentPage } from './login.js'
import { renderPage } from '../platform/render.js'

/** The enrolment page with the reason why the passkey is not accepted. */
export function enrolmentRefusedPage(
  { why, shown }: PasskeyRefused,
  context: ReplyContext,
): PageAnswer {
  const key = why === 'copyable' ? 'passkey.copyable' : 'passkey.refused'
  return enrolmentPage({ ...shown, tag: 'wrong' }, context, key)
}

export function addPasskeyPage(
  shown: { readonly tag: 'page' | 'wrong'; readonly tenant: PageTenant },
  context: ReplyContext,
): PageAnswer {
  const error: { key: MessageKey; field: null } | undefined =
    shown.tag === 'wrong' ? { key: 'passkey.refused', field: null } : undefined
  const frame = ownFrame('passkey.new.title', shown.tenant, context)
  const html = renderPage(
    'passkey-new',
    { ...frame, error, scripted: true },
    { csrf: context.browser.csrfToken, device: deviceOf(context), flow: null },
  )
  return { html, scripted: true }
}

/** The script of the page leads on. Without it, a link does. */
export function syncPage(shown: SyncPage, context: ReplyContext): PageAnswer {
  const { tenant: branding, uiLocales, formTargets } = shown
  const acceptLanguage = context.browser.languages
  const frame = { titleKey: 'passkey.sync.title', branding, uiLocales, acceptLanguage } as const
  const own = { csrf: context.browser.csrfToken, device: deviceOf(context) }
  const html = renderPage('onward', { ...frame, scripted: true }, { ...shown, ...own })
  return { html, formTargets, scripted: true }
}

/** The recovery codes issued with the first passkey, shown once. */
export function newCodesPage(
  { tenant, recoveryCodes }: { tenant: PageTenant; recoveryCodes: readonly string[] },
  context: ReplyContext,
): PageAnswer {
  const frame = ownFrame('codes.title', tenant, context)
  return { html: renderPage('codes', frame, { codes: recoveryCodes, location: '/auth/account' }) }
}

function ownFrame(titleKey: MessageKey, branding: PageTenant, { browser }: ReplyContext) {
  return { titleKey, branding, acceptLanguage: browser.languages }
}
