/** The request for an access token (RFC 6749 sections 4.4 and 6). */
import { createPrivateKey, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { algorithmOf, type OAuthDocument } from '../../domain/vault/secret-documents/oauth.js'
import type { ClientAuth } from '../../../storage/vault/managed-tokens.js'
import type { TokenSource } from './token-source.js'

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const ASSERTION_SECS = 120
const JSON_ANSWER = {
  accept: 'application/json',
  'accept-encoding': 'identity',
  'user-agent': 'svc',
} as const

export type TokenRequest = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** How a client authenticates. `basic` and `post` are tried one after the other where the document names no method. */
export type Method = 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt' | 'none'

/** The methods of a document, in the order of trial. @param known the one that the upstream accepted last. */
export function methodsOf({ document }: TokenSource, known: ClientAuth | null): readonly Method[] {
  const { auth_method: method, client_secret: secret, private_key: key } = document
  if (method !== undefined) return [method]
  if (key !== undefined) return ['private_key_jwt']
  if (secret === undefined) return ['none']
  return known === 'post'
    ? ['client_secret_post', 'client_secret_basic']
    : ['client_secret_basic', 'client_secret_post']
}

export async function tokenRequest(
  { document }: TokenSource,
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
  const headers: Record<string, string> = {
    ...JSON_ANSWER,
    'content-type': 'application/x-www-form-urlencoded',
  }
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

/** RFC 7523 section 3. Each request has another one, because upstreams accept a `jti` once. */
function clientAssertion(document: OAuthDocument, nowSecs: number): Promise<string> {
  const { client_id: client, token_url: audience, kid } = document
  const key = createPrivateKey(document.private_key!)
  return new SignJWT({ jti: randomUUID() })
    .setProtectedHeader({ alg: algorithmOf(key)!, typ: 'JWT', ...(kid && { kid }) })
    .setIssuer(client)
    .setSubject(client)
    .setAudience(audience)
    .setIssuedAt(nowSecs)
    .setExpirationTime(nowSecs + ASSERTION_SECS)
    .sign(key)
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1)
}
