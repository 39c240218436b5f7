/** Issuance of credentials over HTTP with a wallet of these tests (OpenID4VCI 1.0). */
import { createHash } from 'node:crypto'
import test from 'ava'
import { sharedApi } from '../../../support/service.js'
import {
  credentialsOf,
  issuingTenant,
  nonceOf,
  offer,
  offeredToken,
  partsOf,
  proofOf,
  redeem,
  requestCredential,
  shownRevoked,
  statusOf,
  walletKey,
} from '../../../support/oauth/wallet.js'

const { api, running } = await sharedApi('plain')
const tenant = await issuingTenant(api)

test('a wallet redeems an offer and gets a membership', async (t) => {
  const offered = await offer(api, tenant)
  t.is(offered.body['status'], 'offered')
  const tokens = await redeem(api, offered.code)
  t.is(tokens.status, 200, JSON.stringify(tokens.body))
  t.is(tokens.body['token_type'], 'Bearer')
  t.is(tokens.body['scope'], 'TenantMembership')
  for (const absent of ['c_nonce', 'refresh_token', 'id_token', 'authorization_details'])
    t.false(absent in tokens.body, absent)
  const key = await walletKey()
  const token = String(tokens.body['access_token'])
  const answer = await requestCredential(api, tenant, token, {}, key)
  t.is(answer.status, 200, JSON.stringify(answer.body))
  t.is(answer.headers['cache-control'], 'no-store')
  const [credential = ''] = credentialsOf(answer)
  const { header, payload, claims } = partsOf(credential)
  t.like(header, { alg: 'ES256', typ: 'dc+sd-jwt' })
  t.is(payload['iss'], tenant.identifier)
  t.is(payload['vct'], `${running.issuer}/credential-types/TenantMembership`)
  t.deepEqual((payload['cnf'] as { jwk: unknown }).jwk, key.jwk)
  t.is(payload['_sd_alg'], 'sha-256')
  t.deepEqual(Object.keys(claims).toSorted(), ['org', 'roles', 'sub', 'tenant'])
  t.like(claims, { tenant: { id: tenant.tenantId }, org: { id: tenant.organizationId } })
  const digests = payload['_sd'] as string[]
  t.true(digests.length >= 4 + 2 && digests.length <= 4 + 5, 'decoys')
  t.deepEqual(digests, digests.toSorted())
  t.is(await statusOf(api, credential), 0)
  const meta = await fetch(String(payload['vct']))
  const bytes = Buffer.from(await meta.arrayBuffer())
  t.is(payload['vct#integrity'], `sha256-${createHash('sha256').update(bytes).digest('base64')}`)
  t.is(meta.headers.get('x-content-type-options'), 'nosniff')

  const read = await api.get(`/api/v1/credential-offers/${offered.id}`, tenant.token)
  t.like(read.body, { id: offered.id, status: 'issued' })
  const { rows } = await api.list('/api/v1/issued-credentials', tenant.token)
  const row = rows.find(({ offer_id: id }) => id === offered.id)
  t.like(row, { status: 'valid', credential_configuration_id: 'TenantMembership' })
  const revoked = await api.post(
    `/api/v1/issued-credentials/${String(row?.['id'])}/revoke`,
    tenant.token,
  )
  t.like(revoked, { status: 200, body: { status: 'revoked' } })
  await shownRevoked(api, credential)
})

test('a batch gets one credential for each key, with its own status', async (t) => {
  const token = await offeredToken(api, tenant)
  const nonce = await nonceOf(api, tenant)
  const keys = [await walletKey(), await walletKey('EdDSA'), await walletKey()]
  const jwt = await Promise.all(keys.map((key) => proofOf(key, tenant, nonce)))
  const answer = await api.post(`${tenant.at}/credential`, token, {
    credential_configuration_id: 'TenantMembership',
    proofs: { jwt },
  })
  const payloads = credentialsOf(answer).map((one) => partsOf(one).payload)
  t.deepEqual(
    payloads.map(({ cnf }) => (cnf as { jwk: unknown }).jwk),
    keys.map(({ jwk }) => jwk),
  )
  t.is(new Set(payloads.map(({ status }) => JSON.stringify(status))).size, 3)
  const notificationId = String(answer.body['notification_id'])
  const notify = (json: unknown) => api.post(`${tenant.at}/notification`, token, json)
  const accepted = { notification_id: notificationId, event: 'credential_accepted' }
  t.is((await notify(accepted)).status, 204)
  t.is((await notify(accepted)).status, 204, 'idempotent')
  const unknown = await notify({ ...accepted, notification_id: crypto.randomUUID() })
  t.like(unknown, { status: 400, body: { error: 'invalid_notification_id' } })
  const odd = await notify({ ...accepted, event: 'credential_eaten' })
  t.like(odd, { status: 400, body: { error: 'invalid_notification_request' } })
})
