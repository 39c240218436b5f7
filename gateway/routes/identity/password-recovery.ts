/** Forgot password, password change, invitations and email verification on hosted pages. */
import { z } from 'zod'
import { passwordRecovery } from '../../../actors/identity/sign-in/recovery/protocol.js'
import {
  CAPTCHA_FIELDS,
  captchaIn,
  captchaThrottledPage,
  captchaUnavailablePage,
} from '../../pages/identity/captcha.js'
import {
  changePage,
  forgotPage,
  invitationPage,
  expiredLinkPage,
  lockedPage,
  passwordDonePage,
  resetPage,
  resetSentPage,
  verificationPage,
  verificationSentPage,
  verifiedPage,
  verifyElsewherePage,
} from '../../pages/identity/password-recovery.js'
import { NO_CONTEXT } from '../../response/replies.js'
import { ownRoute, page, pageForm, type Route, route, seeOther } from '../../route.js'
import { FlowStart, flowStartOf } from '../flow-start.js'
import {
  absent,
  ACCOUNT_PAGE,
  busy,
  HOSTED_PAGE,
  LinkParams,
  MAIL_FIELDS,
  mailRequestOf,
  onward,
  ownOf,
  passwordFaults,
  signedIn,
  toAccount,
} from '../hosted-pages.js'
import { visitorOf } from '../visitor.js'
import { unknownFlow } from '../../request/unknown-flow.js'

const Password = z.string().max(1024).default('')
const gone = page(410, expiredLinkPage)

const forgotten = [
  route(passwordRecovery, 'showForgottenPassword', {
    ...HOSTED_PAGE,
    method: 'GET',
    path: '/auth/password/forgot',
    summary: 'Forgot-password page',
    query: FlowStart,
    message: flowStartOf,
    replies: { page: page(200, forgotPage), unknown_flow: unknownFlow, absent },
  }),
  route(passwordRecovery, 'requestPasswordReset', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: '/auth/password/forgot',
    summary: 'Request a password reset link',
    body: pageForm({ ...MAIL_FIELDS, ...CAPTCHA_FIELDS }),
    message: (request) => ({ ...mailRequestOf(request), captcha: captchaIn(request.body) }),
    replies: {
      requested: page(200, resetSentPage),
      invalid_email: page(200, forgotPage),
      captcha: page(200, forgotPage),
      captcha_unavailable: page(503, captchaUnavailablePage),
      captcha_throttled: page(429, captchaThrottledPage),
      locked: page(429, forgotPage),
      unknown_flow: unknownFlow,
      absent,
      busy,
    },
  }),
  route(passwordRecovery, 'showPasswordReset', {
    ...HOSTED_PAGE,
    method: 'GET',
    path: '/auth/password/reset/{token}',
    summary: 'Page to choose a new password; opening it does not use the link up',
    params: LinkParams,
    message: (request) => ({ token: request.params.token }),
    replies: { page: page(200, resetPage), gone },
  }),
  route(passwordRecovery, 'resetPassword', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: '/auth/password/reset/{token}',
    summary: 'Reset the password; every session of the account ends',
    params: LinkParams,
    body: pageForm({ password: Password }),
    message: (request) => ({
      token: request.params.token,
      password: request.body.password,
      languages: request.browser.languages.header,
      visitor: visitorOf(request),
    }),
    replies: {
      done: page(200, passwordDonePage),
      ...passwordFaults(page(200, resetPage)),
      gone,
      busy,
    },
  }),
]

const invited = [
  route(passwordRecovery, 'showInvitation', {
    ...HOSTED_PAGE,
    method: 'GET',
    path: '/auth/invitations/{token}',
    summary: 'Page of an invitation to a tenant; opening it does not use the link up',
    params: LinkParams,
    message: (request) => ({ token: request.params.token }),
    replies: { page: page(200, invitationPage), gone },
  }),
  route(passwordRecovery, 'acceptInvitation', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: '/auth/invitations/{token}',
    summary: 'Accept an invitation to a tenant',
    params: LinkParams,
    body: pageForm({ name: z.string().max(120).default(''), password: Password }),
    message: (request) => ({
      token: request.params.token,
      displayName: request.body.name,
      password: request.body.password,
      visitor: visitorOf(request),
    }),
    replies: {
      accepted: signedIn,
      sign_in: onward,
      ...passwordFaults(page(200, invitationPage)),
      gone,
      busy,
    },
  }),
]

const signIn = onward
const toChange = seeOther(() => ({ location: '/auth/account/password' }))

const ownAccount = [
  ownRoute({
    ...HOSTED_PAGE,
    method: 'GET',
    path: '/.well-known/change-password',
    operationId: 'findPasswordChange',
    summary: 'Well-known URL to change a password, for password managers',
    security: { scheme: 'anonymous' },
    responses: toChange.docs,
    answer: () => toChange.render(null, NO_CONTEXT),
  }),
  route(passwordRecovery, 'showPasswordChange', {
    ...ACCOUNT_PAGE,
    method: 'GET',
    path: '/auth/account/password',
    summary: 'Page to change the password',
    message: ownOf,
    replies: { page: page(200, changePage), sign_in: signIn },
  }),
  route(passwordRecovery, 'changePassword', {
    ...ACCOUNT_PAGE,
    method: 'POST',
    path: '/auth/account/password',
    summary: 'Change the password; every other session of the account ends',
    body: pageForm({ current: Password, password: Password }),
    message: (request) => ({
      session: request.session,
      current: request.body.current,
      password: request.body.password,
      languages: request.browser.languages.header,
      visitor: visitorOf(request),
    }),
    replies: {
      changed: seeOther(({ token }) => ({ location: '/auth/account', session: token })),
      wrong: page(200, changePage),
      ...passwordFaults(page(200, changePage)),
      locked: page(429, changePage),
      sign_in: signIn,
      busy,
    },
  }),
  route(passwordRecovery, 'requestEmailVerification', {
    ...ACCOUNT_PAGE,
    method: 'POST',
    path: '/auth/account/email/verification',
    summary: 'Request a mail to verify the email address',
    body: pageForm({}),
    message: (request) => ({
      session: request.session,
      languages: request.browser.languages.header,
      visitor: visitorOf(request),
      browserId: request.browser.id,
      host: request.host,
    }),
    replies: {
      requested: page(200, verificationSentPage),
      verified: toAccount,
      locked: page(429, lockedPage),
      absent,
      busy,
    },
  }),
  route(passwordRecovery, 'showEmailVerification', {
    ...HOSTED_PAGE,
    method: 'GET',
    path: '/auth/email/{token}',
    summary: 'Page to verify an email address; opening it does not use the link up',
    params: LinkParams,
    message: (request) => ({ token: request.params.token }),
    replies: { page: page(200, verificationPage), gone },
  }),
  route(passwordRecovery, 'verifyEmail', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: '/auth/email/{token}',
    summary: 'Verify an email address, in the browser that requested the mail',
    params: LinkParams,
    body: pageForm({}),
    message: (request) => ({
      token: request.params.token,
      browserId: request.browser.id,
      visitor: visitorOf(request),
    }),
    replies: {
      done: page(200, verifiedPage),
      other_browser: page(403, verifyElsewherePage),
      gone,
    },
  }),
]

export const passwordRecoveryRoutes: readonly Route[] = [...forgotten, ...invited, ...ownAccount]
