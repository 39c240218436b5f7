/** The authorization and end-session endpoints and their pages. */
import { z } from 'zod'
import {
  authorization,
  type AccountsShown,
  type AnsweredBefore,
  type ConsentAsked,
  type Posted,
  type Refused,
  RESPONSE_MODES,
  type SessionEnded,
} from '../../../actors/oauth/tokens/authorization/protocol.js'
import {
  accountsPage,
  answeredBeforePage,
  consentPage,
  postedPage,
  refusedPage,
  signedOutPage,
} from '../../pages/oauth/authorize.js'
import { ShownScopes } from '../../pages/oauth/shown-scopes.js'
import {
  choice,
  empty,
  formFields,
  page,
  pageForm,
  queryFields,
  type ReplyRule,
  type Route,
  route,
  seeOther,
} from '../../route.js'

const RESUME = '/oauth/authorize/resume'

/** For the documentation only: the actor validates the parameters, including repeated ones. */
export const AuthorizationParameters = z
  .object({
    response_type: z.literal('code'),
    client_id: z.string().max(2048).meta({
      description: 'The id of an application, or the URL of a client metadata document.',
    }),
    redirect_uri: z.string().max(2048),
    scope: z.string().max(4096).optional(),
    state: z.string().max(8192).optional(),
    code_challenge: z.string().max(128).optional(),
    code_challenge_method: z.literal('S256').optional(),
    nonce: z.string().max(2048).optional(),
    response_mode: z
      .enum(RESPONSE_MODES)
      .optional()
      .meta({
        description:
          'Default query. form_post: the browser posts the response to the redirect URI. With jwt the response is one ' +
          'signed parameter.',
      }),
    prompt: z
      .string()
      .max(64)
      .optional()
      .meta({ description: 'none, login, consent, select_account.' }),
    max_age: z.string().max(10).optional().meta({ description: 'In whole seconds.' }),
    tenant_id: z.uuid().optional(),
    tenant_slug: z.string().max(63).optional(),
    request_uri: z.string().max(512).optional().meta({
      description: 'From the PAR endpoint. Only client_id is needed in addition.',
    }),
    acr_values: z.string().max(2048).optional(),
    claims: z.string().max(8192).optional(),
    authorization_details: z.string().max(8192).optional(),
    audience: z.string().max(2048).optional(),
    resource: z.string().max(2048).optional().meta({ description: 'May repeat (RFC 8707).' }),
    login_hint: z.string().max(2048).optional(),
    id_token_hint: z.string().max(16_384).optional(),
    ui_locales: z.string().max(2048).optional(),
    dpop_jkt: z.string().max(64).optional(),
  })
  .meta({ id: 'AuthorizationRequest' })

const EndSessionParameters = z
  .object({
    id_token_hint: z.string().max(16_384),
    client_id: z.string().max(2048).optional(),
    post_logout_redirect_uri: z.string().max(2048).optional(),
    state: z.string().max(8192).optional(),
    ui_locales: z.string().max(2048).optional(),
  })
  .meta({ id: 'EndSessionRequest' })

/** HTML if the browser accepts it, otherwise JSON. Never a redirect. */
const refused: ReplyRule<Refused> = {
  docs: [
    { status: 400, contentType: 'text/html', schema: null },
    ...(
      [
        'invalid_request',
        'invalid_request_uri',
        'invalid_client',
        'invalid_redirect_uri',
        'pkce_required',
        'invalid_target',
      ] as const
    ).map((oauthError) => ({
      status: 400,
      contentType: 'application/json',
      schema: null,
      oauthError,
    })),
    { status: 429, contentType: 'text/html', schema: null },
    {
      status: 429,
      contentType: 'application/json',
      schema: null,
      oauthError: 'rate_limited' as const,
    },
  ],
  render: (outcome, context) =>
    context.browser.wantsPage
      ? {
          form: 'body',
          ...statusOf(outcome),
          contentType: 'text/html; charset=utf-8',
          body: refusedPage(outcome, context),
        }
      : {
          form: 'oauth',
          ...statusOf(outcome),
          error: outcome.error,
          description: outcome.description,
        },
}

function statusOf({ retryAfterSecs }: Refused) {
  return retryAfterSecs === undefined
    ? { status: 400 }
    : { status: 429, headers: { 'retry-after': String(retryAfterSecs) } }
}

const replies = {
  answered: empty(302, ({ location }: { location: string }) => ({ location })),
  posted: page(200, (posted: Posted, context) => ({
    html: postedPage(posted, context),
    formTargets: posted.formTargets,
  })),
  interaction: seeOther(({ location }: { location: string }) => ({ location })),
  accounts: page(200, (accounts: AccountsShown, context) => ({
    html: accountsPage(accounts, `${RESUME}/${accounts.handle}/account`, context),
    formTargets: accounts.formTargets,
  })),
  consent: page(200, (consent: ConsentAsked, context) => ({
    html: consentPage(consent, `${RESUME}/${consent.handle}`, context),
    formTargets: consent.formTargets,
  })),
  refused,
}
/** Replies for a stored request, which can be answered before. */
const storedReplies = {
  ...replies,
  answered_before: page(200, (before: AnsweredBefore, context) => ({
    html: answeredBeforePage(before, context),
  })),
}

