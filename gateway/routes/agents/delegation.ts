/** Delegation by device flow. */
import { z } from 'zod'
import {
  DELEGATION_PAGE,
  type DelegationApproval,
  type DelegationRecord,
  delegation,
} from '../../../actors/agents/delegation/protocol.js'
import { isPurpose, purposeForm } from '../../../actors/domain/agents/delegation-intent.js'
import { quotaAddress } from '../../../actors/domain/quota-address.js'
import { showUserCode } from '../../../actors/domain/user-code.js'
import { scopeChallenge } from '../../request/authenticate.js'
import { pageReply, PageQuery, readPage } from '../../request/paging.js'
import {
  decidedPage,
  delegationPage,
  guessesSpentPage,
  nothingHeldPage,
  passkeyWantedPage,
  requestOverPage,
  unknownRequestPage,
} from '../../pages/agents/delegation.js'
import { busyPage } from '../../pages/identity/login.js'
import { callerOf } from '../../request/caller.js'
import type { CodeOf } from '../../response/problems.js'
import { presenter } from '../../response/presenter.js'
import { json, page, pageForm, problem, type Route, reply, route, seeOther } from '../../route.js'

const TAGS = ['Delegation']
const DEVICE = '/api/v1/agents/delegations/device'
const DELEGATIONS = '/api/v1/delegations'
const time = z.iso.datetime()

/** An agent with a direct token, that is without an `act` claim. */
const directAgent = {
  tags: TAGS,
  exposure: 'public',
  security: {
    scheme: 'bearer',
    controlPlaneTokens: 'owner',
    subjects: ['agent'],
    direct: 'required',
  },
} as const

const StartRequest = z
  .object({
    audience: z.string().min(1).max(2048).optional().meta({
      description: 'The audience of an application of the tenant; default the issuer.',
    }),
    scope: z.string().max(4096).meta({ description: 'Scopes, separated by spaces.' }),
    purpose: z
      .string()
      .overwrite(purposeForm)
      .refine(isPurpose, {
        error: 'must have 1 to 500 characters, without control and bidirectional formatting ones',
      })
      .optional()
      .meta({
        description:
          'What the agent wants to do, in words that the person reads on the page. Line breaks become spaces.',
        minLength: 1,
        maxLength: 500,
        example: 'Deploy the documentation site',
      }),
  })
  .meta({ id: 'StartDelegation' })

const StartResponse = z
  .object({
    device_code: z.string().meta({ description: 'A secret for polling, shown once.' }),
    user_code: z.string(),
    user_code_display: z.string(),
    verification_uri: z.string().meta({ description: 'A path, relative to the base URL.' }),
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
      description:
        'DPoP if the token of the request is DPoP-bound; the new token has the same key.',
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
    user: z
      .object({ id: z.uuid(), email: z.string(), display_name: z.string() })
      .optional()
      .meta({ description: 'The person; absent for agents that see their own delegations only.' }),
    scope: z.string(),
    audience: z.string(),
    purpose: z.string().nullable().meta({
      description: 'As the agent stated it and the person saw it. Null if the agent stated none.',
    }),
    purpose_hash: z.string().nullable().meta({
      description: 'SHA-256 of the purpose in UTF-8, base64url.',
    }),
    policy_hash: z.string().meta({
      description:
        'SHA-256, base64url, of the RFC 8785 form of audience, expires_at, limits (an empty object) and scopes (an array).',
    }),
    status: z.enum(['active', 'revoked', 'expired']),
    acr: z.string().meta({ description: 'Authentication context of the approval.' }),
    amr: z.array(z.string()),
    auth_time: time,
    created_at: time,
    last_used_at: time.nullable().meta({
      description: 'When the agent last got a token by it. Null before the first.',
    }),
    expires_at: time,
    revoked_at: time.nullable(),
  })
  .meta({ id: 'Delegation' })

const bytes = z.string().meta({ description: 'base64url' })

const ReadDelegation = Delegation.extend({
  approval: z
    .object({
      statement: z.string().meta({
        description: 'What was approved, as JSON (RFC 8785). Its SHA-256 is the challenge.',
      }),
      credential_id: bytes,
      public_key: z.string().meta({ description: 'COSE key (RFC 9052 section 7), base64url.' }),
      client_data_json: bytes,
      authenticator_data: bytes,
      signature: bytes,
      approved_at: time,
    })
    .nullable()
    .meta({
      description:
        'The assertion of a passkey over the approval (WebAuthn section 7.2); null without one.',
    }),
}).meta({ id: 'ReadDelegation' })

const RevokedDelegation = z
  .object({ id: z.uuid(), status: z.literal('revoked'), revoked_at: time })
  .meta({ id: 'RevokedDelegation' })

const text = (value: Uint8Array) => Buffer.from(value).toString('base64url')
const approvalJson = (approval: DelegationApproval) => ({
  statement: approval.statement,
  credential_id: text(approval.credentialId),
  public_key: text(approval.publicKey),
  client_data_json: text(approval.clientDataJson),
  authenticator_data: text(approval.authenticatorData),
  signature: text(approval.signature),
  approved_at: approval.approvedAt.toISOString(),
})

