/**
 * oidc-provider 9 as the peer: `node peer-server.js memory|postgres jwt|opaque [database url]`.
 * Confidential client, client_secret_post, ES256, rotating refresh tokens, as in the service.
 */
import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { type Configuration, Provider } from 'oidc-provider'
import { freshKeyPair } from '../../runtime/kernel/key-pair.js'
import { postgresAdapter } from './peer-adapter.js'
import { answerRequests, CALLBACK, type Peer } from './protocol.js'

const [, , store, format, url = ''] = process.argv
const ISSUER = 'http://localhost'
const RESOURCE = 'https://api.example'
const clientId = 'bench'
const clientSecret = randomBytes(32).toString('base64url')
const key = freshKeyPair('P-256').privateKey.export({ format: 'jwk' })

const configuration: Configuration = {
  ...(store === 'postgres' ? { adapter: await postgresAdapter(url) } : {}),
  ttl: {
    ClientCredentials: 300,
    AccessToken: 300,
    RefreshToken: 604_800,
    IdToken: 300,
    Grant: 604_800,
  },
  clients: [
    {
      client_id: clientId,
      client_secret: clientSecret,
      grant_types: ['client_credentials', 'authorization_code', 'refresh_token'],
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'client_secret_post',
      introspection_endpoint_auth_method: 'client_secret_post',
      id_token_signed_response_alg: 'ES256',
    },
  ],
  jwks: { keys: [{ ...key, alg: 'ES256', use: 'sig', kid: 'bench' }] },
  cookies: { keys: [randomBytes(16).toString('hex')] },
  scopes: ['openid', 'offline_access', 'applications:read'],
  features: {
    clientCredentials: { enabled: true },
    introspection: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => RESOURCE,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: 'openid offline_access applications:read',
        audience: RESOURCE,
        accessTokenTTL: 300,
        accessTokenFormat: format === 'jwt' ? 'jwt' : 'opaque',
        ...(format === 'jwt' ? { jwt: { sign: { alg: 'ES256' as const } } } : {}),
      }),
    },
  },
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
  pkce: { required: () => false },
}

const provider = new Provider(ISSUER, configuration)
provider.proxy = true
provider.on('server_error', (_, error) => console.error(error))

/** Creates a user's grant for the client, with a code or refresh token. */
async function minted(model: 'AuthorizationCode' | 'RefreshToken'): Promise<string> {
  const client = (await provider.Client.find(clientId))!
  const accountId = randomBytes(8).toString('hex')
  const grant = new provider.Grant({ accountId, clientId })
  grant.addOIDCScope('openid offline_access')
  grant.addResourceScope(RESOURCE, 'applications:read')
  const common = {
    accountId,
    client,
    grantId: await grant.save(),
    gty: 'authorization_code',
    scope: 'openid offline_access applications:read',
    resource: RESOURCE,
    authTime: Math.floor(Date.now() / 1000),
    claims: {},
    sessionUid: accountId,
    expiresWithSession: false,
  }
  if (model === 'RefreshToken') return new provider.RefreshToken(common as never).save()
  const code = { ...common, redirectUri: CALLBACK }
  return new provider.AuthorizationCode(code as never).save()
}

const server = provider.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  const peer: Peer = {
    port,
    credentials: { client_id: clientId, client_secret: clientSecret },
    tokenPath: '/token',
    introspectionPath: '/token/introspection',
    clientScope: 'applications:read',
  }
  answerRequests(peer, {
    codes: (count) =>
      Promise.all(
        Array.from({ length: count }, async () => ({ code: await minted('AuthorizationCode') })),
      ),
    refreshTokens: (count) =>
      Promise.all(Array.from({ length: count }, () => minted('RefreshToken'))),
  })
})
