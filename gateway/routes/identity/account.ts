/** The account page: sessions, second factors, consents and delegations. */
import { z } from 'zod'
import { account } from '../../../actors/identity/accounts/protocol.js'
import { delegation } from '../../../actors/agents/delegation/protocol.js'
import {
  accountPage,
  accountPartGonePage,
  refusedProfilePage,
} from '../../pages/identity/account.js'
import { newTotpPage } from '../../pages/identity/login.js'
import { newCodesPage } from '../../pages/identity/passkeys.js'
import { choice, page, pageForm, type Route, route, seeOther } from '../../route.js'

const shared = {
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'session' },
  errors: 'page',
} as const

const Id = z.object({ id: z.string().max(64) })
const noFields = pageForm({})
const gone = page(404, accountPartGonePage)
const back = seeOther(() => ({ location: '/auth/account' }))
const signIn = seeOther(({ location }: { location: string }) => ({ location }))

const show = route(account, 'showAccount', {
  ...shared,
  method: 'GET',
  path: '/auth/account',
  operationId: 'showAccount',
  summary: 'Account page: sessions, second factors, consents and delegations',
  message: ({ session }) => ({ session }),
  replies: { seen: page(200, accountPage) },
})

const TypedClaim = z.string().max(4096).default('')

const saveProfile = route(account, 'saveOwnProfile', {
  ...shared,
  method: 'POST',
  path: '/auth/account/profile',
  operationId: 'saveOwnProfile',
  summary: 'Change the name and the profile claims of the user',
  description:
    'An empty field removes the claim. Claims for which the tenant has its own value stay. A phone number that ' +
    'changes is unverified.',
  body: pageForm({
    name: TypedClaim,
    given_name: TypedClaim,
    family_name: TypedClaim,
    picture: TypedClaim,
    locale: TypedClaim,
    zoneinfo: TypedClaim,
    phone_number: TypedClaim,
  }),
  message: ({ session, browser, body, clientAddress: address }) => {
    const { name, given_name, family_name, picture, locale, zoneinfo, phone_number } = body
    const typed = { name, given_name, family_name, picture, locale, zoneinfo, phone_number }
    return { session, token: browser.sessionToken ?? '', typed, address }
  },
  replies: { saved: back, profile_refused: page(200, refusedProfilePage), sign_in: signIn },
})

const revokeSession = route(account, 'revokeOwnSession', {
  ...shared,
  method: 'POST',
  path: '/auth/account/sessions/{id}/revoke',
  operationId: 'revokeOwnSession',
  summary: 'End one of the user’s own sessions',
  params: Id,
  body: noFields,
  message: ({ session, params }) => ({ session, sessionId: params.id }),
  replies: {
    revoked: seeOther(({ own }) =>
      own ? { location: '/auth/login', session: null } : { location: '/auth/account' },
    ),
    unknown_session: gone,
  },
})

const removeFactor = route(account, 'removeOwnFactor', {
  ...shared,
  method: 'POST',
  path: '/auth/account/factors/{id}/remove',
  operationId: 'removeOwnFactor',
  summary: 'Remove a second factor',
  params: Id,
  body: noFields,
  message: ({ session, browser, params }) => ({
    session,
    token: browser.sessionToken ?? '',
    factorId: params.id,
  }),
  replies: { removed: back, unknown_factor: gone, sign_in: signIn },
})

const withdrawConsent = route(account, 'withdrawConsent', {
  ...shared,
  method: 'POST',
  path: '/auth/account/consents/{id}/withdraw',
  operationId: 'withdrawConsent',
  summary: 'Withdraw the consent of an application',
  params: Id,
  body: noFields,
  message: ({ session, params }) => ({ session, clientId: params.id }),
  replies: { withdrawn: back, unknown_consent: gone },
})

const revokeDelegation = route(delegation, 'revokeOwnDelegation', {
  ...shared,
  method: 'POST',
  path: '/auth/account/delegations/{id}/revoke',
  operationId: 'revokeOwnDelegation',
  summary: 'Revoke the delegation of an agent',
  params: Id,
  body: noFields,
  message: ({ session, browser, params, clientAddress: address }) => ({
    session,
    token: browser.sessionToken ?? '',
    delegationId: params.id,
    address,
  }),
  replies: { revoked: back, unknown_delegation: gone, sign_in: signIn },
})

const addFactor = route(account, 'addOwnFactor', {
  ...shared,
  method: 'POST',
  path: '/auth/account/factors',
  operationId: 'addOwnFactor',
  summary: 'Set up a second factor',
  body: noFields,
  message: ({ session, browser }) => ({ session, token: browser.sessionToken ?? '' }),
  replies: { sign_in: signIn, present: back },
})

const addTotpPage = route(account, 'showNewAuthenticatorApp', {
  ...shared,
  method: 'GET',
  path: '/auth/account/totp/new',
  operationId: 'showNewAuthenticatorApp',
  summary: 'Page to add an authenticator app to an account with a passkey',
  message: ({ session, browser }) => ({ session, token: browser.sessionToken ?? '' }),
  replies: { page: page(200, newTotpPage), present: back, sign_in: signIn },
})

const addTotp = route(account, 'addOwnAuthenticatorApp', {
  ...shared,
  method: 'POST',
  path: '/auth/account/totp',
  operationId: 'addOwnAuthenticatorApp',
  summary: 'Add an authenticator app with its first code',
  onceOnly: true,
  body: pageForm({ code: z.string().max(64).default('') }),
  message: ({ session, browser, body }) => ({
    session,
    token: browser.sessionToken ?? '',
    code: body.code,
  }),
  replies: {
    added: choice(({ recoveryCodes }) => (recoveryCodes.length === 0 ? 'back' : 'codes'), {
      back: seeOther(() => ({ location: '/auth/account' })),
      codes: page(200, newCodesPage),
    }),
    wrong: page(200, newTotpPage),
    present: back,
    sign_in: signIn,
  },
})

const renewCodes = route(account, 'replaceOwnRecoveryCodes', {
  ...shared,
  method: 'POST',
  path: '/auth/account/recovery-codes',
  operationId: 'replaceOwnRecoveryCodes',
  summary: 'Replace the recovery codes',
  onceOnly: true,
  body: noFields,
  message: ({ session, browser, clientAddress: address }) => ({
    session,
    token: browser.sessionToken ?? '',
    address,
  }),
  replies: { renewed: page(200, newCodesPage), sign_in: signIn },
})

const revokeOthers = route(account, 'revokeOtherOwnSessions', {
  ...shared,
  method: 'POST',
  path: '/auth/account/sessions/revoke-others',
  operationId: 'revokeOtherOwnSessions',
  summary: 'Sign out everywhere else',
  body: noFields,
  message: ({ session }) => ({ session }),
  replies: { revoked_others: back },
})

export const accountRoutes: readonly Route[] = [
  show,
  saveProfile,
  revokeSession,
  removeFactor,
  addFactor,
  withdrawConsent,
  revokeDelegation,
  addTotpPage,
  addTotp,
  renewCodes,
  revokeOthers,
]
