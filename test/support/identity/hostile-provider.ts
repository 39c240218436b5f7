/** An OpenID Connect provider with responses controlled by a test. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { CompactSign, exportJWK, generateKeyPair, UnsecuredJWT } from 'jose'
import { type Certificate, makeCertificate } from '../service/certificates.js'
import { helperEnds } from '../endings.js'

type Json = Record<string, unknown>
type Endpoint = 'transmitter' | 'discovery' | 'token' | 'jwks' | 'userinfo'

export type Mood = {
  /** Overrides the claims of a valid ID token; undefined removes one. */
  claims?: Json
  /** `EdDSA` has a key in the key set, and the metadata does not have it. */
  alg?: 'ES256' | 'EdDSA' | 'none' | 'HS256'
  /** Further members of the header of the ID token. */
  header?: Json
  /** Rewrites the claims as they are written. */
  text?: (claims: string) => string
  /** Signs with a key that is not in the key set. */
  foreignKey?: boolean
  /** Signs with a new key, and has only that one in the key set. */
  turnedKey?: boolean
  /** Further or other members of the token response. */
  tokenMembers?: Json
  /** Overrides the discovery document. */
  metadata?: Json
  userinfo?: Json
  /** How documents are sent. */
  written?: { readonly type: string; readonly before?: string }
  /** Replaces the response of an endpoint. */
  answer?: Partial<Record<Endpoint, (response: ServerResponse) => void>>
}

export interface HostileProvider {
  readonly issuer: string
  readonly pem: string
  readonly certificate: Certificate
  /** Its behaviour from now on. */
  mood: Mood
  /** Received requests, by endpoint. */
  readonly asked: Endpoint[]
  /** Token requests, as forms. */
  readonly redeemed: URLSearchParams[]
  /** A logout token for the relying party, signed as `mood` says. `undefined` removes a claim. */
  logoutToken(claims?: Json): string | Promise<string>
  /** A security event for the relying party, likewise. */
  securityEvent(claims?: Json): string | Promise<string>
  /** The nonce of the answered authorization request, for ID tokens. A code `nonce.<nonce>` uses that nonce instead. */
  nonce: string
  close(): Promise<void>
}

const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'

const SESSION_REVOKED = 'https://schemas.openid.net/secevent/caep/event-type/session-revoked'
const newEvent = () => ({
  jti: randomUUID(),
  iat: Math.floor(Date.now() / 1000),
  events: { [SESSION_REVOKED]: {} },
})

export const HOSTILE_SUBJECT = 'mallory'

/** One per test file: two certificates of the same name would be indistinguishable. */
let certificate: Certificate | undefined
process.once('exit', () => certificate?.remove())

