/** Guests ([anonymous]): continue without an address, and keep the account by proving one. */
import { z } from 'zod'
import { guests } from '../../../actors/identity/guests/protocol.js'
import {
  guestAddressPage,
  guestCodePage,
  guestsThrottledPage,
} from '../../pages/identity/guests.js'
import { busyPage, unknownTenantPage } from '../../pages/identity/login.js'
import { page, pageForm, type Route, route, seeOther } from '../../route.js'
import { visitorOf } from '../visitor.js'
import { unknownFlow } from '../../request/unknown-flow.js'

const shared = {
  tags: ['Hosted pages'],
  exposure: 'internal',
  errors: 'page',
} as const
const own = { ...shared, security: { scheme: 'session' } } as const

const back = seeOther(() => ({ location: '/auth/account' }))
const busy = page(503, busyPage)

export const guestRoutes: readonly Route[] = [
  route(guests, 'continueAsGuest', {
    ...shared,
    security: { scheme: 'browser' },
    method: 'POST',
    path: '/auth/login/guest',
    operationId: 'continueAsGuest',
    summary: 'Continue as a guest',
    description:
      'Creates an account without an address and signs it in at aal1. Needs `anonymous.enabled` of the tenant. New ' +
      'guests are limited per network address and per tenant.',
    body: pageForm({ flow: z.string().max(64).default('') }),
    message: (request) => ({ flow: request.body.flow, visitor: visitorOf(request) }),
    replies: {
      signed_in: seeOther(({ location, token }: { location: string; token: string }) => ({
        location,
        session: token,
      })),
      absent: page(404, unknownTenantPage),
      throttled: page(429, guestsThrottledPage),
      unknown_flow: unknownFlow,
      busy,
    },
  }),
  route(guests, 'showNewEmail', {
    ...own,
    method: 'GET',
    path: '/auth/account/email/new',
    operationId: 'showNewEmail',
    summary: 'Page where a guest adds an email address',
    message: ({ session, browser }) => ({ session, token: browser.sessionToken ?? '' }),
    replies: { page: page(200, guestAddressPage), not_guest: back },
  }),
  route(guests, 'requestEmailProof', {
    ...own,
    method: 'POST',
    path: '/auth/account/email/new',
    operationId: 'requestEmailProof',
    summary: 'Request a code that proves the email address of a guest',
    description: 'The response is the same whether or not the address has an account.',
    body: pageForm({ email: z.string().max(320).default('') }),
    message: ({ session, browser, body, clientAddress: address }) => ({
      session,
      token: browser.sessionToken ?? '',
      email: body.email,
      languages: browser.languages.header,
      address,
    }),
    replies: {
      sent: page(200, guestCodePage),
      invalid_email: page(200, guestAddressPage),
      locked: page(429, guestAddressPage),
      not_guest: back,
      busy,
    },
  }),
  route(guests, 'proveOwnEmail', {
    ...own,
    method: 'POST',
    path: '/auth/account/email/code',
    operationId: 'proveOwnEmail',
    summary: 'Keep the account of a guest with the code of the mail',
    body: pageForm({ code: z.string().max(64).default('') }),
    message: ({ session, browser, body, clientAddress: address }) => ({
      session,
      token: browser.sessionToken ?? '',
      code: body.code,
      address,
    }),
    replies: {
      proved: back,
      wrong: page(200, guestCodePage),
      taken: page(409, guestCodePage),
      locked: page(429, guestCodePage),
      not_guest: back,
      busy,
    },
  }),
]
