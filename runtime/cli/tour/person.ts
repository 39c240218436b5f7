/**
 * Tour: the authorization code flow. An application redirects a browser to the service, the user
 * signs in and consents on its pages, and the application gets tokens that its own API accepts. The
 * browser is a client that keeps cookies and submits forms: the pages work without script.
 */
import { createHash } from 'node:crypto'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import type { Browser, Page } from '../../clients/client/browser.js'
import { httpClient } from '../../clients/client/http.js'
import { systemClock } from '../../kernel/clock.js'
import { systemRandom } from '../../kernel/random.js'
import { startTourApi } from './api.js'
import {
  basic,
  expect,
  fact,
  type Journey,
  keep,
  member,
  short,
  type Step,
  TourStopped,
} from './journey.js'

/**
 * The redirect URI of the workspace's application. No server listens there: the code is read from
 * the redirect.
 */
export const TOUR_CALLBACK = 'http://127.0.0.1:3000/callback'
const SCOPE = 'openid profile email'
const SECRET_BYTES = 32

const random = systemRandom(systemClock)
const secret = () => Buffer.from(random.bytes(SECRET_BYTES)).toString('base64url')

/** Prints one step of the browser: the redirect or the page. */
function look({ say }: Journey, method: string, page: Page): Page {
  say(`   ${method} ${shown(page.path.split('?')[0]!)}`)
  const [, title = ''] = /<title>([^<]*)<\/title>/.exec(page.html) ?? []
  const [to = '', query = ''] = (page.location ?? '').split('?')
  const names = [...new URLSearchParams(query).keys()].join(', ')
  if (page.location === null) say(`   ${page.status} page: ${title}`)
  else say(`   ${page.status} to ${shown(to)}${names === '' ? '' : ` with ${names}`}`)
  return page
}

/** The flow's handle in a path is secret, so it is cut. */
const shown = (path: string) => path.replace(/\/([\w-]{8})[\w-]{35}$/, '/$1...')

/** Like a browser: follows redirects as long as they lead to the service. */
async function open(journey: Journey, browser: Browser, path: string): Promise<Page> {
  let page = look(journey, 'GET', await browser.get(path))
  while (page.location?.startsWith('/') === true)
    page = look(journey, 'GET', await browser.get(page.location))
  return page
}

async function submit(
  journey: Journey,
  browser: Browser,
  page: Page,
  fields: Readonly<Record<string, string>>,
): Promise<Page> {
  const answer = look(journey, 'POST', await browser.submit(page, fields))
  const to = answer.location
  return to?.startsWith('/') === true ? open(journey, browser, to) : answer
}

/** The page that the steps share. They run one after the other. */
type RequestContext = { page?: Page }

function pageOf({ page }: RequestContext): Page {
  if (page === undefined) throw new TourStopped('the browser has no page open')
  return page
}

