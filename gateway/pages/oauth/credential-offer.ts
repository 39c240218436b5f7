/** The page of a credential offer: a QR code and a link for wallets. */
import type { OfferPresented } from '../../../actors/oauth/credential-issuance/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import { pictureOf } from '../commerce/qr.js'
import { failurePage } from '../platform/error.js'
import { chooseLanguage } from '../platform/language.js'
import { renderPage } from '../platform/render.js'

export function offerPage(
  { tenant, configurationId, deepLink, needsTxCode }: OfferPresented,
  { browser }: ReplyContext,
): PageAnswer {
  const acceptLanguage = browser.languages
  const { say } = chooseLanguage(undefined, acceptLanguage, tenant.locale)
  const html = renderPage(
    'credential-offer',
    { titleKey: 'offer.title', branding: tenant, acceptLanguage },
    {
      credential: say(`offer.of.${configurationId}`),
      tenantName: tenant.name,
      deepLink,
      needsTxCode,
      picture: pictureOf(deepLink, say('offer.picture')),
    },
  )
  return { html }
}

export function offerEndedPage(
  _outcome: unknown,
  { requestId, browser }: ReplyContext,
): PageAnswer {
  const acceptLanguage = browser.languages
  return { html: failurePage({ status: 404, key: 'offer.ended', acceptLanguage, requestId }) }
}
