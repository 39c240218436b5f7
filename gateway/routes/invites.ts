/** The page of an operator invite, and accepting it. decisions.md 2.2, `operator_invite`. */
import { z } from 'zod'
import { login } from '../../actors/login/protocol.js'
import { workspaces } from '../../actors/workspaces/protocol.js'
import { busyPage } from '../pages/login.js'
import {
  inviteFaultPage,
  inviteGonePage,
  invitePage,
  inviteUnknownPage,
} from '../pages/operator-invite.js'
import { page, pageForm, type Route, route, seeOther } from '../route.js'

const shared = {
  path: '/auth/invites/{token}',
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'browser' },
  errors: 'page',
  params: z.object({ token: z.string().min(1).max(128) }),
} as const

const unknown = page(404, inviteUnknownPage)
const spent = page(410, inviteGonePage)

const show = route(workspaces, 'readInvite', {
  ...shared,
  method: 'GET',
  operationId: 'readOperatorInvite',
  summary: 'Page of an operator invite',
  message: ({ params }) => ({ token: params.token }),
  replies: { valid: page(200, invitePage), unknown_invite: unknown, spent },
})

const fault = page(200, inviteFaultPage)

const accept = route(login, 'acceptInvite', {
  ...shared,
  method: 'POST',
  operationId: 'acceptOperatorInvite',
  summary: 'Accept an operator invite: create the account and sign in',
  body: pageForm({
    name: z.string().max(120).default(''),
    email: z.string().max(320).default(''),
    password: z.string().max(1024).default(''),
  }),
  message: ({ params, body, browser, clientAddress }) => ({
    token: params.token,
    displayName: body.name,
    email: body.email,
    password: body.password,
    visitor: {
      token: browser.sessionToken,
      address: clientAddress,
      userAgent: browser.userAgent,
    },
  }),
  replies: {
    accepted: seeOther(({ location, token }) => ({ location, session: token })),
    invalid_email: fault,
    weak_password: fault,
    common_password: fault,
    breached_password: fault,
    email_taken: fault,
    unknown_invite: unknown,
    spent,
    busy: page(503, busyPage),
  },
})

export const inviteRoutes: readonly Route[] = [show, accept]
