/** Sign-up on hosted pages, in tenants that offer it. */
import { z } from 'zod'
import { passwordRecovery } from '../../../actors/identity/sign-in/recovery/protocol.js'
import {
  CAPTCHA_FIELDS,
  captchaIn,
  captchaThrottledPage,
  captchaUnavailablePage,
} from '../../pages/identity/captcha.js'
import {
  signUpClosedPage,
  signUpGonePage,
  signUpLinkPage,
  signUpPage,
  signUpSentPage,
} from '../../pages/identity/sign-up.js'
import { page, pageForm, type Route, route } from '../../route.js'
import { FlowStart, flowStartOf } from '../flow-start.js'
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
  passwordFaults,
  signedIn,
} from '../hosted-pages.js'
import { visitorOf } from '../visitor.js'
import { unknownFlow } from '../../request/unknown-flow.js'

const PATH = '/auth/register'
const closed = page(403, signUpClosedPage)
const gone = page(410, signUpGonePage)
const linkPage = page(200, signUpLinkPage)

export const signUpRoutes: readonly Route[] = [
  route(passwordRecovery, 'showSignUp', {
    ...HOSTED_PAGE,
    method: 'GET',
    path: PATH,
    summary: 'Sign-up page of a tenant',
    description:
      'A tenant offers sign-up by `sign_up` of its settings, otherwise by user_self_service.sign_up_default.',
    query: FlowStart,
    message: flowStartOf,
    replies: {
      page: page(200, signUpPage),
      closed,
      unknown_flow: unknownFlow,
      unknown_tenant: absent,
      absent,
    },
  }),
  route(passwordRecovery, 'requestSignUp', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: PATH,
    summary: 'Request the link of a sign-up',
    description: 'The response is the same whether or not the address has an account.',
    body: pageForm({ ...MAIL_FIELDS, ...CAPTCHA_FIELDS }),
    message: (request) => ({
      ...mailRequestOf(request),
      captcha: captchaIn(request.body),
      browserId: request.browser.id,
      host: request.host,
    }),
    replies: {
      requested: page(200, signUpSentPage),
      invalid_email: page(200, signUpPage),
      captcha: page(200, signUpPage),
      captcha_unavailable: page(503, captchaUnavailablePage),
      captcha_throttled: page(429, captchaThrottledPage),
      locked: page(429, signUpPage),
      closed,
      unknown_flow: unknownFlow,
      absent,
      busy,
    },
  }),
  route(passwordRecovery, 'showSignUpLink', {
    ...HOSTED_PAGE,
    method: 'GET',
    path: `${PATH}/{token}`,
    summary: 'Page behind the link of a sign-up; opening it does not use the link up',
    params: LinkParams,
    query: FlowQuery,
    message: (request) => ({ token: request.params.token, flow: request.query.flow }),
    replies: { page: linkPage, gone },
  }),
  route(passwordRecovery, 'finishSignUp', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: `${PATH}/{token}`,
    summary: 'Create the account of a sign-up, or join the tenant with an existing account',
    params: LinkParams,
    body: pageForm({
      flow: Flow,
      name: z.string().max(120).default(''),
      password: z.string().max(1024).default(''),
    }),
    message: (request) => ({
      token: request.params.token,
      flow: request.body.flow,
      displayName: request.body.name,
      password: request.body.password,
      browserId: request.browser.id,
      visitor: visitorOf(request),
    }),
    replies: {
      accepted: signedIn,
      sign_in: onward,
      ...passwordFaults(linkPage),
      gone,
      busy,
    },
  }),
]
