/** Pages of sign-in with Ethereum, and of the Ethereum accounts of the account. */
import type { OwnShown } from '../../../actors/identity/sign-in/ways/ethereum/protocol.js'
import type { FlowPage, Locked } from '../../../actors/identity/sign-in/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import type { MessageKey } from '../texts/texts.js'
import { renderPage } from '../platform/render.js'
import { WALLET_SCRIPT } from '../platform/script.js'

const FAULTS: Readonly<Record<string, MessageKey>> = {
  wrong: 'wallet.wrong',
  unlinked: 'wallet.unlinked',
  taken: 'wallet.taken',
  locked: 'login.locked',
}

/** The page that connects to the wallet, in a sign-in. */
export function walletPage(
  shown: FlowPage & ({ readonly tag: 'page' | 'wrong' | 'unlinked' } | Locked),
  { browser }: ReplyContext,
): PageAnswer {
  const { flow, tenant, uiLocales, formTargets } = shown
  const retryAfterSecs = shown.tag === 'locked' ? shown.retryAfterSecs : undefined
  const html = renderPage(
    'wallet',
    {
      titleKey: 'wallet.title',
      branding: tenant,
      uiLocales,
      acceptLanguage: browser.languages,
      error: faultOf(shown.tag),
      retryAfterSecs,
    },
    { flow, csrf: browser.csrfToken, wallet: WALLET_SCRIPT },
  )
  const answer = { html, formTargets, scripted: true }
  return retryAfterSecs === undefined
    ? answer
    : { ...answer, headers: { 'retry-after': String(retryAfterSecs) } }
}

/** The page that links an Ethereum account to the account. */
export function linkWalletPage(
  { tag, tenant }: OwnShown & { readonly tag: 'page' | 'wrong' | 'taken' },
  { browser }: ReplyContext,
): PageAnswer {
  const html = renderPage(
    'wallet',
    {
      titleKey: 'wallet.new.title',
      branding: tenant,
      acceptLanguage: browser.languages,
      error: faultOf(tag),
    },
    { flow: null, csrf: browser.csrfToken, wallet: WALLET_SCRIPT },
  )
  return { html, scripted: true }
}

function faultOf(tag: string) {
  const key = FAULTS[tag]
  return key === undefined ? undefined : { key, field: null }
}