const ended = choice<SessionEnded, 'away' | 'here'>(
  ({ location, frames }) => (location === null || frames.length > 0 ? 'here' : 'away'),
  {
    away: {
      docs: [{ status: 302, contentType: null, schema: null }],
      render: ({ location, ownSession }) => ({
        form: 'body',
        status: 302,
        contentType: null,
        body: null,
        headers: { location: location! },
        ...(ownSession ? { session: null } : {}),
      }),
    },
    here: page(200, (outcome, context) => ({
      html: signedOutPage(outcome, context),
      frames: outcome.frames,
      ...(outcome.ownSession ? { session: null } : {}),
    })),
  },
)

const shared = {
  tags: ['OAuth'],
  exposure: 'public',
  errors: 'negotiated',
  throttle: [{ policy: 'authorize', by: 'address' }],
} as const
/** Forms come from other origins: the request changes nothing before the user decides. */
const foreign = { scheme: 'browser', forms: 'foreign' } as const
const Handle = z.object({ handle: z.string().max(64) })

export const authorizeRoutes: readonly Route[] = [
  route(authorization, 'authorize', {
    ...shared,
    method: 'GET',
    path: '/oauth/authorize',
    summary: 'Request sign-in and consent of a user',
    description:
      'The authorization endpoint (RFC 6749 section 3.1, OpenID Connect Core section 3.1.2). Errors ' +
      'are redirected to the client once its redirect URI is verified.',
    security: foreign,
    capabilities: ['oauth.authorization_code', 'oauth.form_post', 'oauth.rar'],
    query: queryFields(AuthorizationParameters),
    message: ({ query, host, browser, clientAddress }) => ({
      address: clientAddress,
      parameters: query,
      isForeignForm: false,
      host,
      sessionToken: browser.sessionToken,
      browserId: browser.id,
    }),
    replies,
  }),
  route(authorization, 'authorize', {
    ...shared,
    method: 'POST',
    path: '/oauth/authorize',
    operationId: 'authorizeByForm',
    summary: 'Request sign-in and consent, as a form',
    security: foreign,
    body: formFields(AuthorizationParameters),
    message: ({ body, host, browser, clientAddress }) => ({
      address: clientAddress,
      parameters: body,
      isForeignForm: browser.isForeignForm,
      host,
      sessionToken: browser.sessionToken,
      browserId: browser.id,
    }),
    replies,
  }),
  route(authorization, 'resumeAuthorization', {
    ...shared,
    exposure: 'internal',
    method: 'GET',
    path: `${RESUME}/{handle}`,
    summary: 'Continue after sign-in',
    security: foreign,
    params: Handle,
    message: ({ params, browser, clientAddress }) => ({
      address: clientAddress,
      handle: params.handle,
      sessionToken: browser.sessionToken,
      browserId: browser.id,
    }),
    replies: storedReplies,
  }),
  route(authorization, 'decideAuthorization', {
    ...shared,
    exposure: 'internal',
    method: 'POST',
    path: `${RESUME}/{handle}`,
    summary: 'Allow or deny an application',
    security: { scheme: 'browser' },
    params: Handle,
    body: pageForm({
      action: z.enum(['allow', 'deny']),
      session: z.string().max(64),
      scope: ShownScopes,
    }),
    message: ({ params, body, browser, clientAddress }) => ({
      address: clientAddress,
      handle: params.handle,
      sessionToken: browser.sessionToken,
      browserId: browser.id,
      sessionId: body.session,
      scopes: body.scope,
      action: body.action,
    }),
    replies: storedReplies,
  }),
  route(authorization, 'chooseAccount', {
    ...shared,
    exposure: 'internal',
    method: 'POST',
    path: `${RESUME}/{handle}/account`,
    summary: 'Choose the account to continue with',
    security: { scheme: 'browser' },
    params: Handle,
    body: pageForm({ account: z.string().max(64) }),
    message: ({ params, body, browser, clientAddress }) => ({
      address: clientAddress,
      handle: params.handle,
      sessionToken: browser.sessionToken,
      browserId: browser.id,
      account: body.account,
    }),
    replies: storedReplies,
  }),
  route(authorization, 'endSession', {
    ...shared,
    method: 'GET',
    path: '/oauth/end-session',
    summary: 'Sign a user out',
    description:
      'OpenID Connect RP-Initiated Logout 1.0. Ends the session of the ID token, then redirects to a ' +
      'registered post_logout_redirect_uri or shows a page.',
    security: foreign,
    capabilities: ['oidc.end_session'],
    query: queryFields(EndSessionParameters),
    message: ({ query, browser }) => ({ parameters: query, sessionToken: browser.sessionToken }),
    replies: { ended, refused },
  }),
  route(authorization, 'endSession', {
    ...shared,
    method: 'POST',
    path: '/oauth/end-session',
    operationId: 'endSessionByForm',
    summary: 'Sign a user out, as a form',
    security: foreign,
    body: formFields(EndSessionParameters),
    message: ({ body, browser }) => ({ parameters: body, sessionToken: browser.sessionToken }),
    replies: { ended, refused },
  }),
]