const shown = presenter(Delegation)
const delegationJson = (record: DelegationRecord) =>
  shown({ ...record, scope: record.scopes.join(' ') })

/** The errors of RFC 8628 section 3.5, as problem documents. */
const refusal = (error: CodeOf<'bad-request'>, detail: string) =>
  problem(400, 'bad-request', { error, detail, errorDescription: detail })
const waiting = (error: CodeOf<'bad-request'>, detail: string) =>
  problem(400, 'bad-request', ({ intervalSecs }: { intervalSecs: number }) => ({
    error,
    detail,
    errorDescription: detail,
    headers: { 'retry-interval': String(intervalSecs) },
  }))

const agentRoutes: readonly Route[] = [
  route(delegation, 'startDelegation', {
    method: 'POST',
    path: DEVICE,
    summary: 'Request a delegation from a person',
    description:
      'The agent shows the user code and the link to the person and polls with the device code. ' +
      'The person grants the requested scopes that they hold.',
    ...directAgent,
    capabilities: ['agents.device_delegation'],
    throttle: [{ policy: 'device', by: 'caller' }],
    onceOnly: true,
    body: json(StartRequest),
    message: (request) => ({
      caller: callerOf(request),
      scope: request.body.scope,
      audience: request.body.audience ?? null,
      purpose: request.body.purpose ?? null,
    }),
    replies: {
      started: reply(200, StartResponse, ({ deviceCode, userCode, expiresInSecs, ...rest }) => ({
        device_code: deviceCode,
        user_code: userCode,
        user_code_display: showUserCode(userCode),
        verification_uri: `${DELEGATION_PAGE}/${userCode}`,
        verification_uri_complete: `${DELEGATION_PAGE}/${userCode}?complete=true`,
        expires_in: expiresInSecs,
        interval: rest.intervalSecs,
      })),
      invalid_scope: problem(400, 'bad-request', ({ scopes }) => {
        const detail =
          scopes.length === 0
            ? 'The scope is empty.'
            : `Unknown, or only for operators of the deployment: ${scopes.join(' ')}.`
        return {
          error: 'invalid_scope',
          detail,
          errorDescription: detail,
          errors: [
            {
              pointer: '#/scope',
              detail: 'is empty or contains a scope that the agent may not request',
            },
          ],
        }
      }),
      invalid_target: refusal(
        'invalid_target',
        'The audience is neither this service nor an application of the tenant.',
      ),
    },
  }),
  route(delegation, 'pollDelegation', {
    method: 'POST',
    path: `${DEVICE}/token`,
    summary: 'Poll for the token of a delegation',
    description:
      'Returns 400 authorization_pending until the person decides, and slow_down for polls faster ' +
      'than the interval, which adds five seconds to it. Retry-Interval is the current interval.',
    ...directAgent,
    onceOnly: true,
    body: json(PollRequest),
    message: ({ body, principal, clientAddress }) => ({
      principal,
      deviceCode: body.device_code,
      address: clientAddress,
    }),
    replies: {
      granted: reply(200, DelegatedToken, (granted) => ({
        access_token: granted.accessToken,
        token_type: granted.tokenType,
        expires_in: granted.expiresInSecs,
        scope: granted.scopes.join(' '),
        ...(granted.refreshToken === null ? {} : { refresh_token: granted.refreshToken }),
      })),
      pending: waiting('authorization_pending', 'The person has not decided yet.'),
      slow_down: waiting('slow_down', 'Polled too fast. Wait for Retry-Interval seconds.'),
      denied: refusal('access_denied', 'The person denied the request or revoked the delegation.'),
      expired: refusal('expired_token', 'The request has expired. Start a new one.'),
      invalid: refusal(
        'invalid_grant',
        'The device code is unknown, was issued to another agent, or is redeemed.',
      ),
      policy_denied: problem(403, 'policy-denied', {
        reason: 'access_policy',
        detail: 'An access policy of the tenant refuses this token.',
      }),
    },
  }),
]

const pages = {
  tags: ['Hosted pages'],
  exposure: 'public',
  security: { scheme: 'browser' },
  errors: 'page',
  // Limits the guessing of user codes.
  throttle: [{ policy: 'device', by: 'address' }],
} as const

const UserCode = z.object({ user_code: z.string().max(64) })
const decision = pageForm({ session: z.string().max(64) })
const approval = pageForm({
  session: z.string().max(64),
  credential: z
    .string()
    .max(32 * 1024)
    .default(''),
})
const notFound = {
  unknown_request: page(404, unknownRequestPage),
  guesses_spent: page(429, guessesSpentPage),
  busy: page(503, busyPage),
}
const requestOver = page(410, requestOverPage)
const elsewhere = seeOther(({ location }: { location: string }) => ({ location }))

