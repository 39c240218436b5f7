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
import { loginPage } from '../../pages/identity/login.js'
import { page, pageForm, type Route, route } from '../../route.js'
import {
  absent,
  busy,
  Flow,
  FlowQuery,
  HOSTED_PAGE,
  LinkParams,
  MAIL_FIELDS,
  mailRequestOf,
  onward,
  signedIn,
} from '../hosted-pages.js'
import { visitorOf } from '../visitor.js'
import { unknownFlow } from '../../request/unknown-flow.js'

const gone = page(410, expiredLinkPage)

export const mailSignInRoutes: readonly Route[] = [
  route(login, 'requestSignInMail', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: '/auth/login/mail',
    summary: 'Request a mail to sign in with',
    body: pageForm({
      ...MAIL_FIELDS,
      // The form of the password page is reused. Its password field is ignored.
      password: z.string().max(1024).default(''),
      ...CAPTCHA_FIELDS,
    }),
    message: (request) => ({
      ...mailRequestOf(request),
      host: request.host,
      browserId: request.browser.id,
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
    ...HOSTED_PAGE,
    method: 'GET',
    path: '/auth/login/mail',
    summary: 'Page after a mail was requested',
    query: FlowQuery,
    message: (request) => ({ flow: request.query.flow, visitor: visitorOf(request) }),
    replies: { page: page(200, mailSentPage), onward, unknown_flow: unknownFlow, absent },
  }),
  route(login, 'signInWithMailCode', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: '/auth/login/code',
    summary: 'Sign in with a code from the mail',
    body: pageForm({ flow: Flow, code: z.string().max(64).default('') }),
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
    ...HOSTED_PAGE,
    method: 'GET',
    path: '/auth/magic/{token}',
    summary: 'Page behind a sign-in link; opening it does not use the link up',
    params: LinkParams,
    query: FlowQuery,
    message: ({ params, query }) => ({ token: params.token, flow: query.flow }),
    replies: { page: page(200, linkPage), gone },
  }),
  route(login, 'signInWithMagicLink', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: '/auth/magic/{token}',
    summary: 'Sign in with a link, in the browser that requested it',
    params: LinkParams,
    body: pageForm({ flow: Flow }),
    message: (request) => ({
      token: request.params.token,
      flow: request.body.flow,
      browserId: request.browser.id,
      visitor: visitorOf(request),
    }),
    replies: { signed_in: signedIn, other_browser: page(403, otherBrowserPage), gone },
  }),
]
