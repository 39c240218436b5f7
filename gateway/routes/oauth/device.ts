/** The device authorization endpoint and the verification page (RFC 8628). */
import { z } from 'zod'
import {
  backchannel,
  type DeviceAsked,
  type DeviceDecided,
} from '../../../actors/oauth/tokens/device-and-ciba/protocol.js'
import { quotaAddress } from '../../../actors/domain/quota-address.js'
import {
  DEVICE_PAGE,
  deviceCodePage,
  deviceConfirmPage,
  deviceDecidedPage,
} from '../../pages/oauth/device.js'
import { busyPage } from '../../pages/identity/login.js'
import { ShownScopes } from '../../pages/oauth/shown-scopes.js'
import { formFields, page, pageForm, type Route, reply, route, seeOther } from '../../route.js'
import { ClientFields, countedByClient, oauthRefused, proofRefused, tokenRequest } from './oauth.js'

const DeviceForm = z
  .object({
    scope: z.string().max(4096).optional(),
    audience: z.string().max(2048).optional(),
    resource: z.string().max(2048).optional().meta({ description: 'May repeat (RFC 8707).' }),
    tenant_id: z.uuid().optional(),
    tenant_slug: z.string().max(63).optional(),
    ...ClientFields,
  })
  .meta({ id: 'DeviceAuthorizationRequest' })

const DeviceResponse = z
  .object({
    device_code: z.string().meta({ description: 'Secret, for polling only.' }),
    user_code: z.string().meta({ description: 'For the user to type.', example: 'BCDF-GHJK' }),
    verification_uri: z.url(),
    verification_uri_complete: z.url(),
    expires_in: z.int().min(1),
    interval: z.int().min(1).meta({ description: 'Minimum seconds between two polls.' }),
  })
  .meta({ id: 'DeviceAuthorizationResponse' })

const start = route(backchannel, 'authorizeDevice', {
  method: 'POST',
  path: '/oauth/device/code',
  summary: 'Start the device flow',
  description:
    'Returns a code for the user and one for polling POST /oauth/token with ' +
    'grant_type=urn:ietf:params:oauth:grant-type:device_code (RFC 8628).',
  tags: ['OAuth'],
  exposure: 'public',
  security: { scheme: 'client' },
  errors: 'oauth',
  onceOnly: true,
  cors: 'application-origins',
  capabilities: ['oauth.device_authorization'],
  throttle: countedByClient('device'),
  body: formFields(DeviceForm),
  message: tokenRequest,
  replies: {
    started: reply(200, DeviceResponse, (started, { baseUrl }) => ({
      device_code: started.deviceCode,
      user_code: started.userCode,
      verification_uri: `${baseUrl}${DEVICE_PAGE}`,
      verification_uri_complete: `${baseUrl}${DEVICE_PAGE}?user_code=${started.userCode}`,
      expires_in: started.expiresInSecs,
      interval: started.intervalSecs,
    })),
    proof_refused: proofRefused,
    oauth_refused: oauthRefused,
  },
})

const shared = {
  tags: ['Hosted pages'],
  security: { scheme: 'browser' },
  errors: 'page',
  throttle: [{ policy: 'device', by: 'address' }],
} as const

const replies = {
  code_asked: page(200, deviceCodePage),
  code_unknown: page(200, deviceCodePage),
  guesses_spent: page(429, deviceCodePage),
  interaction: seeOther(({ location }: { location: string }) => ({ location })),
  asked: page<DeviceAsked>(200, deviceConfirmPage),
  nothing_to_grant: page(403, deviceConfirmPage),
  busy: page(503, busyPage),
}

const show = route(backchannel, 'showDeviceVerification', {
  ...shared,
  method: 'GET',
  path: DEVICE_PAGE,
  summary: 'Page where a user connects a device',
  exposure: 'public',
  query: z.object({
    user_code: z.string().max(256).optional(),
    ui_locales: z.string().max(256).optional(),
  }),
  message: ({ query, browser, clientAddress }) => ({
    typed: query.user_code ?? null,
    sessionToken: browser.sessionToken,
    address: quotaAddress(clientAddress),
    uiLocales: query.ui_locales ?? null,
  }),
  replies,
})

const send = route(backchannel, 'verifyDevice', {
  ...shared,
  method: 'POST',
  path: DEVICE_PAGE,
  summary: 'Submit a device code, then approve or deny it',
  exposure: 'internal',
  body: pageForm({
    user_code: z.string().max(256).default(''),
    action: z.enum(['approve', 'deny']).optional(),
    session: z.string().max(64).default(''),
    request: z.string().max(64).default(''),
    scope: ShownScopes,
  }),
  message: ({ body, browser, clientAddress }) => ({
    typed: body.user_code,
    action: body.action ?? null,
    sessionId: body.session,
    requestId: body.request,
    scopes: body.scope,
    sessionToken: browser.sessionToken,
    address: quotaAddress(clientAddress),
    uiLocales: null,
  }),
  replies: { ...replies, decided: page<DeviceDecided>(200, deviceDecidedPage) },
})

export const deviceRoutes: readonly Route[] = [start, show, send]
