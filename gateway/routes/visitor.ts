/** The browser and address of a page request, for sign-in. */
import type { Visitor } from '../../actors/identity/sign-in/protocol.js'
import type { Browser } from '../request/browser.js'

export const visitorOf = (request: { browser: Browser; clientAddress: string }): Visitor => ({
  token: request.browser.sessionToken,
  address: request.clientAddress,
  userAgent: request.browser.userAgent,
  browserId: request.browser.id,
  languages: request.browser.languages.header,
})
