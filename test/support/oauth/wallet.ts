/** A wallet for tests, which can send every wrong request, and a tenant that issues credentials. */
import { inflateSync } from 'node:zlib'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { Answer, Api, Json, Workspace } from '../api.js'
import { until } from '../service/watch.js'

export const PRE_AUTHORIZED = 'urn:ietf:params:oauth:grant-type:pre-authorized_code'

export type IssuingTenant = Workspace & {
  readonly slug: string
  /** Path of the credential issuer, and its identifier. */
  readonly at: string
  readonly identifier: string
  /** The fixture user of the workspace. */
  readonly userId: string
}

/** A workspace whose tenant issues credentials. */
export const issuingTenant = async (api: Api): Promise<IssuingTenant> =>
  issuing(api, await api.workspace())

/** Lets the tenant of a workspace issue credentials. */
export async function issuing(api: Api, workspace: Workspace): Promise<IssuingTenant> {
  const slug = String(workspace.body['tenant_slug'])
  const on = { json: { credential_issuer_enabled: true }, token: workspace.token }
  const changed = await api.call('PATCH', '/api/v1/tenant/settings', on)
  if (changed.status !== 200) throw new Error(JSON.stringify(changed.body))
  const { rows } = await api.list('/api/v1/tenant-users', workspace.token)
  const at = `/credential-issuers/${slug}`
  const userId = String(rows[0]!['id'])
  return { ...workspace, slug, at, identifier: api.at.issuer + at, userId }
}

export type Offered = { readonly id: string; readonly code: string; readonly body: Json }

export async function offer(api: Api, tenant: IssuingTenant, more: Json = {}): Promise<Offered> {
  const json = {
    credential_configuration_id: 'TenantMembership',
    user_id: tenant.userId,
    ...more,
  }
  const { status, body } = await api.post('/api/v1/credential-offers', tenant.token, json)
  if (status !== 201) throw new Error(`${status}: ${JSON.stringify(body)}`)
  const { grants } = body['credential_offer'] as { grants: Record<string, Record<string, string>> }
  const code = grants[PRE_AUTHORIZED]?.['pre-authorized_code']
  const state = grants['authorization_code']?.['issuer_state']
  return { id: String(body['id']), code: String(code ?? state), body }
}

export function redeem(api: Api, code: string, more: Record<string, string> = {}): Promise<Answer> {
  return api.form('/oauth/token', {
    grant_type: PRE_AUTHORIZED,
    'pre-authorized_code': code,
    ...more,
  })
}

/** The access token of a new offer. */
export async function offeredToken(api: Api, tenant: IssuingTenant, more: Json = {}) {
  const { status, body } = await redeem(api, (await offer(api, tenant, more)).code)
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
  return String(body['access_token'])
}

export async function nonceOf(api: Api, { at }: Pick<IssuingTenant, 'at'>): Promise<string> {
  const { status, body } = await api.post(`${at}/nonce`)
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
  return String(body['c_nonce'])
}

export type WalletKey = {
  readonly alg: 'ES256' | 'EdDSA'
  readonly jwk: JWK
  readonly privateKey: Awaited<ReturnType<typeof generateKeyPair>>['privateKey']
}

export async function walletKey(alg: WalletKey['alg'] = 'ES256'): Promise<WalletKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, jwk: await exportJWK(publicKey), privateKey }
}

export type ProofParts = { readonly header?: Json; readonly claims?: Json }

/** A key proof. A part with the value undefined is left out. */
export function proofOf(
  { alg, jwk, privateKey }: WalletKey,
  { identifier }: Pick<IssuingTenant, 'identifier'>,
  nonce: string,
  { header = {}, claims = {} }: ProofParts = {},
): Promise<string> {
  const payload = { aud: identifier, iat: Math.floor(Date.now() / 1000), nonce, ...claims }
  const protectedHeader = { alg, typ: 'openid4vci-proof+jwt', jwk, ...header }
  return new SignJWT(JSON.parse(JSON.stringify(payload)))
    .setProtectedHeader(JSON.parse(JSON.stringify(protectedHeader)))
    .sign(privateKey)
}

/** A complete credential request with one new key. */
export async function requestCredential(
  api: Api,
  tenant: IssuingTenant,
  token: string,
  more: Json = {},
  key?: WalletKey,
): Promise<Answer> {
  const proof = await proofOf(key ?? (await walletKey()), tenant, await nonceOf(api, tenant))
  return api.post(`${tenant.at}/credential`, token, {
    credential_configuration_id: 'TenantMembership',
    proofs: { jwt: [proof] },
    ...more,
  })
}

/** The parts of an issued SD-JWT VC, with its disclosed claims. No signature is verified. */
export function partsOf(credential: string) {
  const [jwt = '', ...disclosures] = credential.split('~').slice(0, -1)
  const [header = '', payload = ''] = jwt.split('.')
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Json
  const claims = Object.fromEntries(
    disclosures.map((one) => {
      const [salt, name, value] = read(one) as unknown as [string, string, unknown]
      if (Buffer.from(salt, 'base64url').length !== 16) throw new Error('the salt is not 128 bits')
      return [name, value]
    }),
  )
  return { header: read(header), payload: read(payload), claims, disclosures }
}

export function credentialsOf({ status, body }: Answer): readonly string[] {
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
  return (body['credentials'] as { credential: string }[]).map(({ credential }) => credential)
}

/** The status of a credential in its list, read from the payload of the list token. */
export async function statusOf(api: Api, credential: string): Promise<number> {
  const { status } = partsOf(credential).payload
  const { idx, uri } = (status as { status_list: { idx: number; uri: string } }).status_list
  const answer = await fetch(uri.replace(api.at.issuer, api.at.baseUrl))
  const [, payload = ''] = (await answer.text()).split('.')
  const { status_list: list } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as {
    status_list: { bits: number; lst: string }
  }
  const bytes = inflateSync(Buffer.from(list.lst, 'base64url'))
  return (bytes[idx >> 3]! >> (idx & 7)) & 1
}

/** Waits until the list shows that a credential is revoked: it is signed by one process at a time. */
export const shownRevoked = (api: Api, credential: string) =>
  until('the list shows it', async () => (await statusOf(api, credential)) === 1)
