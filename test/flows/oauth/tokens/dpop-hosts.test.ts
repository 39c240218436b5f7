/**
 * A resource server that received a token and a proof for its own URL replays both here, with its own
 * name in Host (RFC 9449 section 4.3, check 9).
 */
import test from 'ava'
import { createHash } from 'node:crypto'
import { request } from 'undici'
import { bootstrapped } from '../../../support/identity/person.js'
import { proofKey } from '../../../support/identity/proof.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const EVIL = 'evil-rs.example'

test('a proof for another server is refused with any Host', async (t) => {
  const running = await sharedService('plain', { transport: 'plain_http' })
  t.teardown(() => running.end())
  const { tenantId, tenantSlug } = await bootstrapped(running)
  const { clientId, secret } = await relyingParty(
    running,
    { tenantId },
    {
      grantTypes: ['client_credentials'],
      scopes: ['applications:read'],
      dpopBoundAccessTokens: true,
    },
  )
  const key = await proofKey()
  const tokenUrl = `${running.issuer}/oauth/token`
  const basic = `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`
  const send = async (path: string, host: string, headers: Record<string, string>, form = '') => {
    const answer = await request(`${running.baseUrl}${path}`, {
      method: form === '' ? 'GET' : 'POST',
      headers: {
        host,
        ...(form === '' ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
      body: form === '' ? null : form,
    })
    return {
      status: answer.statusCode,
      body: (await answer.body.json()) as Record<string, unknown>,
    }
  }
  const { host, port, protocol } = new URL(running.issuer)
  const ask = async (at: string, htu: string) => {
    const dpop = await key.proof('POST', htu)
    return send('/oauth/token', at, { authorization: basic, dpop }, 'grant_type=client_credentials')
  }
  // At the token endpoint: neither with the attacker's Host, nor its proof with ours.
  for (const at of [host, EVIL])
    t.like(await ask(at, `${protocol}//${EVIL}/oauth/token`), {
      status: 401,
      body: { error: 'invalid_dpop_proof' },
    })
  const issued = await ask(host, tokenUrl)
  t.is(issued.status, 200)

  const token = String(issued.body['access_token'])
  const ath = createHash('sha256').update(token).digest('base64url')
  const path = `/api/v1/applications/${clientId}`
  const use = async (at: string, origin: string) => {
    const dpop = await key.proof('GET', `${origin}${path}`, { ath })
    return send(path, at, { authorization: `DPoP ${token}`, dpop })
  }
  for (const at of [EVIL, `${EVIL}:80`, host, `${tenantSlug}.${host}`]) {
    const replayed = await use(at, `${protocol}//${EVIL}`)
    t.is(replayed.status, 401, at)
    t.is(replayed.body['error'], 'invalid_dpop_proof', at)
  }
  t.is((await use('127.0.0.1:9999', `${protocol}//127.0.0.1:9999`)).status, 401)

  // Honest clients: at the issuer, at the tenant's host, at loopback, behind a proxy that changes Host.
  t.is((await use(host, running.issuer)).status, 200)
  t.is((await use(`${tenantSlug}.${host}`, `${protocol}//${tenantSlug}.${host}`)).status, 200)
  t.is((await use(`127.0.0.1:${port}`, `${protocol}//127.0.0.1:${port}`)).status, 200)
  t.is((await use('backend:8080', running.issuer)).status, 200)
})
