/** Federated sign-in: pages, and check-sso. */
import { z } from 'zod'
import {
  type FederatedLoginFailed,
  type FederatedLoginFault,
  federatedLogin,
} from '../../../actors/identity/sign-in/ways/federated/protocol.js'
import type { EventRefused as EventFault } from '../../../actors/domain/webhooks/signals.js'
import { idText } from '../../request/ids.js'
import { accountPartGonePage } from '../../pages/identity/account.js'
import {
  awayPage,
  backPage,
  confirmStartPage,
  lastWayInPage,
  federatedLoginFailedPage,
} from '../../pages/identity/federated-login.js'
import {
  choice,
  empty,
  form,
  json,
  oauthError,
  page,
  pageForm,
  problem,
  queryFields,
  raw,
  refusal,
  type Route,
  reply,
  route,
  seeOther,
} from '../../route.js'
import { ACCOUNT_PAGE, HOSTED_PAGE, onward, ownOf, toAccount } from '../hosted-pages.js'
import { visitorOf } from '../visitor.js'
import { SoughtEmail } from './user-shapes.js'

/** As long as a posted logout token. */
const EVENT_BYTES_MAX = 16_384

const failure = (status: number) =>
  page<FederatedLoginFailed>(status, federatedLoginFailedPage(status))
const failed = choice<FederatedLoginFailed, FederatedLoginFault>(({ fault }) => fault, {
  unknown_state: failure(400),
  unknown_flow: failure(400),
  unknown_provider: failure(404),
  unknown_tenant: failure(404),
  unavailable: failure(503),
  invalid_answer: failure(502),
  denied: failure(403),
  unverified_email: failure(403),
  link_first: failure(403),
  not_member: failure(403),
  invited: failure(403),
  suspended: failure(403),
  identity_taken: failure(409),
  session_gone: failure(403),
  not_fresh: failure(403),
})
const signIn = onward

const StartFields = {
  flow: z.string().max(64).optional(),
  provider: z.string().max(64).default(''),
  login_hint: z
    .string()
    .max(320)
    .regex(/^\P{Cc}*$/u)
    .optional(),
}

const start = route(federatedLogin, 'startSso', {
  ...HOSTED_PAGE,
  method: 'GET',
  path: '/auth/sso/start',
  summary: 'Sign in through an identity provider',
  description:
    'Redirects to the provider directly only from the sign-in page of the tenant. If another site linked here, or the ' +
    'browser has a session of another tenant, a page asks the user for confirmation first.',
  query: z.object({
    ...StartFields,
    tenant_id: z.string().max(64).optional(),
    tenant_slug: z.string().max(64).optional(),
    return_to: z.string().max(2048).optional(),
  }),
  message: ({ query, browser, clientAddress: address, host }) => ({
    flow: query.flow ?? null,
    provider: query.provider,
    tenant: { tenantId: query.tenant_id, tenantSlug: query.tenant_slug, host },
    loginHint: query.login_hint ?? null,
    returnTo: query.return_to ?? null,
    from:
      browser.fromOwnPage && query.flow !== undefined ? ('page' as const) : ('elsewhere' as const),
    leaves: null,
    browserId: browser.id,
    visitor: visitorOf({ browser, clientAddress: address }),
  }),
  replies: {
    to_upstream: seeOther(({ url }) => ({ location: url })),
    confirm: page(200, confirmStartPage),
    failed,
  },
})

const confirm = route(federatedLogin, 'startSso', {
  ...HOSTED_PAGE,
  method: 'POST',
  path: '/auth/sso/start',
  operationId: 'confirmSsoStart',
  summary: 'Confirm a sign-in through an identity provider; a session of another tenant ends',
  body: pageForm({ ...StartFields, leaves: z.string().max(64).default('') }),
  message: ({ body, browser, clientAddress: address, host }) => ({
    flow: body.flow ?? null,
    provider: body.provider,
    tenant: { host },
    loginHint: body.login_hint ?? null,
    returnTo: null,
    from: 'form' as const,
    leaves: body.leaves === '' ? null : body.leaves,
    browserId: browser.id,
    visitor: visitorOf({ browser, clientAddress: address }),
  }),
  replies: {
    to_upstream: page(200, awayPage),
    confirm: page(200, confirmStartPage),
    failed,
  },
})

const Callback = z.object({
  // A relayed state names an origin.
  state: z.string().max(640).optional(),
  code: z.string().max(4096).optional(),
  iss: z.string().max(2048).optional(),
  error: z.string().max(256).optional(),
  error_description: z.string().max(2048).optional(),
})

const callback = route(federatedLogin, 'finishSso', {
  ...HOSTED_PAGE,
  method: 'GET',
  path: '/auth/sso/callback/{provider}',
  summary: 'Callback of an identity provider; works once, in the browser that was redirected',
  params: z.object({ provider: z.string().max(64) }),
  query: queryFields(Callback),
  message: ({ params, query, browser, clientAddress: address, host }) => ({
    provider: params.provider,
    parameters: query,
    host,
    browserId: browser.id,
    visitor: visitorOf({ browser, clientAddress: address }),
  }),
  replies: {
    signed_in: page(200, backPage),
    linked: page(200, backPage),
    elsewhere: signIn,
    failed,
  },
})

