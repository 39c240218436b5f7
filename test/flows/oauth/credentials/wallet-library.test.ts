/** Stock software: the wallet of @openid4vc, the verifier of @sd-jwt. Names as in the VCIIssuerTestPlan. */
import { randomBytes } from 'node:crypto'
import {
  type CallbackContext,
  clientAuthenticationAnonymous,
  clientAuthenticationNone,
  type Jwk,
  setGlobalConfig,
} from '@openid4vc/oauth2'
import { Openid4vciClient } from '@openid4vc/openid4vci'
import { digest, generateSalt } from '@sd-jwt/crypto-nodejs'
import { getListFromStatusListJWT } from '@sd-jwt/jwt-status-list'
import { SDJwtVcInstance } from '@sd-jwt/sd-jwt-vc'
import test from 'ava'
import { createRemoteJWKSet, jwtVerify, SignJWT } from 'jose'
import type { Json } from '../../../support/api.js'
import { fixtureOf } from '../../../support/agents/delegation.js'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedApi } from '../../../support/service.js'
import { issuingTenant, offer, walletKey, type WalletKey } from '../../../support/oauth/wallet.js'

// The test service has no certificate.
setGlobalConfig({ allowInsecureUrls: true })

const { api, running } = await sharedApi('plain', { transport: 'plain_http' })
const tenant = await issuingTenant(api)

/** The wallet with its key, which also signs DPoP proofs. */
function walletOf({ alg, jwk, privateKey }: WalletKey, clientId?: string): Openid4vciClient {
  const callbacks: Omit<CallbackContext, 'decryptJwe' | 'encryptJwe' | 'verifyJwt'> = {
    hash: (data, algorithm) => digest(data as never, algorithm),
    generateRandom: (bytes) => randomBytes(bytes),
    clientAuthentication:
      clientId === undefined
        ? clientAuthenticationAnonymous()
        : clientAuthenticationNone({ clientId }),
    signJwt: async (_signer, { header, payload }) => ({
      jwt: await new SignJWT(payload as never)
        .setProtectedHeader({ ...header, alg } as never)
        .sign(privateKey),
      signerJwk: jwk as Jwk,
    }),
  }
  return new Openid4vciClient({ callbacks: callbacks as never })
}

/** A verifier that finds the key by the issuer metadata and checks the status. */
function verifier(): SDJwtVcInstance {
  const keys = async (issuer: string) => {
    const url = new URL(issuer)
    const at = `${url.origin}/.well-known/jwt-vc-issuer${url.pathname === '/' ? '' : url.pathname}`
    const metadata = (await (await fetch(at)).json()) as { issuer: string; jwks_uri: string }
    if (metadata.issuer !== issuer) throw new Error('the metadata is of another issuer')
    return createRemoteJWKSet(new URL(metadata.jwks_uri))
  }
  const verifying = async (jwt: string) => {
    const [, payload = ''] = jwt.split('.')
    const { iss } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { iss: string }
    await jwtVerify(jwt, await keys(iss), { algorithms: ['ES256'] })
    return true
  }
  return new SDJwtVcInstance({
    hasher: digest,
    saltGenerator: generateSalt,
    verifier: async (data: string, signature: string) => verifying(`${data}.${signature}`),
    statusListFetcher: async (uri: string) => {
      const answer = await fetch(uri, { headers: { accept: 'application/statuslist+jwt' } })
      return answer.text()
    },
    statusVerifier: async (data: string, signature: string) => verifying(`${data}.${signature}`),
  } as never)
}

async function issued(
  wallet: Openid4vciClient,
  key: WalletKey,
  at: Awaited<ReturnType<Openid4vciClient['resolveIssuerMetadata']>>,
  accessToken: string,
  more: Json = {},
) {
  const { c_nonce: nonce } = await wallet.requestNonce({ issuerMetadata: at })
  const { jwt } = await wallet.createCredentialRequestJwtProof({
    issuerMetadata: at,
    signer: { method: 'jwk', alg: key.alg, publicJwk: key.jwk as Jwk },
    issuedAt: new Date(),
    credentialConfigurationId: 'TenantMembership',
    nonce,
    ...more,
  })
  return wallet.retrieveCredentials({
    issuerMetadata: at,
    accessToken,
    credentialConfigurationId: 'TenantMembership',
    proofs: { jwt: [jwt] },
  })
}

