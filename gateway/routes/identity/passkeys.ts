/**
 * Passkeys on hosted pages. The script of the pages requests the options of a ceremony and then submits a form, so
 * every response except the options is a page.
 */
import { z } from 'zod'
import { passkeys } from '../../../actors/identity/sign-in/ways/passkey/protocol.js'
import type { Browser } from '../../request/browser.js'
import { accountPartGonePage } from '../../pages/identity/account.js'
import { codesPage, factorPage, loginPage } from '../../pages/identity/login.js'
import {
  addPasskeyPage,
  enrolmentRefusedPage,
  newCodesPage,
  syncPage,
} from '../../pages/identity/passkeys.js'
import { lastWayInPage } from '../../pages/identity/federated-login.js'
import { choice, page, pageForm, problem, reply, type Route, route } from '../../route.js'
import { busy, Flow, FlowQuery, onward, ownOf, signedIn, toAccount } from '../hosted-pages.js'
import { PASSKEY_SYNC_FIELD, visitorOf } from '../visitor.js'
import { unknownFlow } from '../../request/unknown-flow.js'

const shared = {
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'browser' },
} as const
const paged = { ...shared, method: 'POST', errors: 'page' } as const
const own = { ...paged, security: { scheme: 'session' } } as const

const Credential = z
  .string()
  .max(32 * 1024)
  .default('')
const Name = z.string().max(256).default('')
const Id = z.object({ id: z.string().max(64) })

/** WebAuthn sections 5.4 and 5.5, as JSON; or a redirect target if the step is not needed. */
const Options = z.object({ options: z.looseObject({}).optional(), location: z.string().optional() })
const options = reply(200, Options, ({ options }: { options: object }) => ({
  options: options as Record<string, unknown>,
}))
const elsewhere = reply(200, Options, ({ location }: { location: string }) => ({ location }))
const noFlow = problem(400, 'bad-request', { detail: 'The sign-in has expired. Start again.' })

const stepOf = (request: { browser: Browser; clientAddress: string; body: { flow: string } }) => ({
  flow: request.body.flow,
  browser: request.browser.id,
  visitor: visitorOf(request),
})

const flowForm = pageForm({ flow: Flow })
/** The script sends every field of the form with the options request, including the name. */
const namedFlowForm = pageForm({ flow: Flow, name: Name })
const answerForm = pageForm({ flow: Flow, credential: Credential, ...PASSKEY_SYNC_FIELD })
const namedAnswerForm = pageForm({ flow: Flow, credential: Credential, name: Name })

const Endpoints = z.object({ enroll: z.url(), manage: z.url() }).meta({ id: 'PasskeyEndpoints' })