const link = route(federatedLogin, 'linkOwnIdentity', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/identities',
  summary: 'Link an identity at another provider',
  body: pageForm({ provider: z.string().max(64).default('') }),
  message: ({ session, browser, body, host }) => ({
    ...ownOf({ session, browser }),
    provider: body.provider,
    host,
    browserId: browser.id,
  }),
  replies: { to_upstream: page(200, awayPage), sign_in: signIn, failed },
})

const unlink = route(federatedLogin, 'unlinkOwnIdentity', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/identities/{id}/unlink',
  summary: 'Remove a linked identity',
  params: z.object({ id: z.string().max(64) }),
  body: pageForm({}),
  message: ({ session, browser, params, clientAddress: address }) => ({
    session,
    address,
    token: browser.sessionToken ?? '',
    identityId: params.id,
  }),
  replies: {
    unlinked: toAccount,
    unknown_identity: page(404, accountPartGonePage),
    last_way_in: page(409, lastWayInPage),
    sign_in: signIn,
  },
})

const CheckSso = z
  .object({
    email: SoughtEmail,
    tenant_id: idText().optional(),
    tenant_slug: z.string().max(64).optional(),
  })
  .meta({ id: 'CheckSso' })
const CheckSsoAnswer = z
  .object({
    sso: z.boolean(),
    organization_id: z.uuid().optional(),
    organization_name: z.string().optional(),
    authorize_url: z
      .url()
      .optional()
      .meta({ description: 'Where to redirect the browser of the user.' }),
  })
  .meta({ id: 'CheckSsoAnswer' })

const check = route(federatedLogin, 'checkSso', {
  method: 'POST',
  path: '/auth/check-sso',
  summary: 'Check whether an address uses single sign-on',
  description:
    'Checks the verified domain of the address only: the response is the same ' +
    'whether or not the address has an account.',
  tags: ['OAuth'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  throttle: [{ policy: 'check-sso', by: 'address' }],
  body: json(CheckSso),
  message: ({ body, host }) => ({
    email: body.email,
    tenant: { tenantId: body.tenant_id, tenantSlug: body.tenant_slug, host },
  }),
  replies: {
    routed: reply(200, CheckSsoAnswer, ({ organizationId, organizationName, authorizeUrl }) => ({
      sso: true,
      organization_id: organizationId,
      organization_name: organizationName,
      authorize_url: authorizeUrl,
    })),
    not_routed: reply(200, CheckSsoAnswer, () => ({ sso: false })),
    unknown_tenant: problem(404, 'not-found', { detail: 'There is no such tenant.' }),
    conflicting_tenant: problem(400, 'bad-request', {
      detail: 'Name the tenant by tenant_id or by tenant_slug, not by both.',
    }),
  },
})

const receiveLogout = route(federatedLogin, 'receiveLogout', {
  method: 'POST',
  path: '/auth/sso/{provider}/backchannel-logout',
  summary: 'Receive a logout token of an identity provider or trusted issuer',
  description:
    'OpenID Connect Back-Channel Logout 1.0. Ends the sessions that the provider opened: the ones with this `sid`, or all of `sub`. ' +
    'With the id of a trusted issuer it ends the tokens that its identity assertions gave for `sub`.',
  tags: ['OAuth'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  errors: 'oauth',
  params: z.object({ provider: z.string().max(64) }),
  body: form(z.object({ logout_token: z.string().max(16_384) }).meta({ id: 'LogoutToken' })),
  message: ({ params, body }) => ({ provider: params.provider, token: body.logout_token }),
  replies: {
    logged_out: empty(200),
    refused: oauthError(400, 'invalid_request', ({ detail }: { readonly detail: string }) => ({
      description: detail,
    })),
  },
})

const EventRefused = z
  .object({
    err: z.enum(['invalid_request', 'invalid_key', 'invalid_issuer', 'invalid_audience']),
    description: z.string(),
  })
  .meta({ id: 'SecurityEventRefused' })

const receiveSecurityEvent = route(federatedLogin, 'receiveSecurityEvent', {
  method: 'POST',
  path: '/auth/sso/{provider}/security-events',
  summary: 'Receive a security event of an identity provider or trusted issuer',
  description:
    'Push delivery (RFC 8935) of a Shared Signals stream. Ends the sessions that the provider opened, and for a disabled, purged or compromised account of a provider of a tenant all sessions and delegations of the person there. ' +
    'With the id of a trusted issuer it ends the tokens that its identity assertions gave for the user. An event that was received before is 202 and changes nothing.',
  tags: ['OAuth'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  capabilities: ['sso.security_events'],
  params: z.object({ provider: z.string().max(64) }),
  body: raw(['application/secevent+jwt'], { maxBytes: EVENT_BYTES_MAX }),
  message: ({ params, body }) => ({
    provider: params.provider,
    token: Buffer.from(body).toString('utf8').trim(),
  }),
  replies: {
    received: empty(202),
    refused: refusal(
      reply(
        400,
        EventRefused,
        ({ err, detail }: EventFault) => ({ err, description: detail }),
        () => ({ 'content-language': 'en' }),
      ),
      ({ err }) => err,
    ),
    unavailable: problem(503, 'service-unavailable', {
      detail: 'The event cannot be verified now. Send it again.',
    }),
  },
})

export const federatedLoginRoutes: readonly Route[] = [
  start,
  confirm,
  callback,
  link,
  unlink,
  check,
  receiveLogout,
  receiveSecurityEvent,
]
