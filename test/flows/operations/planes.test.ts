/** One process per plane on one database. */
import test from 'ava'
import { jwtVerify, createRemoteJWKSet } from 'jose'
import { bootstrap, callerOf, type Json, REGISTER } from '../../support/agents/journey.js'
import { testService, type TestService } from '../../support/service.js'
import { until } from '../../support/service/watch.js'

const plane = (name: string, peerOf?: TestService, more: Record<string, string> = {}) =>
  testService({
    peerOf,
    environment: {
      SVC_RUNTIME_PLANE: name,
      SVC_OPENAPI__EXPOSURE: 'public',
      SVC_DEPLOYMENT__ALLOW_ALL_IN_ONE_RUNTIME_PLANE: 'false',
      ...more,
    },
  })

const INTERNAL = { SVC_OPENAPI__EXPOSURE: 'internal' }

// The others describe only public routes.
const auth = await plane('auth', undefined, INTERNAL)
const control = await plane('control', auth)
const background = await plane('async', auth)
test.after.always(async () => {
  for (const service of [background, control, auth]) await service.end()
})

test('every plane serves probes and its own routes only', async (t) => {
  for (const { baseUrl } of [auth, control, background]) {
    // A busy machine is unready now and then.
    await until('ready', async () => (await fetch(`${baseUrl}/health/ready`)).ok)
  }
  const statuses = async (path: string) =>
    Promise.all(
      [auth, control, background].map(async ({ baseUrl }) => (await fetch(baseUrl + path)).status),
    )
  t.deepEqual(await statuses('/.well-known/jwks.json'), [200, 200, 404])
  t.deepEqual(await statuses('/api/v1/agents/workspace/bootstrap'), [200, 404, 404])
  t.deepEqual(await statuses('/api/v1/applications'), [404, 401, 404])
  t.deepEqual(await statuses('/oauth/token'), [405, 405, 404])
  t.deepEqual(await statuses('/mcp'), [405, 404, 404])
})

test('a token of the auth plane works on the control plane, which publishes the same keys', async (t) => {
  const { accessToken, tenantId } = await bootstrap(callerOf(auth.baseUrl))
  const keySet = createRemoteJWKSet(new URL(`${control.baseUrl}/.well-known/jwks.json`))
  const { payload } = await jwtVerify(accessToken, keySet, { issuer: auth.issuer })
  t.is(payload['tenant_id'], tenantId)
  const answer = await fetch(`${control.baseUrl}/api/v1/applications`, {
    headers: { authorization: `Bearer ${accessToken}` },
  })
  t.is(answer.status, 200)
  t.is(((await answer.json()) as Json[]).length, 1)
})

test('capabilities, OpenAPI and discovery are the same on every plane', async (t) => {
  const text = async ({ baseUrl }: TestService, path: string) =>
    (await fetch(`${baseUrl}${path}`)).text()
  for (const path of ['/openapi.json', '/api/v1/capabilities']) {
    const whole = await text(auth, path)
    for (const other of [control, background]) t.is(await text(other, path), whole, path)
  }
  const { paths } = JSON.parse(await text(auth, '/openapi.json')) as Json
  t.true(`${REGISTER}/pow` in (paths as Json), 'of the auth plane')
  t.true('/api/v1/applications' in (paths as Json), 'of the control plane')
  for (const name of ['openid-configuration', 'oauth-protected-resource']) {
    const path = `/.well-known/${name}`
    t.is(await text(control, path), await text(auth, path), name)
  }
})

test('only the control plane describes the operator routes', async (t) => {
  const ofControl = await plane('control', auth, { ...INTERNAL, SVC_DPOP__ENABLED: 'false' })
  t.teardown(() => ofControl.end())
  const pathsAt = async ({ baseUrl }: TestService) => {
    const { body } = await callerOf(baseUrl).call('/openapi.json')
    return Object.keys(body['paths'] as Json)
  }
  t.deepEqual(await pathsAt(auth), await pathsAt(control))
  const whole = await pathsAt(ofControl)
  t.true(whole.includes('/api/v1/tenant/settings'))
  t.true(whole.length > (await pathsAt(auth)).length)

  // Capabilities list the enabled features, and nothing else.
  const capabilitiesAt = async ({ baseUrl }: TestService) => {
    const { body } = await callerOf(baseUrl).call('/api/v1/capabilities')
    return body['capabilities'] as readonly string[]
  }
  t.true((await capabilitiesAt(auth)).includes('oauth.dpop'))
  t.false((await capabilitiesAt(ofControl)).includes('oauth.dpop'))
  const { body } = await callerOf(ofControl.baseUrl).call('/.well-known/openid-configuration')
  t.false('dpop_signing_alg_values_supported' in body)
})
