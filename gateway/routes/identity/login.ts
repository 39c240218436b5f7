/** Sign-in and sign-out on hosted pages. */
import { z } from 'zod'
import { login } from '../../../actors/identity/sign-in/protocol.js'
import {
  CAPTCHA_FIELDS,
  captchaIn,
  captchaThrottledPage,
  captchaUnavailablePage,
} from '../../pages/identity/captcha.js'
import {
  codesPage,
  enrolmentPage,
  factorPage,
  loginPage,
  signedOutPage,
  unknownWorkspacePage,
} from '../../pages/identity/login.js'
import { page, pageForm, type Route, route } from '../../route.js'
import { FlowStart, flowStartOf } from '../flow-start.js'
import {
  busy,
  Flow,
  FlowQuery,
  HOSTED_PAGE,
  MAIL_FIELDS,
  onward,
  signedIn,
} from '../hosted-pages.js'
import { PASSKEY_SYNC_FIELD, visitorOf } from '../visitor.js'
import { unknownFlow } from '../../request/unknown-flow.js'

const codeForm = pageForm({
  flow: Flow,
  code: z.string().max(64).default(''),
  ...PASSKEY_SYNC_FIELD,
})

const showLogin = route(login, 'showSignIn', {
  ...HOSTED_PAGE,
  method: 'GET',
  path: '/auth/login',
  summary: 'Sign-in page',
  query: FlowStart,
  message: flowStartOf,
  replies: {
    page: page(200, loginPage),
    onward,
    unknown_flow: unknownFlow,
    unknown_tenant: page(404, unknownWorkspacePage),
  },
})

const sendLogin = route(login, 'signIn', {
  ...HOSTED_PAGE,
  method: 'POST',
  path: '/auth/login',
  summary: 'Sign in with email and password',
  body: pageForm({
    ...MAIL_FIELDS,
    password: z.string().max(1024).default(''),
    ...CAPTCHA_FIELDS,
    ...PASSKEY_SYNC_FIELD,
  }),
  message: (request) => ({
    flow: request.body.flow,
    email: request.body.email,
    password: request.body.password,
    captcha: captchaIn(request.body),
    visitor: visitorOf(request),
  }),
  replies: {
    signed_in: signedIn,
    wrong: page(200, loginPage),
    captcha: page(200, loginPage),
    captcha_unavailable: page(503, captchaUnavailablePage),
    captcha_throttled: page(429, captchaThrottledPage),
    locked: page(429, loginPage),
    unknown_flow: unknownFlow,
    busy,
  },
})

const showFactor = route(login, 'showSecondFactor', {
  ...HOSTED_PAGE,
  method: 'GET',
  path: '/auth/mfa',
  summary: 'Second-factor page',
  query: FlowQuery,
  message: (request) => ({ flow: request.query.flow, visitor: visitorOf(request) }),
  replies: { page: page(200, factorPage), onward, unknown_flow: unknownFlow },
})

const sendFactor = route(login, 'giveSecondFactor', {
  ...HOSTED_PAGE,
  method: 'POST',
  path: '/auth/mfa',
  summary: 'Submit a code of the authenticator app, or a recovery code',
  body: codeForm,
  message: (request) => ({ ...codeOf(request.body), visitor: visitorOf(request) }),
  replies: {
    signed_in: signedIn,
    onward,
    wrong: page(200, factorPage),
    locked: page(429, factorPage),
    unknown_flow: unknownFlow,
    busy,
  },
})

const resendConfirmation = route(login, 'requestConfirmationMail', {
  ...HOSTED_PAGE,
  method: 'POST',
  path: '/auth/mfa/mail',
  summary: 'Request another code by mail for a sign-in with raised risk',
  body: pageForm({ flow: Flow }),
  message: (request) => ({ flow: request.body.flow, visitor: visitorOf(request) }),
  replies: { sent: onward, onward, locked: page(429, factorPage), unknown_flow: unknownFlow },
})

const showEnrolment = route(login, 'showEnrolment', {
  ...HOSTED_PAGE,
  method: 'GET',
  path: '/auth/mfa/enroll',
  summary: 'Page to enrol a second factor',
  query: FlowQuery,
  message: (request) => ({ flow: request.query.flow, visitor: visitorOf(request) }),
  replies: { page: page(200, enrolmentPage), onward, unknown_flow: unknownFlow },
})

const sendEnrolment = route(login, 'enrolSecondFactor', {
  ...HOSTED_PAGE,
  method: 'POST',
  path: '/auth/mfa/enroll',
  summary: 'Enrol a second factor with its first code',
  onceOnly: true,
  body: codeForm,
  message: (request) => ({ ...codeOf(request.body), visitor: visitorOf(request) }),
  replies: {
    enrolled: page(200, codesPage),
    onward,
    wrong: page(200, enrolmentPage),
    locked: page(429, enrolmentPage),
    unknown_flow: unknownFlow,
    busy,
  },
})

const logout = route(login, 'signOut', {
  ...HOSTED_PAGE,
  security: { scheme: 'session' },
  method: 'POST',
  path: '/auth/logout',
  summary: 'Sign out of this browser',
  body: pageForm({}),
  message: ({ browser }) => ({ token: browser.sessionToken }),
  replies: { signed_out: page(200, signedOutPage) },
})

const codeOf = ({ flow, code }: { flow: string; code: string }) => ({ flow, code })

export const signInRoutes: readonly Route[] = [
  showLogin,
  sendLogin,
  showFactor,
  sendFactor,
  resendConfirmation,
  showEnrolment,
  sendEnrolment,
  logout,
]
