/** One process per plane on one database: interface.md, Deployment configuration 2. */
import test from 'ava'
import { jwtVerify, createRemoteJWKSet } from 'jose'
import { bootstrap, callerOf, type Json, REGISTER } from '../support/journey.js'
import { testService, type TestService } from '../support/service.js'

const plane = (name: string, beside?: TestService) =>
  testService({
    beside,
    environment: {
      SVC_RUNTIME_PLANE: name,
      SVC_DEPLOYMENT__ALLOW_ALL_IN_ONE_RUNTIME_PLANE: 'false',
    },
  })

const auth = await plane('auth')
const control = await plane('control', auth)
const background = await plane('async', auth)
test.after.always(async () => {
  for (const service of [background, control, auth]) await service.end()
})

test('every plane answers probes, and only its own routes', async (t) => {
  for (const { baseUrl } of [auth, control, background]) {
    t.is((await fetch(`${baseUrl}/health/ready`)).status, 200)
  }
  const statuses = async (path: string) =>
    Promise.all(
      [auth, control, background].map(async ({ baseUrl }) => (await fetch(baseUrl + path)).status),
    )
  t.deepEqual(await statuses('/.well-known/jwks.json'), [200, 200, 404])
  t.deepEqual(await statuses('/api/v1/agents/workspace/bootstrap'), [200, 404, 404])
  t.deepEqual(await statuses('/api/v1/applications'), [404, 401, 404])
  t.deepEqual(await statuses('/oauth/token'), [405, 405, 404])
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

test('a plane describes and offers what it serves', async (t) => {
  const paths = async (baseUrl: string) => {
    const { body } = await callerOf(baseUrl).call('/openapi.json')
    return Object.keys(body['paths'] as Json)
  }
  t.true((await paths(auth.baseUrl)).includes(`${REGISTER}/pow`))
  t.false((await paths(control.baseUrl)).includes(`${REGISTER}/pow`))
})
