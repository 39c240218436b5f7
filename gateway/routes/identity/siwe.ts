/**
 * Sign-in with Ethereum ([siwe]). The script of the pages requests a message, lets the wallet sign it, and submits a
 * form, so every response except the message is a page.
 */
import { z } from 'zod'
import { siwe } from '../../../actors/identity/sign-in/ways/ethereum/protocol.js'
import type { Browser } from '../../request/browser.js'
import { accountPartGonePage } from '../../pages/identity/account.js'
import { lastWayInPage } from '../../pages/identity/federated-login.js'
import { linkWalletPage, walletPage } from '../../pages/identity/siwe.js'
import { page, pageForm, problem, reply, type Route, route } from '../../route.js'
import { busy, Flow, FlowQuery, onward, ownOf, signedIn, toAccount } from '../hosted-pages.js'
import { visitorOf } from '../visitor.js'
import { unknownFlow } from '../../request/unknown-flow.js'

const shared = {
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'browser' },
} as const
const paged = { ...shared, errors: 'page' } as const
const own = { ...paged, security: { scheme: 'session' } } as const

const ORDER = {
  account: z.string().max(64).default(''),
  chain_id: z.string().max(32).default(''),
}
const SIGNED = {
  message: z.string().max(4_096).default(''),
  signature: z.string().max(512).default(''),
}

/** The message to sign; or why none is composed; or a redirect target if the user must sign in first. */
const Composed = z.object({
  message: z.string().optional().describe('ERC-4361 message, to be signed with `personal_sign`.'),
  refused: z.enum(['account', 'chain']).optional(),
  location: z.string().optional(),
})
const composed = {
  message: reply(200, Composed, ({ message }: { message: string }) => ({ message })),
  refused: reply(200, Composed, ({ why }: { why: 'account' | 'chain' }) => ({ refused: why })),
}
const noFlow = problem(400, 'bad-request', { detail: 'The sign-in has expired. Start again.' })

const orderOf = ({
  browser,
  host,
  body,
}: {
  browser: Browser
  host: string
  body: { account: string; chain_id: string }
}) => ({ browser: browser.id, host, account: body.account, chainId: body.chain_id })
const signedOf = ({
  browser,
  host,
  body,
}: {
  browser: Browser
  host: string
  body: { message: string; signature: string }
}) => ({
  browser: browser.id,
  host,
  // Browsers send line breaks of form fields as CRLF.
  message: body.message.replaceAll('\r\n', '\n'),
  signature: body.signature,
})

export const siweRoutes: readonly Route[] = [
  route(siwe, 'showEthereumSignIn', {
    ...paged,
    method: 'GET',
    path: '/auth/login/ethereum',
    summary: 'Page to sign in with Ethereum',
    query: FlowQuery,
    message: (request) => ({ flow: request.query.flow, visitor: visitorOf(request) }),
    replies: { page: page(200, walletPage), onward, unknown_flow: unknownFlow },
  }),
  route(siwe, 'composeSignInMessage', {
    ...shared,
    method: 'POST',
    path: '/auth/login/ethereum/message',
    summary: 'Compose the message that a wallet signs to sign in (ERC-4361)',
    description: 'The nonce is bound to the browser and works once, for siwe.message_ttl_secs.',
    body: pageForm({ flow: Flow, ...ORDER }),
    message: (request) => ({
      flow: request.body.flow,
      visitor: visitorOf(request),
      ...orderOf(request),
    }),
    replies: { ...composed, unknown_flow: noFlow },
  }),
  route(siwe, 'signInWithEthereum', {
    ...paged,
    method: 'POST',
    path: '/auth/login/ethereum',
    summary: 'Sign in with a signed message (ERC-4361)',
    description:
      'An externally owned account signs (EIP-191). The signature proves the account that the Ethereum ' +
      'account was linked to on the account page. It creates no account.',
    body: pageForm({ flow: Flow, ...SIGNED }),
    message: (request) => ({
      flow: request.body.flow,
      visitor: visitorOf(request),
      ...signedOf(request),
    }),
    replies: {
      signed_in: signedIn,
      wrong: page(200, walletPage),
      unlinked: page(200, walletPage),
      locked: page(429, walletPage),
      unknown_flow: unknownFlow,
      busy,
    },
  }),
  route(siwe, 'showNewWallet', {
    ...own,
    method: 'GET',
    path: '/auth/account/wallets/new',
    summary: 'Page to link an Ethereum account',
    message: ownOf,
    replies: { page: page(200, linkWalletPage), sign_in: onward },
  }),
  route(siwe, 'composeLinkMessage', {
    ...shared,
    security: { scheme: 'session' },
    method: 'POST',
    path: '/auth/account/wallets/message',
    summary: 'Compose the message that a wallet signs to be linked (ERC-4361)',
    body: pageForm(ORDER),
    message: (request) => ({
      session: request.session,
      token: request.browser.sessionToken ?? '',
      ...orderOf(request),
    }),
    replies: {
      ...composed,
      sign_in: reply(200, Composed, ({ location }: { location: string }) => ({ location })),
    },
  }),
  route(siwe, 'linkOwnWallet', {
    ...own,
    method: 'POST',
    path: '/auth/account/wallets',
    summary: 'Link an Ethereum account with a signed message',
    body: pageForm(SIGNED),
    message: (request) => ({
      session: request.session,
      token: request.browser.sessionToken ?? '',
      address: request.clientAddress,
      ...signedOf(request),
    }),
    replies: {
      linked: toAccount,
      wrong: page(200, linkWalletPage),
      taken: page(409, linkWalletPage),
      sign_in: onward,
    },
  }),
  route(siwe, 'removeOwnWallet', {
    ...own,
    method: 'POST',
    path: '/auth/account/wallets/{id}/remove',
    summary: 'Remove an Ethereum account from the account',
    params: z.object({ id: z.string().max(64) }),
    body: pageForm({}),
    message: ({ session, browser, params, clientAddress: address }) => ({
      ...ownOf({ session, browser }),
      walletId: params.id,
      address,
    }),
    replies: {
      removed: toAccount,
      unknown_wallet: page(404, accountPartGonePage),
      last_way_in: page(409, lastWayInPage),
      sign_in: onward,
    },
  }),
]
