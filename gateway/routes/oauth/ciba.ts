/** The CIBA endpoint and the inbox of users (OpenID Connect CIBA Core 1.0 section 7). */
import { z } from 'zod'
import {
  backchannel,
  type CibaRefused,
  type InboxDecided,
  type InboxPerson,
  type InboxRefused,
} from '../../../actors/oauth/tokens/device-and-ciba/protocol.js'
import type { BrowserSession } from '../../../actors/identity/sign-in/sessions/protocol.js'
import type { Principal } from '../../../actors/domain/principal.js'
import {
  INBOX_PAGE,
  inboxDecidedPage,
  inboxPage,
  nothingToGrantPage,
} from '../../pages/oauth/ciba-inbox.js'
import { requestGonePage } from '../../pages/identity/account.js'
import { ShownScopes } from '../../pages/oauth/shown-scopes.js'
import {
  choice,
  empty,
  formFields,
  oauthError,
  page,
  pageForm,
  problem,
  type Route,
  reply,
  route,
  seeOther,
} from '../../route.js'
import { ClientFields, countedByClient, oauthRefused, proofRefused, tokenRequest } from './oauth.js'

const REQUESTS = '/api/v1/identity/ciba/requests'
const TAGS = ['CIBA']
const time = z.iso.datetime()

const CibaForm = z
  .object({
    scope: z.string().max(4096).meta({ description: 'Contains `openid`.' }),
    login_hint: z
      .string()
      .max(320)
      .optional()
      .meta({ description: 'E-mail address or `sub`. Exactly one hint is required.' }),
    login_hint_token: z.string().max(16_384).optional().meta({
      description:
        'JWT of type `login-hint+jwt`, signed by the application: `iss`, `aud`, `exp`, `sub_id` (RFC 9493).',
    }),
    id_token_hint: z
      .string()
      .max(16_384)
      .optional()
      .meta({ description: 'An ID token that was issued to this application.' }),
    binding_message: z
      .string()
      .max(64)
      .optional()
      .meta({ description: 'Shown to the user, to compare with the application.' }),
    acr_values: z.string().max(2048).optional(),
    requested_expiry: z
      .string()
      .max(6)
      .optional()
      .meta({ description: '30 to 600 seconds. Default: 300.' }),
    user_code: z.string().max(256).optional().meta({ description: 'Ignored.' }),
    audience: z.string().max(2048).optional(),
    resource: z.string().max(2048).optional().meta({ description: 'May repeat (RFC 8707).' }),
    tenant_id: z.uuid().optional(),
    tenant_slug: z.string().max(63).optional(),
    ...ClientFields,
  })
  .meta({ id: 'BackchannelAuthenticationRequest' })

const CibaResponse = z
  .object({
    auth_req_id: z.string().meta({ description: 'Secret, for polling only.' }),
    expires_in: z.int().min(1),
    interval: z.int().min(1).meta({ description: 'Minimum seconds between two polls.' }),
  })
  .meta({ id: 'BackchannelAuthenticationResponse' })

const describe = ({ description }: CibaRefused) => ({ description })

const start = route(backchannel, 'authorizeBackchannel', {
  method: 'POST',
  path: '/bc-authorize',
  summary: 'Request authentication on another device (CIBA)',
  description:
    'The user finds the request in their inbox. The application polls POST /oauth/token with ' +
    'grant_type=urn:openid:params:grant-type:ciba. The response does not tell whether the user exists.',
  tags: TAGS,
  exposure: 'public',
  security: { scheme: 'client' },
  errors: 'oauth',
  onceOnly: true,
  capabilities: ['oidc.ciba'],
  throttle: countedByClient('token'),
  body: formFields(CibaForm),
  message: tokenRequest,
  replies: {
    started: reply(200, CibaResponse, ({ authReqId, expiresInSecs, intervalSecs }) => ({
      auth_req_id: authReqId,
      expires_in: expiresInSecs,
      interval: intervalSecs,
    })),
    ciba_refused: choice<CibaRefused, CibaRefused['error']>(({ error }) => error, {
      expired_login_hint_token: oauthError(400, 'expired_login_hint_token', describe),
      invalid_binding_message: oauthError(400, 'invalid_binding_message', describe),
    }),
    proof_refused: proofRefused,
    oauth_refused: oauthRefused,
  },
})

const InboxRequest = z
  .object({
    id: z.uuid(),
    client_id: z.uuid(),
    client_name: z.string(),
    scope: z.string(),
    binding_message: z.string().optional(),
    acr_values: z.string().optional(),
    created_at: time,
    expires_at: time,
  })
  .meta({ id: 'BackchannelRequest' })

/** An access token may list and deny its user's pending requests, like delegations. */
const person = { scheme: 'person', scopes: ['delegations:manage'] } as const
/** An approval gives authority to another application, so it needs the user on a page of the service. */
const page_call = { scheme: 'page_call' } as const