const endpoints = route(passkeys, 'getPasskeyEndpoints', {
  method: 'GET',
  path: '/.well-known/passkey-endpoints',
  summary: 'The pages to add and manage passkeys, for password managers',
  description:
    'The passkey endpoints document (W3C Well-Known URL for Relying Party Passkey Endpoints).',
  tags: ['Discovery and keys'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  cors: 'public',
  cache: 'public, max-age=3600',
  message: () => ({}),
  replies: {
    endpoints: reply(200, Endpoints, ({ enroll, manage }, { baseUrl }) => ({
      enroll: `${baseUrl}${enroll}`,
      manage: `${baseUrl}${manage}`,
    })),
  },
})

const relatedOrigins = route(passkeys, 'getRelatedOrigins', {
  method: 'GET',
  path: '/.well-known/webauthn',
  summary: 'The origins whose pages may use the passkeys',
  description:
    'Related origins (WebAuthn Level 3 section 5.11). Browsers read it at the host of the relying party id.',
  tags: ['Discovery and keys'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  cors: 'public',
  cache: 'public, max-age=3600',
  capabilities: ['sign_in.related_origins'],
  message: () => ({}),
  replies: {
    origins: reply(
      200,
      z.object({ origins: z.array(z.url()) }).meta({ id: 'RelatedOrigins' }),
      ({ origins }: { readonly origins: readonly string[] }) => ({ origins: [...origins] }),
    ),
  },
})

const signInOptions = route(passkeys, 'getPasskeySignInOptions', {
  ...shared,
  method: 'POST',
  path: '/auth/passkeys/sign-in/options',
  summary: 'Start a sign-in with a passkey',
  body: flowForm,
  message: stepOf,
  replies: { options, unknown_flow: noFlow },
})

const signIn = route(passkeys, 'signInWithPasskey', {
  ...paged,
  path: '/auth/passkeys/sign-in',
  summary: 'Sign in with a passkey',
  body: answerForm,
  message: (request) => ({ ...stepOf(request), credential: request.body.credential }),
  replies: {
    signed_in: signedIn,
    enrolled: page(200, codesPage),
    wrong: page(200, (shown, context) => loginPage(shown, context, 'passkey.wrong')),
    locked: page(429, loginPage),
    unknown_flow: unknownFlow,
    busy,
  },
})

const secondFactorOptions = route(passkeys, 'getPasskeySecondFactorOptions', {
  ...shared,
  method: 'POST',
  path: '/auth/mfa/passkey/options',
  summary: 'Start to use a passkey as second factor',
  body: flowForm,
  message: stepOf,
  replies: { options, onward: elsewhere, unknown_flow: noFlow },
})

const secondFactor = route(passkeys, 'givePasskeySecondFactor', {
  ...paged,
  path: '/auth/mfa/passkey',
  summary: 'Use a passkey as second factor',
  body: answerForm,
  message: (request) => ({ ...stepOf(request), credential: request.body.credential }),
  replies: {
    signed_in: signedIn,
    onward,
    wrong: page(200, (shown, context) => factorPage(shown, context, 'mfa.passkey.wrong')),
    locked: page(429, factorPage),
    unknown_flow: unknownFlow,
    busy,
  },
})

const enrolmentOptions = route(passkeys, 'getPasskeyEnrolmentOptions', {
  ...shared,
  method: 'POST',
  path: '/auth/mfa/enroll/passkey/options',
  summary: 'Start to enrol a passkey',
  body: namedFlowForm,
  message: stepOf,
  replies: { options, onward: elsewhere, unknown_flow: noFlow },
})

const enrol = route(passkeys, 'enrolPasskey', {
  ...paged,
  path: '/auth/mfa/enroll/passkey',
  summary: 'Enrol a passkey as second factor',
  onceOnly: true,
  body: namedAnswerForm,
  message: (request) => ({
    ...stepOf(request),
    credential: request.body.credential,
    name: request.body.name,
  }),
  replies: {
    enrolled: page(200, codesPage),
    signed_in: signedIn,
    onward,
    refused: page(200, enrolmentRefusedPage),
    unknown_flow: unknownFlow,
    busy,
  },
})

const sync = route(passkeys, 'syncPasskeys', {
  ...paged,
  method: 'GET',
  path: '/auth/passkeys/sync',
  summary:
    'Page after a sign-in that tells password managers about passkeys, and lets them create one',
  query: FlowQuery,
  message: (request) => ({
    flow: request.query.flow,
    browser: request.browser.id,
    visitor: visitorOf(request),
  }),
  replies: { page: page(200, syncPage), onward, unknown_flow: unknownFlow },
})

const createConditional = route(passkeys, 'createConditionalPasskey', {
  ...paged,
  path: '/auth/passkeys/conditional',
  summary: 'Add a passkey that the browser created after a sign-in with a password',
  body: namedAnswerForm,
  message: (request) => ({
    ...stepOf(request),
    credential: request.body.credential,
    name: request.body.name,
  }),
  replies: { added: onward, refused: onward, onward, unknown_flow: unknownFlow },
})

const showNew = route(passkeys, 'showNewPasskey', {
  ...own,
  method: 'GET',
  path: '/auth/account/passkeys/new',
  summary: 'Page to add a passkey to the account',
  message: ownOf,
  replies: { page: page(200, addPasskeyPage), sign_in: onward },
})

const newOptions = route(passkeys, 'getNewPasskeyOptions', {
  ...shared,
  security: { scheme: 'session' },
  method: 'POST',
  path: '/auth/account/passkeys/options',
  summary: 'Start to add a passkey to the account',
  body: pageForm({ name: Name }),
  message: ({ session, browser }) => ({
    ...ownOf({ session, browser }),
    browser: browser.id,
  }),
  replies: { options, sign_in: elsewhere },
})

const add = route(passkeys, 'addOwnPasskey', {
  ...own,
  path: '/auth/account/passkeys',
  summary: 'Add a passkey to the account',
  onceOnly: true,
  body: pageForm({ credential: Credential, name: Name }),
  message: ({ session, browser, body }) => ({
    ...ownOf({ session, browser }),
    browser: browser.id,
    credential: body.credential,
    name: body.name,
  }),
  replies: {
    added: choice(({ recoveryCodes }) => (recoveryCodes.length === 0 ? 'back' : 'codes'), {
      back: toAccount,
      codes: page(200, newCodesPage),
    }),
    wrong: page(200, addPasskeyPage),
    sign_in: onward,
  },
})

const gone = page(404, accountPartGonePage)

const rename = route(passkeys, 'renameOwnPasskey', {
  ...own,
  path: '/auth/account/passkeys/{id}/rename',
  summary: 'Rename a passkey',
  params: Id,
  body: pageForm({ name: Name }),
  message: ({ session, browser, params, body }) => ({
    ...ownOf({ session, browser }),
    passkeyId: params.id,
    name: body.name,
  }),
  replies: { renamed: toAccount, unknown_passkey: gone, sign_in: onward },
})

const remove = route(passkeys, 'removeOwnPasskey', {
  ...own,
  path: '/auth/account/passkeys/{id}/remove',
  summary: 'Remove a passkey',
  params: Id,
  body: pageForm({}),
  message: ({ session, browser, params }) => ({
    ...ownOf({ session, browser }),
    passkeyId: params.id,
  }),
  replies: {
    removed: toAccount,
    unknown_passkey: gone,
    last_way_in: page(409, lastWayInPage),
    sign_in: onward,
  },
})

export const passkeyRoutes: readonly Route[] = [
  endpoints,
  relatedOrigins,
  signInOptions,
  signIn,
  secondFactorOptions,
  secondFactor,
  enrolmentOptions,
  enrol,
  sync,
  createConditional,
  showNew,
  newOptions,
  add,
  rename,
  remove,
]
