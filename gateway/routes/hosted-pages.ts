/** What the routes of hosted pages share. */
import { z } from 'zod'
import type { BrowserSession } from '../../actors/identity/sign-in/sessions/protocol.js'
import { busyPage, unknownTenantPage } from '../pages/identity/login.js'
import type { Browser } from '../request/browser.js'
import type { ReplyRule } from '../response/replies.js'
import { page, seeOther } from '../route.js'
import { TypedEmail } from './identity/user-shapes.js'
import { visitorOf } from './visitor.js'

/** A page without a session. */
export const HOSTED_PAGE = {
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'browser' },
  errors: 'page',
} as const
/** A page for a signed-in user. */
export const ACCOUNT_PAGE = { ...HOSTED_PAGE, security: { scheme: 'session' } } as const

/** Token of a flow. */
export const Flow = z.string().max(64).default('')
export const FlowQuery = z.object({ flow: Flow })
/** The token of a link in a message. */
export const LinkParams = z.object({ token: z.string().min(1).max(128) })

export const onward = seeOther(({ location }: { location: string }) => ({ location }))
export const toAccount = seeOther(() => ({ location: '/auth/account' }))
export const signedIn = seeOther(({ location, token }: { location: string; token: string }) => ({
  location,
  session: token,
}))
/** The deployment does not offer this method. */
export const absent = page(404, unknownTenantPage)
export const busy = page(503, busyPage)

/** A chosen password is refused: the form again. */
export const passwordFaults = <Outcome>(form: ReplyRule<Outcome>) => ({
  weak_password: form,
  common_password: form,
  breached_password: form,
})

/** A form that requests a mail to the typed address. */
export const MAIL_FIELDS = { flow: Flow, email: TypedEmail.default('') }
export const mailRequestOf = (request: {
  body: { flow: string; email: string }
  browser: Browser
  clientAddress: string
}) => ({
  flow: request.body.flow,
  email: request.body.email,
  languages: request.browser.languages.header,
  visitor: visitorOf(request),
})

/** The session of the request, and its token. */
export const ownOf = ({ session, browser }: { session: BrowserSession; browser: Browser }) => ({
  session,
  token: browser.sessionToken ?? '',
})
