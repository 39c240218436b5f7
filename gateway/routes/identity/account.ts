/** The account page: sessions, second factors, consents and delegations. */
import { z } from 'zod'
import { account } from '../../../actors/identity/sign-in/account/protocol.js'
import { connections } from '../../../actors/vault/vault/connections/protocol.js'
import { delegation } from '../../../actors/agents/delegation/protocol.js'
import {
  accountPage,
  accountPartGonePage,
  refusedProfilePage,
} from '../../pages/identity/account.js'
import { newTotpPage } from '../../pages/identity/login.js'
import { newCodesPage } from '../../pages/identity/passkeys.js'
import { choice, page, pageForm, type Route, route, seeOther } from '../../route.js'
import { ACCOUNT_PAGE, onward, ownOf, toAccount } from '../hosted-pages.js'

const Id = z.object({ id: z.string().max(64) })
const noFields = pageForm({})
const gone = page(404, accountPartGonePage)

const show = route(account, 'showAccount', {
  ...ACCOUNT_PAGE,
  method: 'GET',
  path: '/auth/account',
  summary: 'Account page: sessions, second factors, consents and delegations',
  message: ({ session }) => ({ session }),
  replies: { seen: page(200, accountPage) },
})

const TypedClaim = z.string().max(4096).default('')

const saveProfile = route(account, 'saveOwnProfile', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/profile',
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
  replies: { saved: toAccount, profile_refused: page(200, refusedProfilePage), sign_in: onward },
})

const revokeSession = route(account, 'revokeOwnSession', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/sessions/{id}/revoke',
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
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/factors/{id}/remove',
  summary: 'Remove a second factor',
  params: Id,
  body: noFields,
  message: ({ session, browser, params }) => ({
    ...ownOf({ session, browser }),
    factorId: params.id,
  }),
  replies: { removed: toAccount, unknown_factor: gone, sign_in: onward },
})

const withdrawConsent = route(account, 'withdrawConsent', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/consents/{id}/withdraw',
  summary: 'Withdraw the consent of an application',
  params: Id,
  body: noFields,
  message: ({ session, params }) => ({ session, clientId: params.id }),
  replies: { withdrawn: toAccount, unknown_consent: gone },
})

const revokeDelegation = route(delegation, 'revokeOwnDelegation', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/delegations/{id}/revoke',
  summary: 'Revoke the delegation of an agent',
  params: Id,
  body: noFields,
  message: ({ session, browser, params, clientAddress: address }) => ({
    ...ownOf({ session, browser }),
    delegationId: params.id,
    address,
  }),
  replies: { revoked: toAccount, unknown_delegation: gone, sign_in: onward },
})

const disconnect = route(connections, 'disconnectOwn', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/connections/{id}/disconnect',
  summary: 'Disconnect an account at another service',
  params: Id,
  body: noFields,
  message: ({ session: { tenantId, sub }, params, clientAddress: address }) => ({
    tenantId,
    sub,
    id: params.id,
    address,
  }),
  replies: { removed: toAccount, unknown_connection: gone },
})

const addFactor = route(account, 'addOwnFactor', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/factors',
  summary: 'Set up a second factor',
  body: noFields,
  message: ownOf,
  replies: { sign_in: onward, present: toAccount },
})

const addTotpPage = route(account, 'showNewAuthenticatorApp', {
  ...ACCOUNT_PAGE,
  method: 'GET',
  path: '/auth/account/totp/new',
  summary: 'Page to add an authenticator app to an account with a passkey',
  message: ownOf,
  replies: { page: page(200, newTotpPage), present: toAccount, sign_in: onward },
})

const addTotp = route(account, 'addOwnAuthenticatorApp', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/totp',
  summary: 'Add an authenticator app with its first code',
  onceOnly: true,
  body: pageForm({ code: z.string().max(64).default('') }),
  message: ({ session, browser, body }) => ({
    ...ownOf({ session, browser }),
    code: body.code,
  }),
  replies: {
    added: choice(({ recoveryCodes }) => (recoveryCodes.length === 0 ? 'back' : 'codes'), {
      back: toAccount,
      codes: page(200, newCodesPage),
    }),
    wrong: page(200, newTotpPage),
    present: toAccount,
    sign_in: onward,
  },
})

const renewCodes = route(account, 'replaceOwnRecoveryCodes', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/recovery-codes',
  summary: 'Replace the recovery codes',
  onceOnly: true,
  body: noFields,
  message: ({ session, browser, clientAddress: address }) => ({
    ...ownOf({ session, browser }),
    address,
  }),
  replies: { renewed: page(200, newCodesPage), sign_in: onward },
})

const revokeOthers = route(account, 'revokeOtherOwnSessions', {
  ...ACCOUNT_PAGE,
  method: 'POST',
  path: '/auth/account/sessions/revoke-others',
  summary: 'Sign out everywhere else',
  body: noFields,
  message: ({ session }) => ({ session }),
  replies: { revoked_others: toAccount },
})

export const accountRoutes: readonly Route[] = [
  show,
  saveProfile,
  revokeSession,
  removeFactor,
  addFactor,
  withdrawConsent,
  revokeDelegation,
  disconnect,
  addTotpPage,
  addTotp,
  renewCodes,
  revokeOthers,
]
