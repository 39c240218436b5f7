/** Sign-in with a code or a link by mail ([email_otp], [magic_link]). */
import { z } from 'zod'
import { login } from '../../../actors/identity/sign-in/protocol.js'
import {
  expiredLinkPage,
  linkPage,
  mailSentPage,
  otherBrowserPage,
} from '../../pages/identity/password-recovery.js'
import { CAPTCHA_FIELDS } from '../../pages/identity/captcha.js'
import { busyPage, loginPage, unknownTenantPage } from '../../pages/identity/login.js'
import { page, pageForm, type Route, route, seeOther } from '../../route.js'
import { visitorOf } from '../visitor.js'
import { unknownFlow } from '../../request/unknown-flow.js'

const shared = {
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'browser' },
  errors: 'page',
} as const

const Flow = z.string().max(64)
const LinkParams = z.object({ token: z.string().min(1).max(128) })
const absent = page(404, unknownTenantPage)
const busy = page(503, busyPage)
const gone = page(410, expiredLinkPage)
const onward = seeOther(({ location }: { location: string }) => ({ location }))
const signedIn = seeOther(({ location, token }: { location: string; token: string }) => ({
  location,
  session: token,
}))

export const mailSignInRoutes: readonly Route[] = [
  route(login, 'requestSignInMail', {
    ...shared,
    method: 'POST',
    path: '/auth/login/mail',
    operationId: 'requestSignInMail',
    summary: 'Request a mail to sign in with',
    body: pageForm({
      flow: Flow.default(''),
      email: z.string().max(320).default(''),
      // The form of the password page is reused. Its password field is ignored.
      password: z.string().max(1024).default(''),
      ...CAPTCHA_FIELDS,
    }),
    message: (request) => ({
      flow: request.body.flow,
      email: request.body.email,
      host: request.host,
      browserId: request.browser.id,
      languages: request.browser.languages.header,
      visitor: visitorOf(request),
    }),
    replies: {
      sent: onward,
      invalid_email: page(200, loginPage),
      locked: page(429, loginPage),
      unknown_flow: unknownFlow,
      absent,
      busy,
    },
  }),
  route(login, 'showSignInMail', {
    ...shared,
    method: 'GET',
    path: '/auth/login/mail',
    operationId: 'showSignInMail',
    summary: 'Page after a mail was requested',
    query: z.object({ flow: Flow.default('') }),
    message: (request) => ({ flow: request.query.flow, visitor: visitorOf(request) }),
    replies: { page: page(200, mailSentPage), onward, unknown_flow: unknownFlow, absent },
  }),
  route(login, 'signInWithMailCode', {
    ...shared,
    method: 'POST',
    path: '/auth/login/code',
    operationId: 'signInWithMailCode',
    summary: 'Sign in with a code from the mail',
    body: pageForm({ flow: Flow.default(''), code: z.string().max(64).default('') }),
    message: (request) => ({
      flow: request.body.flow,
      code: request.body.code,
      visitor: visitorOf(request),
    }),
    replies: {
      signed_in: signedIn,
      wrong: page(200, mailSentPage),
      locked: page(429, mailSentPage),
      unknown_flow: unknownFlow,
      absent,
      busy,
    },
  }),
  route(login, 'showMagicLink', {
    ...shared,
    method: 'GET',
    path: '/auth/magic/{token}',
    operationId: 'showMagicLink',
    summary: 'Page behind a sign-in link; opening it does not use the link up',
    params: LinkParams,
    query: z.object({ flow: Flow.default('') }),
    message: ({ params, query }) => ({ token: params.token, flow: query.flow }),
    replies: { page: page(200, linkPage), gone },
  }),
  route(login, 'signInWithMagicLink', {
    ...shared,
    method: 'POST',
    path: '/auth/magic/{token}',
    operationId: 'signInWithMagicLink',
    summary: 'Sign in with a link, in the browser that requested it',
    params: LinkParams,
    body: pageForm({ flow: Flow.default('') }),
    message: (request) => ({
      token: request.params.token,
      flow: request.body.flow,
      browserId: request.browser.id,
      visitor: visitorOf(request),
    }),
    replies: { signed_in: signedIn, other_browser: page(403, otherBrowserPage), gone },
  }),
]
