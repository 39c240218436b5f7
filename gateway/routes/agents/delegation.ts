/** Device delegation. interface.md, Delegation; decisions.md section 3, 17 and 21. */
import { z } from 'zod'
import { type DelegationRecord, delegation } from '../../../actors/agents/delegation/protocol.js'
import { showUserCode } from '../../../actors/domain/user-code.js'
import { scopeChallenge } from '../../request/authenticate.js'
import { nextLink, PageQuery, readPage } from '../../request/paging.js'
import {
  decidedPage,
  delegationPage,
  nothingHeldPage,
  requestOverPage,
  unknownRequestPage,
} from '../../pages/agents/delegation.js'
import { callerOf } from '../../request/caller.js'
import { json, page, pageForm, problem, type Route, reply, route, seeOther } from '../../route.js'

const TAGS = ['Delegation']
const DEVICE = '/api/v1/agents/delegations/device'
const PAGE = '/device/delegation'
const DELEGATIONS = '/api/v1/delegations'
const time = z.iso.datetime()

/** decisions.md section 3, who may poll: an agent, by itself. */
const directAgent = { scheme: 'bearer', subjects: ['agent'], direct: 'required' } as const

const StartRequest = z
  .object({
    audience: z.string().min(1).max(2048).optional().meta({
      description: 'The audience of an application of the tenant; default the issuer.',
    }),
    scope: z.string().max(4096).meta({ description: 'Scopes, separated by spaces.' }),
  })
  .meta({ id: 'StartDelegation' })

const StartResponse = z
  .object({
    device_code: z.string().meta({ description: 'A secret for polling, shown once.' }),
    user_code: z.string(),
    user_code_display: z.string(),
    verification_uri: z.string().meta({ description: 'A path: put the base address before it.' }),
    verification_uri_complete: z.string(),
    expires_in: z.int(),
    interval: z.int(),
  })
  .meta({ id: 'DelegationStarted' })

const PollRequest = z.object({ device_code: z.string().min(1).max(128) }).meta({
  id: 'PollDelegation',
})

const DelegatedToken = z
  .object({
    access_token: z.string(),
    token_type: z.enum(['Bearer', 'DPoP']).meta({
      description: 'DPoP where the token that asks is bound to a key: this one is bound to it too.',
    }),
    expires_in: z.int().min(1),
    scope: z.string(),
    refresh_token: z.string().optional(),
  })
  .meta({ id: 'DelegatedToken' })

const Delegation = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    agent_id: z.uuid(),
    agent_name: z.string(),
    subject: z.string().meta({ description: 'The sub of the person.' }),
    scope: z.string(),
    audience: z.string(),
    status: z.enum(['active', 'revoked', 'expired']),
    acr: z.string().meta({ description: 'How surely the person was known who approved.' }),
    amr: z.array(z.string()),
    auth_time: time,
    created_at: time,
    expires_at: time,
    revoked_at: time.nullable(),
  })
  .meta({ id: 'Delegation' })

const RevokedDelegation = z
  .object({ id: z.uuid(), status: z.literal('revoked'), revoked_at: time })
  .meta({ id: 'RevokedDelegation' })

const delegationJson = (one: DelegationRecord) => ({
  id: one.id,
  tenant_id: one.tenantId,
  agent_id: one.agentId,
  agent_name: one.agentName,
  subject: one.subject,
  scope: one.scopes.join(' '),
  audience: one.audience,
  status: one.status,
  acr: one.acr,
  amr: [...one.amr],
  auth_time: one.authTime.toISOString(),
  created_at: one.createdAt.toISOString(),
  expires_at: one.expiresAt.toISOString(),
  revoked_at: one.revokedAt?.toISOString() ?? null,
})

/** RFC 8628 section 3.5, as a problem document (decisions.md section 3, content type). */
const refusal = (error: string, detail: string) =>
  problem(400, 'bad-request', { error, detail, errorDescription: detail })
const waiting = (error: string, detail: string) =>
  problem(400, 'bad-request', ({ intervalSecs }: { intervalSecs: number }) => ({
    error,
    detail,
    errorDescription: detail,
    headers: { 'retry-interval': String(intervalSecs) },
  }))

