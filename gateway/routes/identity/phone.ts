/** Phone numbers ([phone], [sms]): sign-in with a code by text message, and the number on the account page. */
import { z } from 'zod'
import { phone } from '../../../actors/identity/sign-in/ways/phone/protocol.js'
import { accountPartGonePage } from '../../pages/identity/account.js'
import { lastWayInPage } from '../../pages/identity/federated-login.js'
import {
  ownPhoneCodePage,
  ownPhonePage,
  phoneCodePage,
  phonePage,
} from '../../pages/identity/phone.js'
import { page, pageForm, type Route, route } from '../../route.js'
import {
  absent,
  ACCOUNT_PAGE,
  busy,
  Flow,
  FlowQuery,
  HOSTED_PAGE,
  onward,
  ownOf,
  signedIn,
  toAccount,
} from '../hosted-pages.js'
import { visitorOf } from '../visitor.js'
import { unknownFlow } from '../../request/unknown-flow.js'

const Typed = z.string().max(64).default('')

export const phoneRoutes: readonly Route[] = [
  route(phone, 'showPhoneSignIn', {
    ...HOSTED_PAGE,
    method: 'GET',
    path: '/auth/login/phone',
    summary: 'Page to sign in with a phone number',
    query: FlowQuery,
    message: (request) => ({ flow: request.query.flow, visitor: visitorOf(request) }),
    replies: { page: page(200, phonePage), onward, unknown_flow: unknownFlow, absent },
  }),
  route(phone, 'requestSignInText', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: '/auth/login/phone',
    summary: 'Request a text message with a code to sign in with',
    description:
      'The response is the same whether or not the number has an account. Messages are limited per number, per ' +
      'network address and per tenant ([sms]).',
    body: pageForm({ flow: Flow, phone_number: Typed }),
    message: (request) => ({
      flow: request.body.flow,
      phoneNumber: request.body.phone_number,
      host: request.host,
      languages: request.browser.languages.header,
      visitor: visitorOf(request),
    }),
    replies: {
      sent: onward,
      invalid_number: page(200, phonePage),
      country_refused: page(200, phonePage),
      locked: page(429, phonePage),
      unknown_flow: unknownFlow,
      absent,
      busy,
    },
  }),
  route(phone, 'showTextCode', {
    ...HOSTED_PAGE,
    method: 'GET',
    path: '/auth/login/phone/code',
    summary: 'Page after a text message was requested',
    query: FlowQuery,
    message: (request) => ({ flow: request.query.flow, visitor: visitorOf(request) }),
    replies: { page: page(200, phoneCodePage), onward, unknown_flow: unknownFlow, absent },
  }),
  route(phone, 'signInWithTextCode', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: '/auth/login/phone/code',
    summary: 'Sign in with the code of a text message',
    body: pageForm({ flow: Flow, code: Typed }),
    message: (request) => ({
      flow: request.body.flow,
      code: request.body.code,
      visitor: visitorOf(request),
    }),
    replies: {
      signed_in: signedIn,
      wrong: page(200, phoneCodePage),
      locked: page(429, phoneCodePage),
      unknown_flow: unknownFlow,
      absent,
      busy,
    },
  }),
  route(phone, 'showOwnPhone', {
    ...ACCOUNT_PAGE,
    method: 'GET',
    path: '/auth/account/phone',
    summary: 'Page to add a phone number to the account',
    message: ownOf,
    replies: { page: page(200, ownPhonePage), sign_in: onward },
  }),
  route(phone, 'requestPhoneProof', {
    ...ACCOUNT_PAGE,
    method: 'POST',
    path: '/auth/account/phone',
    summary: 'Request a code that proves a phone number',
    body: pageForm({ phone_number: Typed }),
    message: ({ session, browser, body, host, clientAddress: address }) => ({
      ...ownOf({ session, browser }),
      phoneNumber: body.phone_number,
      host,
      languages: browser.languages.header,
      address,
    }),
    replies: {
      sent: page(200, ownPhoneCodePage),
      invalid_number: page(200, ownPhonePage),
      country_refused: page(200, ownPhonePage),
      locked: page(429, ownPhonePage),
      sign_in: onward,
      busy,
    },
  }),
  route(phone, 'proveOwnPhone', {
    ...ACCOUNT_PAGE,
    method: 'POST',
    path: '/auth/account/phone/code',
    summary: 'Prove a phone number with the code of the text message',
    description:
      'A number that another account signs in with moves to this account, because its holder has proved it last.',
    body: pageForm({ code: Typed }),
    message: ({ session, browser, body, clientAddress: address }) => ({
      ...ownOf({ session, browser }),
      code: body.code,
      address,
    }),
    replies: {
      proved: toAccount,
      wrong: page(200, ownPhoneCodePage),
      locked: page(429, ownPhoneCodePage),
      sign_in: onward,
      busy,
    },
  }),
  route(phone, 'removeOwnPhone', {
    ...ACCOUNT_PAGE,
    method: 'POST',
    path: '/auth/account/phone/remove',
    summary: 'Stop signing in with the phone number of the account',
    body: pageForm({}),
    message: ({ session, browser, clientAddress: address }) => ({
      ...ownOf({ session, browser }),
      address,
    }),
    replies: {
      removed: toAccount,
      unknown_phone: page(404, accountPartGonePage),
      last_way_in: page(409, lastWayInPage),
      sign_in: onward,
    },
  }),
]
