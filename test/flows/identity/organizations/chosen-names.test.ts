/** One rule for every name that a tenant chooses and other people read, for every method; and slugs and bodies. */
import test from 'ava'
import { tenantAgent, type TenantAgent } from '../../../support/identity/tenant-agent.js'
import { sharedService, type TestService } from '../../../support/service.js'

let running: TestService
let owner: TenantAgent
let application: string
test.before(async () => {
  running = await sharedService('plain')
  owner = await tenantAgent(running.baseUrl)
  const made = await owner.ask('POST', '/api/v1/applications', { name: 'Shop' })
  application = `/api/v1/applications/${String(made.body['id'])}`
})
test.after.always(() => running?.end())

const PLACES: readonly (readonly [string, (name: string) => ReturnType<TenantAgent['ask']>])[] = [
  ['POST of an application', (name) => owner.ask('POST', '/api/v1/applications', { name })],
  ['PUT of an application', (name) => owner.ask('PUT', application, { name })],
  ['the branding', (name) => owner.ask('PATCH', '/api/v1/tenant/settings', { branding: { name } })],
  [
    'an API resource',
    (name) =>
      owner.ask('POST', '/api/v1/api-resources', {
        resource: `https://${crypto.randomUUID()}.test/`,
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