const agentRoutes: readonly Route[] = [
  route(delegation, 'start', {
    method: 'POST',
    path: DEVICE,
    operationId: 'startDelegation',
    summary: 'Ask a person for authority',
    description:
      'The agent shows the person the user code and the link, and polls with the device code. What ' +
      'is granted is what was asked for and the person holds.',
    tags: TAGS,
    exposure: 'public',
    security: directAgent,
    capabilities: ['agents.device_delegation'],
    throttle: [{ policy: 'device', by: 'caller' }],
    onceOnly: true,
    body: json(StartRequest),
    message: (request) => ({
      caller: callerOf(request),
      scope: request.body.scope,
      audience: request.body.audience ?? null,
    }),
    replies: {
      started: reply(200, StartResponse, ({ deviceCode, userCode, expiresInSecs, ...rest }) => ({
        device_code: deviceCode,
        user_code: userCode,
        user_code_display: showUserCode(userCode),
        verification_uri: `${PAGE}/${userCode}`,
        verification_uri_complete: `${PAGE}/${userCode}?complete=true`,
        expires_in: expiresInSecs,
        interval: rest.intervalSecs,
      })),
      invalid_scope: problem(400, 'bad-request', ({ scopes }) => {
        const detail =
          scopes.length === 0
            ? 'The scope names nothing.'
            : `Not scopes of this service: ${scopes.join(' ')}.`
        return {
          error: 'invalid_scope',
          detail,
          errorDescription: detail,
          errors: [{ pointer: '#/scope', detail: 'holds no known scope, or an unknown one' }],
        }
      }),
      invalid_target: refusal(
        'invalid_target',
        'The audience is neither this service nor an application of the tenant.',
      ),
    },
  }),
  route(delegation, 'poll', {
    method: 'POST',
    path: `${DEVICE}/token`,
    operationId: 'pollDelegation',
    summary: 'Fetch the token of a delegation, once somebody approved',
    description:
      'Until then 400 with authorization_pending; faster than the interval with slow_down, which ' +
      'adds five seconds to it. Retry-Interval tells the interval in force.',
    tags: TAGS,
    exposure: 'public',
    security: directAgent,
    onceOnly: true,
    body: json(PollRequest),
    message: ({ body, principal }) => ({ principal, deviceCode: body.device_code }),
    replies: {
      granted: reply(200, DelegatedToken, (granted) => ({
        access_token: granted.accessToken,
        token_type: granted.tokenType,
        expires_in: granted.expiresInSecs,
        scope: granted.scopes.join(' '),
        ...(granted.refreshToken === null ? {} : { refresh_token: granted.refreshToken }),
      })),
      pending: waiting('authorization_pending', 'The person has not decided yet.'),
      slow_down: waiting('slow_down', 'Polled too fast: wait for Retry-Interval seconds.'),
      denied: refusal('access_denied', 'The person said no, or took it back.'),
      expired: refusal('expired_token', 'The request has expired: start another one.'),
      invalid: refusal(
        'invalid_grant',
        'The device code is unknown, belongs to another agent, or was redeemed.',
      ),
    },
  }),
]

const pages = {
  tags: ['Hosted pages'],
  exposure: 'public',
  security: { scheme: 'browser' },
  errors: 'page',
  // Whoever guesses user codes has few guesses.
  throttle: [{ policy: 'device', by: 'address' }],
} as const

const UserCode = z.object({ user_code: z.string().max(64) })
const decision = pageForm({ session: z.string().max(64) })
const unknownRequest = page(404, unknownRequestPage)
const requestOver = page(410, requestOverPage)
const elsewhere = seeOther(({ location }: { location: string }) => ({ location }))

const pageRoutes: readonly Route[] = [
  route(delegation, 'show', {
    ...pages,
    method: 'GET',
    path: `${PAGE}/{user_code}`,
    operationId: 'showDelegation',
    summary: 'Page on which a person decides what an agent may do for them',
    description:
      'An unknown code is 404, one that expired or was decided 410, both before any sign-in. ' +
      'Whoever decided sees the outcome.',
    params: UserCode,
    query: z.object({ complete: z.string().max(16).optional() }),
    message: ({ params, browser }) => ({
      userCode: params.user_code,
      sessionToken: browser.sessionToken,
    }),
    replies: {
      asked: page(200, delegationPage),
      decided: page(200, decidedPage),
      sign_in: elsewhere,
      unknown_request: unknownRequest,
      request_over: requestOver,
    },
  }),
  route(delegation, 'approve', {
    ...pages,
    method: 'POST',
    path: `${PAGE}/{user_code}/approve`,
    operationId: 'approveDelegation',
    summary: 'Let the agent act',
    description: 'A form of the page. Needs a second factor and a recent sign-in.',
    params: UserCode,
    body: decision,
    message: ({ params, body, browser, clientAddress: address }) => ({
      userCode: params.user_code,
      sessionToken: browser.sessionToken,
      sessionId: body.session,
      address,
    }),
    replies: {
      back: elsewhere,
      nothing_held: page(403, nothingHeldPage),
      sign_in: elsewhere,
      unknown_request: unknownRequest,
      request_over: requestOver,
    },
  }),
  route(delegation, 'deny', {
    ...pages,
    method: 'POST',
    path: `${PAGE}/{user_code}/deny`,
    operationId: 'denyDelegation',
    summary: 'Refuse the agent',
    description: 'A form of the page.',
    params: UserCode,
    body: decision,
    message: ({ params, body, browser, clientAddress: address }) => ({
      userCode: params.user_code,
      sessionToken: browser.sessionToken,
      sessionId: body.session,
      address,
    }),
    replies: {
      back: elsewhere,
      sign_in: elsewhere,
      unknown_request: unknownRequest,
      request_over: requestOver,
    },
  }),
]