export async function hostileProvider(): Promise<HostileProvider> {
  // Files that share a process have their own folders.
  if (certificate === undefined || !existsSync(certificate.keyPath)) certificate = makeCertificate()
  const [own, foreign, edwards] = await Promise.all([
    generateKeyPair('ES256', { extractable: true }),
    generateKeyPair('ES256', { extractable: true }),
    generateKeyPair('EdDSA', { extractable: true }),
  ])
  const jwk = { ...(await exportJWK(own.publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }
  const other = { ...(await exportJWK(edwards.publicKey)), kid: 'k3', alg: 'EdDSA', use: 'sig' }
  const turned = { ...(await exportJWK(foreign.publicKey)), kid: 'k2', alg: 'ES256', use: 'sig' }
  const server = createServer({
    key: readFileSync(certificate.keyPath),
    cert: readFileSync(certificate.certPath),
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `https://localhost:${(server.address() as AddressInfo).port}`
  const provider: HostileProvider = {
    issuer,
    pem: certificate.pem,
    certificate,
    mood: {},
    asked: [],
    redeemed: [],
    nonce: '',
    logoutToken: (claims = {}) => {
      const now = Math.floor(Date.now() / 1000)
      const times = { iat: now, exp: now + 120 }
      const valid = { iss: issuer, aud: 'rp', sub: HOSTILE_SUBJECT, jti: randomUUID(), ...times }
      return signed({ ...valid, events: { [LOGOUT_EVENT]: {} }, ...claims }, 'logout+jwt')
    },
    securityEvent: (claims = {}) =>
      signed({ iss: issuer, aud: 'rp', ...newEvent(), ...claims }, 'secevent+jwt'),
    close: helperEnds(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }),
  }

  function idToken(code: string | null): string | Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    return signed({
      iss: issuer,
      aud: 'rp',
      sub: HOSTILE_SUBJECT,
      nonce: code?.startsWith('nonce.') === true ? code.slice(6) : provider.nonce,
      iat: now,
      exp: now + 300,
      auth_time: now,
      email: 'mallory@evil.example',
      email_verified: true,
      name: 'Mallory',
      ...provider.mood.claims,
    })
  }

  function signed(all: Json, typ?: string): string | Promise<string> {
    const { alg = 'ES256', foreignKey = false, text = (claims: string) => claims } = provider.mood
    const payload = Object.fromEntries(
      Object.entries(all).filter(([, value]) => value !== undefined),
    )
    if (alg === 'none') return new UnsecuredJWT(payload).encode()
    const isTurned = provider.mood.turnedKey === true
    const jws = new CompactSign(new TextEncoder().encode(text(JSON.stringify(payload))))
    if (alg === 'HS256') {
      const secret = new TextEncoder().encode('the client secret of the relying party')
      return jws.setProtectedHeader({ alg, kid: 'k1' }).sign(secret)
    }
    if (alg === 'EdDSA') return jws.setProtectedHeader({ alg, kid: 'k3' }).sign(edwards.privateKey)
    const { privateKey } = foreignKey || isTurned ? foreign : own
    const kid = isTurned ? 'k2' : 'k1'
    const header = { ...(typ === undefined ? {} : { typ }), ...provider.mood.header }
    return jws.setProtectedHeader({ alg, kid, ...header }).sign(privateKey)
  }

  async function documentOf(endpoint: Endpoint, form: URLSearchParams): Promise<Json> {
    if (endpoint === 'jwks')
      return { keys: [provider.mood.turnedKey === true ? turned : jwk, other] }
    if (endpoint === 'transmitter') return { issuer, jwks_uri: `${issuer}/jwks` }
    if (endpoint === 'userinfo') return { sub: HOSTILE_SUBJECT, ...provider.mood.userinfo }
    if (endpoint === 'token') {
      const id_token = await idToken(form.get('code'))
      const members = provider.mood.tokenMembers
      return { access_token: 'at', token_type: 'Bearer', id_token, ...members }
    }
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      userinfo_endpoint: `${issuer}/userinfo`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256', 'HS256', 'none'],
      authorization_response_iss_parameter_supported: true,
      ...provider.mood.metadata,
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const endpoint = ENDPOINTS[new URL(request.url ?? '/', issuer).pathname]
    if (endpoint === undefined) {
      response.writeHead(404).end()
      return
    }
    provider.asked.push(endpoint)
    const form = new URLSearchParams(body)
    if (endpoint === 'token') provider.redeemed.push(form)
    const instead = provider.mood.answer?.[endpoint]
    if (instead !== undefined) return instead(response)
    const document = JSON.stringify(await documentOf(endpoint, form))
    const { type, before = '' } = provider.mood.written ?? { type: 'application/json' }
    response.writeHead(200, { 'content-type': type }).end(before + document)
  }
  server.on('request', (request, response) => void answer(request, response))
  return provider
}

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  '/.well-known/openid-configuration': 'discovery',
  '/.well-known/ssf-configuration': 'transmitter',
  '/token': 'token',
  '/jwks': 'jwks',
  '/userinfo': 'userinfo',
}