/** The steps of one tour, in the browser of one user. */
export function personSteps(browser: Browser): readonly Step[] {
  const visit: RequestContext = {}
  return [
    [
      "An application redirects a user's browser to the service (authorization code, PKCE)",
      async (journey) => {
        const verifier = secret()
        const state = secret()
        const nonce = secret()
        Object.assign(journey.facts, { verifier, state, idNonce: nonce })
        const query = new URLSearchParams({
          response_type: 'code',
          client_id: fact(journey, 'clientId'),
          redirect_uri: TOUR_CALLBACK,
          scope: SCOPE,
          state,
          nonce,
          code_challenge: createHash('sha256').update(verifier).digest('base64url'),
          code_challenge_method: 'S256',
        })
        journey.say(`   scope: ${SCOPE}`)
        visit.page = await open(journey, browser, `/oauth/authorize?${query.toString()}`)
      },
    ],
    [
      "The user signs in on the tenant's page",
      async (journey) => {
        const email = fact(journey, 'personEmail')
        const password = fact(journey, 'personPassword')
        visit.page = await submit(journey, browser, pageOf(visit), { email, password })
      },
    ],
    [
      'and consents; the browser returns to the application with a code',
      async (journey) => {
        const page = await submit(journey, browser, pageOf(visit), { action: 'allow' })
        if (page.location?.startsWith(`${TOUR_CALLBACK}?`) !== true)
          throw new TourStopped(`expected a redirect to the application, got ${page.status}`)
        const answer = new URL(page.location).searchParams
        if (answer.get('state') !== fact(journey, 'state')) throw new TourStopped('another state')
        if (answer.get('iss') !== fact(journey, 'issuer')) throw new TourStopped('another issuer')
        keep(journey, Object.fromEntries(answer), { code: 'code' })
        journey.say('   state and issuer are as expected')
      },
    ],
    [
      'The application redeems the code for tokens',
      async (journey) => {
        const { body } = await expect(journey, 200, {
          method: 'POST',
          path: '/oauth/token',
          headers: { authorization: basic(journey) },
          form: {
            grant_type: 'authorization_code',
            code: fact(journey, 'code'),
            redirect_uri: TOUR_CALLBACK,
            code_verifier: fact(journey, 'verifier'),
          },
        })
        keepTokens(journey, body)
      },
    ],
    [
      'The ID token names the user; it verifies against the published keys',
      async (journey) => {
        const { payload, protectedHeader } = await jwtVerify(
          fact(journey, 'idToken'),
          createLocalJWKSet(await publishedKeys(journey)),
          { issuer: fact(journey, 'issuer'), audience: fact(journey, 'clientId') },
        )
        if (payload['nonce'] !== fact(journey, 'idNonce')) throw new TourStopped('another nonce')
        const { sub, tenant_id, acr, amr } = payload
        journey.say(`   verified: ${short({ alg: protectedHeader.alg, sub, tenant_id, acr, amr })}`)
      },
    ],
    ["The application's API verifies the access token locally, and answers", askTheApi],
    [
      "The service's userinfo endpoint returns the permitted claims",
      async (journey) => {
        await expect(journey, 200, userinfo(journey))
      },
    ],
    [
      'The application refreshes its tokens without a new consent',
      async (journey) => {
        const { body } = await expect(journey, 200, refresh(journey))
        keepTokens(journey, body)
      },
    ],
    [
      'The user signs out; every token of the session ends immediately',
      async (journey) => {
        const hint = new URLSearchParams({ id_token_hint: fact(journey, 'idToken') })
        await open(journey, browser, `/oauth/end-session?${hint.toString()}`)
        await expect(journey, 401, userinfo(journey))
        await expect(journey, 400, refresh(journey))
      },
    ],
  ]
}

const userinfo = (journey: Journey) =>
  ({ method: 'GET', path: '/userinfo', token: fact(journey, 'personToken') }) as const

const refresh = (journey: Journey) =>
  ({
    method: 'POST',
    path: '/oauth/token',
    headers: { authorization: basic(journey) },
    form: { grant_type: 'refresh_token', refresh_token: fact(journey, 'personRefreshToken') },
  }) as const

function keepTokens(journey: Journey, body: unknown): void {
  keep(journey, body, {
    personToken: 'access_token',
    personRefreshToken: 'refresh_token',
    idToken: 'id_token',
  })
}

async function publishedKeys(journey: Journey): Promise<JSONWebKeySet> {
  const { body } = await expect(journey, 200, { method: 'GET', path: '/.well-known/jwks.json' })
  return body as JSONWebKeySet
}

async function askTheApi(journey: Journey): Promise<void> {
  const { body } = await expect(journey, 200, {
    method: 'GET',
    path: `/api/v1/applications/${fact(journey, 'clientId')}`,
    token: fact(journey, 'workspaceToken'),
  })
  const api = await startTourApi({
    issuer: fact(journey, 'issuer'),
    audience: String(member(body, 'audience')),
    tenantId: fact(journey, 'tenant'),
    keys: await publishedKeys(journey),
  })
  journey.say(`   the API listens at ${api.baseUrl}`)
  const there: Journey = { ...journey, http: httpClient(api.baseUrl) }
  try {
    await expect(there, 401, { method: 'GET', path: '/' })
    // A token of the same issuer for another audience.
    await expect(there, 401, { method: 'GET', path: '/', token: fact(journey, 'token') })
    await expect(there, 200, { method: 'GET', path: '/', token: fact(journey, 'personToken') })
  } finally {
    await there.http.close()
    await api.stop()
  }
}