const OneParams = z.object({ delegation_id: z.string().max(64) })
const unknownDelegation = problem(404, 'not-found', { detail: 'There is no such delegation.' })
const mayNotSee = problem(403, 'insufficient-scope', (_outcome, { baseUrl }) => ({
  detail: 'An application sees delegations with the scope delegations:manage.',
  headers: scopeChallenge(baseUrl, ['delegations:manage']),
}))

const recordRoutes: readonly Route[] = [
  route(delegation, 'list', {
    method: 'GET',
    path: DELEGATIONS,
    operationId: 'listDelegations',
    summary: 'List delegations, newest first',
    description:
      'A person sees what they allowed, an agent what it was allowed. With delegations:manage an ' +
      'agent, an application or an administrator sees those of the tenant.',
    tags: TAGS,
    exposure: 'internal',
    security: { scheme: 'bearer' },
    query: PageQuery,
    message: ({ query, principal }) => ({ principal, ...readPage(query) }),
    replies: {
      listed: reply(
        200,
        z.array(Delegation),
        ({ delegations }) => delegations.map(delegationJson),
        ({ next }, context) => nextLink(next, context),
      ),
      may_not_see: mayNotSee,
    },
  }),
  route(delegation, 'read', {
    method: 'GET',
    path: `${DELEGATIONS}/{delegation_id}`,
    operationId: 'readDelegation',
    summary: 'Read a delegation',
    tags: TAGS,
    exposure: 'internal',
    security: { scheme: 'bearer' },
    params: OneParams,
    message: (request) => ({
      caller: callerOf(request),
      delegationId: request.params.delegation_id,
    }),
    replies: {
      found: reply(200, Delegation, (found) => delegationJson(found.delegation)),
      unknown_delegation: unknownDelegation,
      may_not_see: mayNotSee,
    },
  }),
  route(delegation, 'revoke', {
    method: 'POST',
    path: `${DELEGATIONS}/{delegation_id}/revoke`,
    operationId: 'revokeDelegation',
    summary: 'End a delegation at once',
    description:
      'For the person who approved it, or an administrator, with a token of a recent sign-in at the ' +
      'highest level that their account can reach: aal3 with a passkey that stays on its device, ' +
      'else aal2. 401 tells what is missing (RFC 9470). Repeating it changes nothing.',
    tags: TAGS,
    exposure: 'public',
    security: {
      scheme: 'bearer',
      scopes: ['delegations:manage'],
      subjects: ['human'],
      direct: 'required',
    },
    params: OneParams,
    message: (request) => ({
      caller: callerOf(request),
      delegationId: request.params.delegation_id,
    }),
    replies: {
      revoked: reply(200, RevokedDelegation, ({ id, revokedAt }) => ({
        id,
        status: 'revoked' as const,
        revoked_at: revokedAt.toISOString(),
      })),
      unknown_delegation: unknownDelegation,
      step_up_needed: problem(401, 'unauthorized', ({ level, maxAgeSecs }) => ({
        error: 'insufficient_user_authentication',
        detail: 'This needs a recent sign-in with a second factor.',
        errorDescription: 'This needs a recent sign-in with a second factor.',
        headers: {
          'www-authenticate':
            'Bearer error="insufficient_user_authentication", ' +
            'error_description="This needs a recent sign-in with a second factor", ' +
            `acr_values="${level === 3 ? 'aal3' : 'aal3 aal2'}", max_age="${maxAgeSecs}"`,
        },
      })),
    },
  }),
]

export const delegationRoutes: readonly Route[] = [...agentRoutes, ...pageRoutes, ...recordRoutes]
