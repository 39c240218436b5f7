/** An audience belongs to one tenant, so that no other tenant gets tokens which its resource server accepts. */
import test from 'ava'
import { tenantAgent, type TenantAgent } from '../../../support/identity/tenant-agent.js'
import { sharedService } from '../../../support/service.js'

const APPLICATIONS = '/api/v1/applications'
const RESOURCES = '/api/v1/api-resources'
const running = await sharedService('plain')
const owner = await tenantAgent(running.baseUrl)
const stranger = await tenantAgent(running.baseUrl)

const application = (of: TenantAgent, audience: string) =>
  of.ask('POST', APPLICATIONS, { name: 'Shop', audience })
const resource = (of: TenantAgent, uri: string) =>
  of.ask('POST', RESOURCES, { resource: uri, name: 'Shop', scopes: [] })
const refusal = ({ status, body }: Awaited<ReturnType<typeof application>>) => [
  status,
  body['error'],
]

const SPELLINGS: readonly (readonly [string, readonly string[]])[] = [
  ['https://shop.test', ['https://shop.test', 'https://shop.test/', 'HTTPS://SHOP.test:443']],
  ['https://shop.test/~a/b', ['https://shop.test/%7ea/b', 'https://shop.test/~a/./c/../b']],
  ['https://shop.test/a%2fb', ['https://shop.test/a%2Fb', 'https://shop.test/%61%2Fb']],
  ['http://localhost:39155/mcp', ['http://LOCALHOST:39155/mcp', 'http://localhost:39155/x/../mcp']],
  ['api://shop/orders', ['API://Shop/orders', 'api://SHOP/%6frders']],
  ['urn:shop:Orders', ['URN:Shop:Orders', 'urn:shop:%4Frders']],
  ['tag:shop.test,2026:orders', ['TAG:shop.test,2026:orders']],
]

for (const [audience, spellings] of SPELLINGS)
  test(`no other tenant has the audience ${audience} in any spelling`, async (t) => {
    t.is((await application(owner, audience)).status, 201)
    for (const spelling of [audience, ...spellings]) {
      t.deepEqual(refusal(await application(stranger, spelling)), [409, 'conflict'], spelling)
      t.deepEqual(refusal(await application(owner, spelling)), [409, 'conflict'], spelling)
      if (spelling.startsWith('http'))
        t.deepEqual(refusal(await resource(stranger, spelling)), [409, 'conflict'], spelling)
    }
  })

test('the default audience of an application is of that application alone', async (t) => {
  const made = await owner.ask('POST', APPLICATIONS, { name: 'Shop' })
  const own = String(made.body['audience'])
  const theirs = await stranger.ask('POST', APPLICATIONS, { name: 'Stranger' })
  const path = `${APPLICATIONS}/${String(theirs.body['id'])}`
  for (const audience of [
    own,
    own.toUpperCase(),
    own.replace('svc', '%73vc'),
    `urn:svc:application:${crypto.randomUUID()}`,
    'urn:svc:anything',
  ]) {
    t.deepEqual(refusal(await application(stranger, audience)), [409, 'conflict'], audience)
    const body = { name: 'Stranger', audience }
    t.deepEqual(refusal(await stranger.ask('PUT', path, body)), [409, 'conflict'], audience)
  }
  const body = { name: 'Stranger', audience: theirs.body['audience'] }
  t.is((await stranger.ask('PUT', path, body)).status, 200)
})

test('the host of an audience is a verified domain, a loopback host or a reserved name', async (t) => {
  for (const audience of [
    'https://api.example.com/v1',
    'https://10.0.0.1/v1',
    'https://login.microsoftonline.com',
    'http://api.example.com',
    'wss://api.example.com/socket',
    'https://me@api.example.com/',
  ])
    t.deepEqual(
      refusal(await application(stranger, audience)),
      [422, 'domain_not_verified'],
      audience,
    )
})

test('addresses of this service are neither audiences nor API resources', async (t) => {
  const { port } = new URL(running.baseUrl)
  for (const uri of [
    running.issuer,
    `${running.issuer}/`,
    `${running.issuer}/credential-issuers/control-plane`,
    `http://127.0.0.1:${port}/mcp`,
    `http://localhost:${port}/v1/proxy`,
    `http://[::1]:${port}/`,
    `https://localhost:${port}/`,
    `https://workspace.localhost:${port}/userinfo`,
  ]) {
    t.deepEqual(refusal(await application(stranger, uri)), [409, 'conflict'], uri)
    t.deepEqual(refusal(await resource(stranger, uri)), [409, 'conflict'], uri)
  }
})

test('an API resource has no scopes of credentials', async (t) => {
  for (const name of ['VerifiedEmail', 'AgentDelegation', 'openid', 'vault:read']) {
    const body = { resource: 'https://weather.test/', name: 'Weather', scopes: [{ name }] }
    t.is((await stranger.ask('POST', RESOURCES, body)).status, 400, name)
  }
})

test('one of many tenants gets an audience that all claim in the same moment', async (t) => {
  const asks = [owner, stranger].flatMap((of) => [
    application(of, 'https://race.test/'),
    resource(of, 'https://RACE.test'),
  ])
  const answers = await Promise.all(asks)
  const made = answers.filter(({ status }) => status === 201)
  t.true(answers.every(({ status }) => status === 201 || status === 409))
  t.true(made.length > 0)
  const tenants = new Set(made.map(({ body }) => body['tenant_id']))
  t.is(tenants.size, 1, 'an application and an API resource of one tenant share it')
})

test('an audience is free when its application is deleted or changed', async (t) => {
  const first = await application(owner, 'https://moved.test')
  const path = `${APPLICATIONS}/${String(first.body['id'])}`
  t.is((await owner.ask('PUT', path, { name: 'Shop', audience: 'https://there.test' })).status, 200)
  t.is((await application(stranger, 'https://moved.test')).status, 201)
  t.is((await application(stranger, 'https://there.test')).status, 409)
  t.is((await owner.ask('DELETE', path)).status, 204)
  t.is((await application(stranger, 'https://there.test')).status, 201)
})
