/** Operator invites: the page, and accepting one. */
import { z } from 'zod'
import { login } from '../../../actors/identity/sign-in/protocol.js'
import { workspaces } from '../../../actors/agents/workspaces/protocol.js'
import { lockedPage } from '../../pages/identity/password-recovery.js'
import {
  inviteFaultPage,
  inviteGonePage,
  inviteMessagePage,
  invitePage,
  inviteSentPage,
  inviteUnknownPage,
} from '../../pages/identity/operator-invite.js'
import { page, pageForm, type Route, route } from '../../route.js'
import { busy, HOSTED_PAGE, LinkParams, onward, passwordFaults, signedIn } from '../hosted-pages.js'
import { visitorOf } from '../visitor.js'
import { TypedEmail } from './user-shapes.js'

const shared = {
  ...HOSTED_PAGE,
  path: '/auth/invites/{token}',
  params: LinkParams,
} as const

const unknown = page(404, inviteUnknownPage)
const spent = page(410, inviteGonePage)

const show = route(workspaces, 'readOperatorInvite', {
  ...shared,
  method: 'GET',
  summary: 'Page of an operator invite',
  message: ({ params }) => ({ token: params.token }),
  replies: { valid: page(200, invitePage), unknown_invite: unknown, spent },
})

const fault = page(200, inviteFaultPage)

const accept = route(login, 'acceptOperatorInvite', {
  ...shared,
  method: 'POST',
  summary: 'Accept an operator invite with an address, which gets a mail',
  description:
    'The response is the same whether or not the address has an account. An invite accepts at most five addresses. ' +
    'Under a reserved name such as .test a new account is created and signed in directly.',
  body: pageForm({
    name: z.string().max(120).default(''),
    email: TypedEmail.default(''),
    password: z.string().max(1024).default(''),
  }),
  message: ({ params, body, browser, clientAddress }) => ({
    token: params.token,
    displayName: body.name,
    email: body.email,
    password: body.password,
    browserId: browser.id,
    languages: browser.languages.header,
    visitor: visitorOf({ browser, clientAddress }),
  }),
  replies: {
    sent: page(200, inviteSentPage),
    locked: page(429, lockedPage),
    accepted: signedIn,
    invalid_email: fault,
    ...passwordFaults(fault),
    unknown_invite: unknown,
    spent,
    busy,
  },
})

const messageRoute = {
  ...shared,
  path: '/auth/invites/letters/{token}',
} as const
const letterPage = page(200, inviteMessagePage)

const showLetter = route(login, 'readOperatorInviteLetter', {
  ...messageRoute,
  method: 'GET',
  summary: 'Page behind the link of an operator invite; opening it does not use it up',
  message: ({ params, browser }) => ({ token: params.token, browserId: browser.id }),
  replies: { page: letterPage, spent },
})

const acceptLetter = route(login, 'acceptOperatorInviteLetter', {
  ...messageRoute,
  method: 'POST',
  summary: 'Accept an operator invite by the link in the mail',
  body: pageForm({ password: z.string().max(1024).default('') }),
  message: (request) => ({
    token: request.params.token,
    password: request.body.password,
    browserId: request.browser.id,
    visitor: visitorOf(request),
  }),
  replies: {
    accepted: signedIn,
    sign_in: onward,
    ...passwordFaults(letterPage),
    spent,
    busy,
  },
})

export const inviteRoutes: readonly Route[] = [show, accept, showLetter, acceptLetter]
