/** A client that signs in with the URL of its metadata document, and the browser of its user. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { apiResource } from '../../../actors/domain/entities/api-resource.js'
import { apiResourceTable } from '../../../storage/oauth/api-resources.js'
import { insertObservedClient } from '../../../storage/oauth/observed-clients.js'
import { openBrowser, type Page, type TestBrowser } from '../pages/browser.js'
import { rowOf } from '../storage/row-of.js'
import { sql } from '../storage/sql.js'
import type { Json } from '../api.js'
import type { Workspace } from '../identity/person.js'
import type { TestService } from '../service.js'
import { CLIENT_CALLBACK } from './document-server.js'
import { isConsent } from './relying-party.js'

export const DEFAULT_SLUG = 'harbour-default'

/** Makes the tenant of the workspace the default one of a service with SVC_TENANT__DEFAULT_TENANT_SLUG. */
export async function makeDefault({ db }: TestService, { tenantId }: Workspace): Promise<void> {
  const text = 'update tenants set slug = $2 where id = $1'
  await sql(db.database, text, [tenantId, DEFAULT_SLUG])
}

/** A protected resource of the tenant, for any client: a request for it says the tenant. */
export async function protectedResource(
  { db }: TestService,
  tenantId: string,
  resource = `https://files.example/${randomUUID()}`,
): Promise<string> {
  const scopes = [{ name: 'files:read', description: 'Read files', kind: 'read' }] as const
  const row = rowOf(apiResource, { tenantId, resource, name: 'Files', scopes })
  await db.database.tenant(tenantId, (tx) => apiResourceTable.insert(tx, row))
  return resource
}

export type Begun = { readonly path: string; readonly verifier: string }

export function begin(clientId: string, more: Readonly<Record<string, string>> = {}): Begun {
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: CLIENT_CALLBACK,
    scope: 'openid email',
    state: 'a state',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...more,
  })
  return { path: `/oauth/authorize?${query}`, verifier }
}

/** Signs the user in if needed. @returns the consent page, the answer, or an error page. */
export async function arrived(
  browser: TestBrowser,
  person: Pick<Workspace, 'email' | 'password'>,
  path: string,
): Promise<Page> {
  const page = await browser.follow(await browser.get(path))
  if (!page.path.startsWith('/auth/login')) return page
  const { email, password } = person
  return browser.follow(await browser.submit(page, { email, password }))
}

export type TokenAnswer = {
  readonly status: number
  readonly body: Json
  readonly headers: Headers
}

export async function post(
  baseUrl: string,
  path: string,
  form: Readonly<Record<string, string>>,
): Promise<TokenAnswer> {
  const answer = await fetch(baseUrl + path, { method: 'POST', body: new URLSearchParams(form) })
  const text = await answer.text()
  const body = (text.startsWith('{') ? JSON.parse(text) : {}) as Json
  return { status: answer.status, body, headers: answer.headers }
}

/** The code of a client, with the consent of the user. */
export async function codeOf(
  running: TestService,
  person: Workspace,
  clientId: string,
  more: Readonly<Record<string, string>> = {},
  browser = openBrowser(running),
) {
  const begun = begin(clientId, more)
  const page = await arrived(browser, person, begun.path)
  const answered = isConsent(page) ? await browser.submit(page, { action: 'allow' }) : page
  const callback = new URL(answered.location ?? 'about:blank')
  const code = callback.searchParams.get('code')
  if (code === null)
    throw new Error(`no code: ${answered.status} ${answered.location} ${answered.html}`)
  const form = {
    grant_type: 'authorization_code',
    client_id: clientId,
    code,
    redirect_uri: more['redirect_uri'] ?? CLIENT_CALLBACK,
    code_verifier: begun.verifier,
  }
  return { browser, page, callback, form, asked: isConsent(page) }
}

/** A client that the tenant has seen. @returns the id of its row. */
export async function observed({ db }: TestService, tenantId: string): Promise<string> {
  const id = randomUUID()
  const now = new Date()
  const clientId = `https://client.example/${id}.json`
  await db.database.tenant(tenantId, (tx) =>
    insertObservedClient(tx, {
      tenantId,
      id,
      clientId,
      clientName: 'Wanderer',
      members: {
        name: 'client.example',
        clientType: 'public',
        tokenEndpointAuthMethod: 'none',
        redirectUris: [CLIENT_CALLBACK],
        postLogoutRedirectUris: [],
        backchannelLogoutUri: null,
        allowedOrigins: [],
        grantTypes: ['authorization_code'],
        scopes: ['openid'],
        jwks: null,
        jwksUri: null,
        dpopBoundAccessTokens: false,
        requirePushedAuthorizationRequests: false,
        idTokenSignedResponseAlg: 'ES256',
      },
      document: { client_id: clientId },
      documentSha256: '0'.repeat(64),
      decisionSha256: '0'.repeat(64),
      now,
      grantsUntil: now,
    }),
  )
  return id
}