type Refused<T extends InboxRefused['tag']> = Extract<InboxRefused, { tag: T }>
const STEP_UP = 'This needs a recent sign-in with a second factor.'
const step_up_needed = problem<Refused<'step_up_needed'>, 'unauthorized'>(
  401,
  'unauthorized',
  ({ level, maxAgeSecs }) => ({
    error: 'insufficient_user_authentication',
    detail: STEP_UP,
    errorDescription: STEP_UP,
    headers: {
      'www-authenticate':
        'Bearer error="insufficient_user_authentication", ' +
        'error_description="This needs a recent sign-in with a second factor", ' +
        `acr_values="${level === 3 ? 'aal3' : 'aal3 aal2'}"` +
        (maxAgeSecs === null ? '' : `, max_age="${maxAgeSecs}"`),
    },
  }),
)

function personOf(request: {
  readonly session: BrowserSession | null
  readonly principal: Principal | null
}): InboxPerson {
  const { session, principal } = request
  if (principal !== null) return { by: 'token', principal }
  if (session !== null) return { by: 'session', session }
  throw new Error('the route has no authenticated caller')
}

const list = route(backchannel, 'listBackchannelRequests', {
  method: 'GET',
  path: REQUESTS,
  summary: 'List pending CIBA requests of the user, newest first',
  tags: TAGS,
  exposure: 'public',
  security: person,
  description:
    'A token needs a sign-in with a second factor. 401 names what is missing (RFC 9470).',
  message: (request) => ({ person: personOf(request) }),
  replies: {
    step_up_needed,
    listed: reply(200, z.array(InboxRequest), ({ requests }) =>
      requests.map((one) => ({
        id: one.id,
        client_id: one.clientId,
        client_name: one.clientName,
        scope: one.scopes.join(' '),
        ...(one.bindingMessage === null ? {} : { binding_message: one.bindingMessage }),
        ...(one.acrAsked === null ? {} : { acr_values: one.acrAsked }),
        created_at: one.createdAt.toISOString(),
        expires_at: one.expiresAt.toISOString(),
      })),
    ),
  },
})

const One = z.object({ id: z.string().max(64) })
const answers = {
  decided: empty<InboxDecided>(204),
  unknown_request: problem<Refused<'unknown_request'>, 'not-found'>(404, 'not-found', {
    detail: 'The user has no pending request with this id.',
  }),
  step_up_needed,
  nothing_to_grant: problem<Refused<'nothing_to_grant'>, 'forbidden'>(403, 'forbidden', {
    detail: 'The user has none of the requested scopes.',
  }),
}

const decision = { method: 'POST', tags: TAGS, exposure: 'public', params: One } as const

const approve = route(backchannel, 'approveBackchannelRequest', {
  ...decision,
  security: page_call,
  path: `${REQUESTS}/{id}/approve`,
  summary: 'Approve a CIBA request',
  description: 'Needs a second factor and a recent sign-in. 401 names what is missing (RFC 9470).',
  message: ({ session, params, clientAddress }) => ({
    person: { by: 'session' as const, session },
    requestId: params.id,
    address: clientAddress,
  }),
  replies: answers,
})

const deny = route(backchannel, 'denyBackchannelRequest', {
  ...decision,
  security: person,
  path: `${REQUESTS}/{id}/deny`,
  summary: 'Deny a CIBA request',
  description: 'Needs a second factor and a recent sign-in. 401 names what is missing (RFC 9470).',
  message: (request) => ({
    person: personOf(request),
    requestId: request.params.id,
    address: request.clientAddress,
  }),
  replies: answers,
})

const pages = {
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'session' },
  errors: 'page',
} as const

const show = route(backchannel, 'showInbox', {
  ...pages,
  method: 'GET',
  path: INBOX_PAGE,
  summary: 'Page with the pending CIBA requests of the user',
  message: ({ session }) => ({ session }),
  replies: { listed: page(200, inboxPage) },
})

const send = route(backchannel, 'answerInbox', {
  ...pages,
  method: 'POST',
  path: `${INBOX_PAGE}/{id}`,
  summary: 'Approve or deny a CIBA request on the page',
  params: One,
  body: pageForm({ action: z.enum(['approve', 'deny']), scope: ShownScopes }),
  message: ({ session, browser, params, body, clientAddress }) => ({
    session,
    sessionToken: browser.sessionToken ?? '',
    requestId: params.id,
    approve: body.action === 'approve',
    shown: body.scope,
    address: clientAddress,
  }),
  replies: {
    decided: page(200, inboxDecidedPage),
    unknown_request: page(404, requestGonePage),
    nothing_to_grant: page(403, nothingToGrantPage),
    interaction: seeOther(({ location }: { location: string }) => ({ location })),
  },
})

export const cibaRoutes: readonly Route[] = [start, list, approve, deny, show, send]
