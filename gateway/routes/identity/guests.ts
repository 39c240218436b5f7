/** Guests ([anonymous]): continue without an address, and keep the account by proving one. */
import { z } from 'zod'
import { guests } from '../../../actors/identity/sign-in/ways/guest/protocol.js'
import {
  guestAddressPage,
  guestCodePage,
  guestsThrottledPage,
} from '../../pages/identity/guests.js'
import { page, pageForm, type Route, route } from '../../route.js'
import {
  absent,
  ACCOUNT_PAGE,
  busy,
  Flow,
  HOSTED_PAGE,
  ownOf,
  signedIn,
  toAccount,
} from '../hosted-pages.js'
import { visitorOf } from '../visitor.js'
import { unknownFlow } from '../../request/unknown-flow.js'
import { TypedEmail } from './user-shapes.js'

export const guestRoutes: readonly Route[] = [
  route(guests, 'continueAsGuest', {
    ...HOSTED_PAGE,
    method: 'POST',
    path: '/auth/login/guest',
    summary: 'Continue as a guest',
    description:
      'Creates an account without an address and signs it in at aal1. Needs `anonymous.enabled` of the tenant. New ' +
      'guests are limited per network address and per tenant.',
    body: pageForm({ flow: Flow }),
    message: (request) => ({ flow: request.body.flow, visitor: visitorOf(request) }),
    replies: {
      signed_in: signedIn,
      absent,
      throttled: page(429, guestsThrottledPage),
      unknown_flow: unknownFlow,
      busy,
    },
  }),
  route(guests, 'showNewEmail', {
    ...ACCOUNT_PAGE,
    method: 'GET',
    path: '/auth/account/email/new',
    summary: 'Page where a guest adds an email address',
    message: ownOf,
    replies: { page: page(200, guestAddressPage), not_guest: toAccount },
  }),
  route(guests, 'requestEmailProof', {
    ...ACCOUNT_PAGE,
    method: 'POST',
    path: '/auth/account/email/new',
    summary: 'Request a code that proves the email address of a guest',
    description: 'The response is the same whether or not the address has an account.',
    body: pageForm({ email: TypedEmail.default('') }),
    message: ({ session, browser, body, clientAddress: address }) => ({
      ...ownOf({ session, browser }),
      email: body.email,
      languages: browser.languages.header,
      address,
    }),
    replies: {
      sent: page(200, guestCodePage),
      invalid_email: page(200, guestAddressPage),
      locked: page(429, guestAddressPage),
      not_guest: toAccount,
      busy,
    },
  }),
  route(guests, 'proveOwnEmail', {
    ...ACCOUNT_PAGE,
    method: 'POST',
    path: '/auth/account/email/code',
    summary: 'Keep the account of a guest with the code of the mail',
    body: pageForm({ code: z.string().max(64).default('') }),
    message: ({ session, browser, body, clientAddress: address }) => ({
      ...ownOf({ session, browser }),
      code: body.code,
      address,
    }),
    replies: {
      proved: toAccount,
      wrong: page(200, guestCodePage),
      taken: page(409, guestCodePage),
      locked: page(429, guestCodePage),
      not_guest: toAccount,
      busy,
    },
  }),
]
