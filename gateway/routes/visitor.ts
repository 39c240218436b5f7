/** The browser and address of a page request, for sign-in. */
import { z } from 'zod'
import type { Visitor } from '../../actors/identity/sign-in/protocol.js'
import type { Browser } from '../request/browser.js'

/** The field that the script of a page fills if the browser can sync passkeys. */
export const PASSKEY_SYNC_FIELD = { passkey_sync: z.string().max(8).default('') }

export const visitorOf = (request: {
  browser: Browser
  clientAddress: string
  body?: unknown
}): Visitor => ({
  token: request.browser.sessionToken,
  address: request.clientAddress,
  userAgent: request.browser.userAgent,
  browserId: request.browser.id,
  languages: request.browser.languages.header,
  syncsPasskeys: (request.body as { passkey_sync?: string } | null)?.passkey_sync === 'yes',
})
