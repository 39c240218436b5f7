/**
 * Names of applications and agents in sentences of pages that ask for a decision. They are set off, so that a name that
 * reads like the sentence around it is recognizable as a name. And one rule for every name that a tenant chooses.
 */
import test from 'ava'
import { type Api, type Json, type Workspace, apiOf } from '../../../support/api.js'
import { type Page, openBrowser } from '../../../support/pages/browser.js'
import { CIBA_GRANT, INBOX, ciba } from '../../../support/oauth/ciba.js'
import { type Person, ask, fixtureOf, present } from '../../../support/agents/delegation.js'
import { sql } from '../../../support/storage/sql.js'
import { journey, pathOf, relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'
import { type TenantAgent, tenantAgent } from '../../../support/identity/tenant-agent.js'

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const NAME = 'Tide (bank.example) only wants <b>&\u05d0 {host} $& your "name"'
const SHOWN =
  '<bdi class="name">Tide (bank.example) only wants &lt;b&gt;&amp;\u05d0 {host} $&amp; your &quot;name&quot;</bdi>'

const running = await sharedService('plain')
let api: Api
let workspace: Workspace
let person: Person
test.before(async () => {
  api = apiOf(running)
  workspace = await api.workspace()
  person = await present(api, fixtureOf(workspace))
})

const application = () =>
  relyingParty(running, workspace, {
    name: NAME,
    scopes: ['openid', 'profile'],
    grantTypes: ['authorization_code', 'refresh_token', DEVICE, CIBA_GRANT],
  })

/** The sentence that contains the name. */
const sentenceOf = ({ html }: Page) =>
  new RegExp(`>([^<>]*${SHOWN.replaceAll(/[$(){}.]/g, '\\$&')}.*)</(?:p|h2)>`).exec(html)?.[1]

test('an application asks for sign-in and consent', async (t) => {
  const { url } = await journey(await application(), { scope: 'openid profile' })
  const stranger = openBrowser(running)
  const login = await stranger.follow(await stranger.get(pathOf(url)))
  t.is(sentenceOf(login), `Continue to ${SHOWN}.`, login.html)
  const consent = await person.browser.follow(await person.browser.get(pathOf(url)))
  t.is(sentenceOf(consent), `${SHOWN} wants to access your account.`)
  t.true(consent.html.includes('data-redirect-host="app.example"><code>app.example</code>'))
})

test('an application on a device asks', async (t) => {
  const { clientId: client_id, secret: client_secret } = await application()
  const { body } = await api.form('/oauth/device/code', { client_id, client_secret })
  const complete = new URL(String(body['verification_uri_complete']))
  const page = await person.browser.follow(await person.browser.get(pathOf(complete)))
  t.is(sentenceOf(page), `${SHOWN} on another device wants to access your account.`, page.html)
})

test('an application asks in the inbox', async (t) => {
  const { start } = ciba(running, await application())
  t.is((await start({ login_hint: person.human.email, scope: 'openid profile' })).status, 200)
  const page = await person.browser.get(INBOX)
  t.is(sentenceOf(page), `${SHOWN} wants to sign you in`, page.html)
})

test('an agent asks', async (t) => {
  await sql(running)`update agents set name = ${NAME} where id = ${workspace.agentId}`
  const { userCode } = await ask(api, workspace.token, { scope: 'openid' })
  const page = await person.browser.follow(
    await person.browser.get(`/device/delegation/${userCode}`),
  )
  t.is(sentenceOf(page), `${SHOWN} asks to act on your behalf.`, page.html)
})

// One rule for every name that a tenant chooses and other people read, for every method; and slugs and bodies.

let owner: TenantAgent
let shop: string
test.before(async () => {
  owner = await tenantAgent(running.baseUrl)
  const made = await owner.ask('POST', '/api/v1/applications', { name: 'Shop' })
  shop = `/api/v1/applications/${String(made.body['id'])}`
})

const PLACES: readonly (readonly [string, (name: string) => ReturnType<TenantAgent['ask']>])[] = [
  ['POST of an application', (name) => owner.ask('POST', '/api/v1/applications', { name })],
  ['PUT of an application', (name) => owner.ask('PUT', shop, { name })],
  ['the branding', (name) => owner.ask('PATCH', '/api/v1/tenant/settings', { branding: { name } })],
  [
    'an API resource',
    (name) =>
      owner.ask('POST', '/api/v1/api-resources', {
        resource: `https://${crypto.randomUUID()}.test/`,
        scopes: [],
        name,
      }),
  ],
]

const REFUSED = [
  'Pay at https://evil.example',
  'www.evil.example',
  'ＷＷＷ．evil',
  'support@evil.example',
  'support＠evil',
  'bit.ly/abc',
  'Open bit.ly/abc now',
  'bit。ly/abc',
  '10.0.0.1/login',
  'evil.example:8080/x',
  'A\u202ettog',
  'A\u200eb',
  'A\u200fb',
  'A\u061cb',
  'A\u2066b',
  'A\nb',
  'bit\u200b.ly/abc',
  'w\u2060ww.evil.example',
  '\u200b',
  '\u00ad',
  '\u3164',
  '',
  '   ',
  'x'.repeat(121),
]
const ACCEPTED = [
  'Node.js',
  'acme.com',
  'A/B tests',
  'Ltd. & Co.',
  '1.5/2',
  '株式会社',
  '👩\u200d🚀 crew',
  'می\u200cخواهم',
  '🧭'.repeat(120),
]

for (const [place, write] of PLACES) {
  test.serial(`${place} refuses names with addresses or invisible marks`, async (t) => {
    for (const name of REFUSED) t.is((await write(name)).status, 400, JSON.stringify(name))
    for (const name of ACCEPTED) {
      const answer = await write(name)
      t.true(answer.status < 300, `${name}: ${answer.text}`)
    }
  })
}

// A name that was stored before the rule stays, and no other such name is taken.

const OLD = 'Pay at https://old.example'

test.serial('a change may keep a stored name that breaks the rule', async (t) => {
  const { tenantId, organizationId, token, body } = workspace
  const controlPlane = String(body['control_plane_access_token'])
  const create = async (path: string, json: Json) =>
    String((await api.call('POST', path, { token, json })).body['id'])
  const applicationId = await create('/api/v1/applications', { name: 'New' })
  const resource = `https://${crypto.randomUUID()}.test/`
  const resourceId = await create('/api/v1/api-resources', { resource, name: 'New', scopes: [] })
  const changes: readonly (readonly [
    table: string,
    id: string,
    (name: string) => Promise<{ status: number; body: Json }>,
  ])[] = [
    [
      'applications',
      applicationId,
      (name) => api.put(`/api/v1/applications/${applicationId}`, token, { name }),
    ],
    [
      'api_resources',
      resourceId,
      (name) => api.patch(`/api/v1/api-resources/${resourceId}`, token, { name }),
    ],
    [
      'organizations',
      organizationId,
      (name) => api.patch(`/api/v1/organizations/${organizationId}`, controlPlane, { name }),
    ],
    [
      'tenants',
      tenantId,
      (name) => api.patch(`/api/v1/tenants/${tenantId}`, controlPlane, { name }),
    ],
  ]
  for (const [table, id, change] of changes) {
    await sql(running, `update ${table} set name = $2 where id = $1`, [id, OLD])
    const kept = await change(OLD)
    t.is(kept.status, 200, `${table}: ${JSON.stringify(kept.body)}`)
    t.is(kept.body['name'], OLD, table)
    for (const name of [`${OLD}/`, ` ${OLD}`, 'www.other.example', 'x'.repeat(121), 'A\u202eb']) {
      const refused = await change(name)
      t.is(refused.status, 400, `${table}: ${name}`)
      t.deepEqual((refused.body['errors'] as Json[])[0]?.['pointer'], '#/name', table)
    }
    const fresh = await change('Cafe\u0301.example ')
    t.is(fresh.body['name'], 'Caf\u00e9.example', table)
    t.is((await change(OLD)).status, 400, `${table}: the old name is gone`)
  }
})

test.serial('settings may keep a stored name of the brand that breaks the rule', async (t) => {
  const { tenantId, token } = workspace
  const change = (branding: Json) => api.patch('/api/v1/tenant/settings', token, { branding })
  await sql(running)`
    update tenants set settings = settings || jsonb_build_object('branding',
    jsonb_build_object('name', ${OLD}::text))
    where id = ${tenantId}`
  const kept = await change({ name: OLD, color: '#112233' }).gives(200)
  t.like(kept.body['branding'], { name: OLD, color: '#112233' })
  t.is((await change({ name: `${OLD}/` })).status, 400)
  t.like((await change({ name: 'New' })).body['branding'], { name: 'New' })
  t.is((await change({ name: OLD })).status, 400)
})

test.serial('a name is stored in NFC', async (t) => {
  const decomposed = 'Cafe\u0301'
  const made = await owner.ask('POST', '/api/v1/applications', { name: decomposed })
  t.is(made.body['name'], decomposed.normalize('NFC'))
})

test.serial(
  'a member that occurs twice is refused, at any depth and in any spelling',
  async (t) => {
    const post = (body: string, path = '/api/v1/applications') =>
      fetch(running.baseUrl + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${owner.token}`, 'content-type': 'application/json' },
        body,
      })
    for (const [body, pointer] of [
      ['{"name":"A","name":"B"}', '#/name'],
      ['{"name":"A","\\u006eame":"B"}', '#/name'],
      ['{"name":"A","jwks":{"keys":[{"kty":"EC","kty":"OKP"}]}}', '#/jwks/keys/0/kty'],
      ['{"name":"a\\"b:{","x":[{"y":1},{"y":1,"z":{"":0,"":1}}]}', '#/x/1/z/'],
      ['{"name":"A","unknown":{"a":1,"a":1}}', '#/unknown/a'],
    ] as const) {
      const answer = await post(body)
      t.is(answer.status, 400, body)
      const problem = (await answer.json()) as { errors: { pointer: string }[] }
      t.is(problem.errors[0]?.pointer, pointer, body)
    }
    const twice = '{"agent_id":"a","agent_id":"b"}'
    t.is((await post(twice, '/api/v1/agents/auth/challenge')).status, 400, 'without a token too')
    t.is((await post('{"name":"a:b","scopes":["openid","email"]}')).status, 201)
  },
)
