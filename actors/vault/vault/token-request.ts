/** The request for an access token (RFC 6749 sections 4.4 and 6, RFC 7523, GitHub Apps). */
import { createPrivateKey, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { GitHubAppDocument } from '../../domain/vault/secret-documents/github-app.js'
import type { OAuthDocument } from '../../domain/vault/secret-documents/oauth.js'
import { algorithmOf } from '../../domain/vault/secret-documents/private-keys.js'
import type { ServiceAccountDocument } from '../../domain/vault/secret-documents/service-account.js'
import type { ClientAuth } from '../../../storage/vault/managed-tokens.js'
import { type TokenSource, tokenUrlOf } from './token-source.js'

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const ASSERTION_SECS = 120
const JSON_ANSWER = {
  accept: 'application/json',
  'accept-encoding': 'identity',
  'user-agent': 'svc',
} as const
const FORM = { ...JSON_ANSWER, 'content-type': 'application/x-www-form-urlencoded' } as const
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const GOOGLE_SCOPE = 'https://www.googleapis.com/auth/cloud-platform'

export type TokenRequest = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** How a client authenticates. `basic` and `post` are tried one after the other where the document names no method. */
export type Method = 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt' | 'none'

/** The methods of a document, in the order of trial. @param known the one that the upstream accepted last. */
export function methodsOf(
  { kind, document }: TokenSource,
  known: ClientAuth | null,
): readonly Method[] {
  if (kind !== 'oauth') return ['none']
  const { auth_method: method, client_secret: secret, private_key: key } = document
  if (method !== undefined) return [method]
  if (key !== undefined) return ['private_key_jwt']
  if (secret === undefined) return ['none']
  return known === 'post'
    ? ['client_secret_post', 'client_secret_basic']
    : ['client_secret_basic', 'client_secret_post']
}

export function tokenRequest(
  { kind, document }: TokenSource,
  method: Method,
  nowSecs: number,
): Promise<TokenRequest> {
  switch (kind) {
    case 'oauth':
      return oauthRequest(document, method, nowSecs)
    case 'github_app':
      return githubRequest(document, nowSecs)
    case 'gcp_service_account':
      return googleRequest(document, nowSecs)
  }
}

async function oauthRequest(
  document: OAuthDocument,
  method: Method,
  nowSecs: number,
): Promise<TokenRequest> {
  const { refresh_token: refreshToken, scope, audience, resource, extra_params: more } = document
  const form = new URLSearchParams(more)
  form.set('grant_type', refreshToken === undefined ? 'client_credentials' : 'refresh_token')
  if (refreshToken !== undefined) form.set('refresh_token', refreshToken)
  if (scope !== undefined) form.set('scope', scope)
  if (audience !== undefined) form.set('audience', audience)
  for (const each of [resource ?? []].flat()) form.append('resource', each)
  const headers: Record<string, string> = { ...FORM }
  if (method === 'client_secret_basic') {
    // RFC 6749 section 2.3.1: both parts are form-encoded.
    const pair = `${formEncoded(document.client_id)}:${formEncoded(document.client_secret!)}`
    headers['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`
  } else {
    form.set('client_id', document.client_id)
    if (method === 'client_secret_post') form.set('client_secret', document.client_secret!)
    if (method === 'private_key_jwt') {
      form.set('client_assertion_type', ASSERTION_TYPE)
      form.set('client_assertion', await clientAssertion(document, nowSecs))
    }
  }
  return { headers, body: form.toString() }
}

/** The token of an installation, good for an hour. GitHub rejects clocks that are ahead, and longer assertions. */
async function githubRequest(
  { app_id: app, private_key: key, repositories, permissions }: GitHubAppDocument,
  nowSecs: number,
): Promise<TokenRequest> {
  const assertion = await signed(key, { iss: String(app) }, [nowSecs - 60, nowSecs + 540])
  return {
    headers: {
      ...JSON_ANSWER,
      accept: 'application/vnd.github+json',
      authorization: `Bearer ${assertion}`,
      'content-type': 'application/json',
      'x-github-api-version': '2022-11-28',
    },
    body: JSON.stringify({ repositories, permissions }),
  }
}

/** RFC 7523 section 2.1. */
async function googleRequest(
  document: ServiceAccountDocument,
  nowSecs: number,
): Promise<TokenRequest> {
  const { client_email: iss, private_key: key, private_key_id: kid, scope } = document
  const { url: aud } = tokenUrlOf({ kind: 'gcp_service_account', document })
  const claims = { iss, aud, scope: scope ?? GOOGLE_SCOPE }
  const assertion = await signed(key, claims, [nowSecs, nowSecs + 3600], kid)
  return {
    headers: FORM,
    body: new URLSearchParams({ grant_type: JWT_BEARER, assertion }).toString(),
  }
}

/** RFC 7523 section 3. Each request has another one, because upstreams accept a `jti` once. */
function clientAssertion(document: OAuthDocument, nowSecs: number): Promise<string> {
  const { client_id: client, token_url: aud, kid, private_key: key } = document
  const claims = { iss: client, sub: client, aud, jti: randomUUID() }
  return signed(key!, claims, [nowSecs, nowSecs + ASSERTION_SECS], kid)
}

function signed(
  pem: string,
  claims: Readonly<Record<string, string>>,
  [iat, exp]: readonly [iat: number, exp: number],
  kid?: string,
): Promise<string> {
  const key = createPrivateKey(pem)
  return new SignJWT({ ...claims, iat, exp })
    .setProtectedHeader({ alg: algorithmOf(key)!, typ: 'JWT', ...(kid && { kid }) })
    .sign(key)
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1)
}