for (const alg of ['ES256', 'EdDSA'] as const)
  test(`oid4vci-1_0-issuer-happy-flow: pre-authorized code with a transaction code, ${alg}`, async (t) => {
    const key = await walletKey(alg)
    const wallet = walletOf(key)
    const { body } = await offer(api, tenant, { tx_code: true })
    const credentialOffer = await wallet.resolveCredentialOffer(String(body['deep_link']))
    t.deepEqual(credentialOffer as unknown, body['credential_offer'])
    const issuerMetadata = await wallet.resolveIssuerMetadata(credentialOffer.credential_issuer)
    const { accessTokenResponse } = await wallet.retrievePreAuthorizedCodeAccessTokenFromOffer({
      credentialOffer,
      issuerMetadata,
      txCode: String(body['tx_code']),
    })
    const { credentialResponse } = await issued(
      wallet,
      key,
      issuerMetadata,
      accessTokenResponse.access_token,
    )
    const credential = String(
      (credentialResponse.credentials as unknown as { credential: string }[])[0]?.credential,
    )
    const verified = await verifier().verify(credential)
    t.like(verified.payload, {
      iss: tenant.identifier,
      tenant: { id: tenant.tenantId },
      org: { id: tenant.organizationId },
    })
    t.is((verified.header as Json)['typ'], 'dc+sd-jwt')
    const notified = await wallet.sendNotification({
      issuerMetadata,
      accessToken: accessTokenResponse.access_token,
      notification: {
        notificationId: String(credentialResponse.notification_id),
        event: 'credential_accepted',
      },
    })
    t.is(notified.response.status, 204)

    const { rows } = await api.list('/api/v1/issued-credentials', tenant.token)
    const row = rows.find(({ offer_id: id }) => id === body['id'])
    await api.post(`/api/v1/issued-credentials/${String(row?.['id'])}/revoke`, tenant.token)
    await t.throwsAsync(verifier().verify(credential), { message: /status/i })
    const { idx, uri } = row!['status_list'] as { idx: number; uri: string }
    const list = getListFromStatusListJWT(await (await fetch(uri)).text())
    t.is(list.getStatus(idx), 1)
  })

test('oid4vci-1_0-issuer-happy-flow: authorization code with issuer_state, and a second person', async (t) => {
  const key = await walletKey()
  const party = await relyingParty(running, tenant, {
    clientType: 'public',
    tokenEndpointAuthMethod: 'none',
    scopes: ['openid', 'TenantMembership'],
  })
  const wallet = walletOf(key, party.clientId)
  const { id, body } = await offer(api, tenant, { grant: 'authorization_code' })
  const credentialOffer = await wallet.resolveCredentialOffer(String(body['deep_link']))
  const issuerMetadata = await wallet.resolveIssuerMetadata(credentialOffer.credential_issuer)
  const begin = () =>
    wallet.createAuthorizationRequestUrlFromOffer({
      clientId: party.clientId,
      credentialOffer,
      issuerMetadata,
      redirectUri: CALLBACK,
      scope: 'TenantMembership',
      additionalRequestPayload: { resource: credentialOffer.credential_issuer },
    })
  const stranger = await api.post('/api/v1/sandbox/fixture-users', tenant.token, {})
  const begun = await begin()
  const theirs = callbackOf(
    await authorized(
      openBrowser(running),
      stranger.body as never,
      new URL(begun.authorizationRequestUrl),
    ),
  )
  t.is(theirs.searchParams.get('error'), 'access_denied')

  const again = await begin()
  const callback = callbackOf(
    await authorized(
      openBrowser(running),
      fixtureOf(tenant),
      new URL(again.authorizationRequestUrl),
    ),
  )
  const { accessTokenResponse } = await wallet.retrieveAuthorizationCodeAccessTokenFromOffer({
    authorizationCode: String(callback.searchParams.get('code')),
    credentialOffer,
    issuerMetadata,
    pkceCodeVerifier: String(again.pkce?.codeVerifier),
    redirectUri: CALLBACK,
  })
  const { credentialResponse } = await issued(
    wallet,
    key,
    issuerMetadata,
    accessTokenResponse.access_token,
    { clientId: party.clientId },
  )
  t.is(credentialResponse.credentials?.length, 1)
  t.like((await api.get(`/api/v1/credential-offers/${id}`, tenant.token)).body, {
    status: 'issued',
  })
  const third = await begin()
  const used = callbackOf(
    await authorized(
      openBrowser(running),
      fixtureOf(tenant),
      new URL(third.authorizationRequestUrl),
    ),
  )
  t.is(used.searchParams.get('error'), 'invalid_request', 'issuer_state is used once')
})