const pageRoutes: readonly Route[] = [
  route(delegation, 'showDelegation', {
    ...pages,
    method: 'GET',
    path: `${DELEGATION_PAGE}/{user_code}`,
    summary: 'Page on which a person approves or denies a delegation',
    description:
      'Returns 404 for an unknown code, with a form to type it again, 429 after too many of them, and 410 for an expired or decided request, ' +
      'both before any sign-in. The person who decided sees the outcome.',
    params: UserCode,
    query: z.object({
      complete: z.string().max(16).optional(),
      user_code: z
        .string()
        .max(64)
        .optional()
        .meta({ description: 'Replaces the code in the path: typed again after an unknown one.' }),
    }),
    message: ({ params, query, browser, clientAddress }) => ({
      userCode: query.user_code ?? params.user_code,
      sessionToken: browser.sessionToken,
      countedFor: quotaAddress(clientAddress),
    }),
    replies: {
      asked: page(200, delegationPage),
      decided: page(200, decidedPage),
      sign_in: elsewhere,
      ...notFound,
      request_over: requestOver,
    },
  }),
  route(delegation, 'approveDelegation', {
    ...pages,
    method: 'POST',
    path: `${DELEGATION_PAGE}/{user_code}/approve`,
    summary: 'Approve a delegation',
    description:
      'Form of the page. Needs a recent sign-in with a second factor. Write scopes also need an assertion of a passkey ' +
      'over the approval, if the person has one: without it the response is the page again, with 403.',
    params: UserCode,
    body: approval,
    message: ({ params, body, browser, clientAddress: address }) => ({
      userCode: params.user_code,
      sessionToken: browser.sessionToken,
      sessionId: body.session,
      countedFor: quotaAddress(address),
      credential: body.credential,
      address,
    }),
    replies: {
      back: elsewhere,
      nothing_held: page(403, nothingHeldPage),
      passkey_wanted: page(403, passkeyWantedPage),
      sign_in: elsewhere,
      ...notFound,
      request_over: requestOver,
    },
  }),
  route(delegation, 'denyDelegation', {
    ...pages,
    method: 'POST',
    path: `${DELEGATION_PAGE}/{user_code}/deny`,
    summary: 'Deny a delegation',
    description: 'Form of the page.',
    params: UserCode,
    body: decision,
    message: ({ params, body, browser, clientAddress: address }) => ({
      userCode: params.user_code,
      sessionToken: browser.sessionToken,
      sessionId: body.session,
      countedFor: quotaAddress(address),
      address,
    }),
    replies: {
      back: elsewhere,
      sign_in: elsewhere,
      ...notFound,
      request_over: requestOver,
    },
  }),
]

const OneParams = z.object({ delegation_id: z.string().max(64) })
const unknownDelegation = problem(404, 'not-found', { detail: 'There is no such delegation.' })
const mayNotSee = problem(403, 'insufficient-scope', (_outcome, { baseUrl }) => ({
  detail: 'An application needs the scope delegations:manage to see delegations.',
  headers: scopeChallenge(baseUrl, ['delegations:manage']),
}))

const recordRoutes: readonly Route[] = [
  route(delegation, 'listDelegations', {
    method: 'GET',
    path: DELEGATIONS,
    summary: 'List delegations, newest first',
    description:
      'A person sees the delegations they approved, an agent those it received. With ' +
      'delegations:manage an agent, an application or an administrator sees all of the tenant.',
    tags: TAGS,
    exposure: 'internal',
    security: { scheme: 'bearer', controlPlaneTokens: 'owner' },
    query: PageQuery,
    message: ({ query, principal }) => ({ principal, ...readPage(query) }),
    replies: {
      listed: pageReply(Delegation, ({ delegations }) => delegations.map(delegationJson)),
      may_not_see: mayNotSee,
    },
  }),
  route(delegation, 'readDelegation', {
    method: 'GET',
    path: `${DELEGATIONS}/{delegation_id}`,
    summary: 'Read a delegation',
    tags: TAGS,
    exposure: 'internal',
    security: { scheme: 'bearer', controlPlaneTokens: 'owner' },
    params: OneParams,
    message: (request) => ({
      caller: callerOf(request),
      delegationId: request.params.delegation_id,
    }),
    replies: {
      found: reply(200, ReadDelegation, ({ delegation: record, approval }) => ({
        ...delegationJson(record),
        approval: approval && approvalJson(approval),
      })),
      unknown_delegation: unknownDelegation,
      may_not_see: mayNotSee,
    },
  }),
  route(delegation, 'revokeDelegation', {
    method: 'POST',
    path: `${DELEGATIONS}/{delegation_id}/revoke`,
    summary: 'Revoke a delegation',
    description:
      'For the person who approved it, or an administrator, with a token of a recent sign-in at the ' +
      'highest level of their account: aal3 with a device-bound passkey, else aal2. Otherwise the ' +
      'response is a step-up challenge (401, RFC 9470). Idempotent.',
    tags: TAGS,
    exposure: 'public',
    security: {
      scheme: 'bearer',
      controlPlaneTokens: 'owner',
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
