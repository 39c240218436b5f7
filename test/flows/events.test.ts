/** What built features tell of, as receivers get it, against the published schemas. */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Ajv } from 'ajv'
import test from 'ava'
import { envelopeOf } from '../../actors/deliveries/envelope.js'
import { EVENT_TYPES, type EventType } from '../../actors/domain/events.js'
import { openapiDocument } from '../../gateway/openapi.js'
import { routes } from '../../gateway/route-table.js'
import { unavailableSections } from '../../runtime/unavailable.js'
import { startReceiver } from '../support/receiver.js'
import { sql } from '../support/identity.js'
import { COMMERCE, openShop } from '../support/shop.js'
import { testService } from '../support/service.js'
import type { Json } from '../support/tenant-agent.js'
import { subscriber } from '../support/webhooks.js'

const require = createRequire(import.meta.url)
const Ajv2020 = require('ajv/dist/2020.js') as new (options: object) => Ajv

type Hook = {
  post: {
    operationId: string
    requestBody: { content: Record<string, { schema: object; example: object }> }
  }
}
const document = openapiDocument({ issuer: 'https://id.test', exposure: 'public', routes }) as {
  webhooks: Record<string, Hook>
  components: object
}
const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema({ $id: 'https://id.test/openapi', components: document.components })
const validators = new Map(
  Object.entries(document.webhooks).map(([type, { post }]) => {
    const { schema } = post.requestBody.content['application/json']!
    const text = JSON.stringify(schema).replaceAll('"#/', '"https://id.test/openapi#/')
    return [type, ajv.compile(JSON.parse(text) as object)] as const
  }),
)

const receiver = await startReceiver()
const running = await testService({
  environment: {
    SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
    SVC_WEBHOOKS__CA_PEM_PATH: receiver.certificate.certPath,
    SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
  },
})
test.after.always(async () => {
  await running.end()
  await receiver.close()
})

test('the description has every type of the catalogue, with an example that fits its schema', (t) => {
  t.deepEqual(Object.keys(document.webhooks).toSorted(), [...EVENT_TYPES].toSorted())
  for (const [type, { post }] of Object.entries(document.webhooks)) {
    const { example } = post.requestBody.content['application/json']!
    const validate = validators.get(type)!
    t.true(validate(example), `${type}: ${JSON.stringify(validate.errors)}`)
    t.false(validate({ ...example, type: 'another.type' }), type)
    t.false(validate({ ...example, data: null }), type)
  }
})

test('what happens in a tenant reaches its receiver in the published shape', async (t) => {
  const { subscribe, ask, login, settled } = await subscriber(running, receiver)
  const { path, at } = await subscribe({ event_types: ['*'] })
  t.is((await login()).status, 200)
  const created = await ask('POST', '/api/v1/applications', {
    name: 'Service',
    grant_types: ['client_credentials'],
    response_types: [],
    scopes: ['vault:list'],
  })
  t.is(created.status, 201, created.text)
  const { client_id: id, client_secret: secret } = created.body
  const basic = Buffer.from(`${String(id)}:${String(secret)}`).toString('base64')
  const issued = await fetch(`${running.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  t.is(issued.status, 200)
  const { access_token: token } = (await issued.json()) as Json
  const revoked = await fetch(`${running.baseUrl}/oauth/revoke`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ token: String(token) }),
  })
  t.is(revoked.status, 200)
  const kept = await ask('POST', '/api/v1/vault/credentials', {
    provider: 'ssh',
    credential_type: 'ssh_ca',
    label: 'Authority',
  })
  t.is(kept.status, 201, kept.text)
  t.is((await ask('POST', `${at}/test`)).status, 200)
  // Events of before the subscription may still have been on their way.
  const types = () => new Set(receiver.at(path).map(({ headers }) => headers['x-svc-event']))
  const expected: EventType[] = [
    'auth.token.issued',
    'auth.token.revoked',
    'vault.credential.created',
    'webhook.test',
  ]
  for (let turn = 0; turn < 500 && !expected.every((type) => types().has(type)); turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await settled(at, 4)
  for (const type of expected) t.true(types().has(type), type)
  for (const { body, headers } of receiver.at(path)) {
    const event = JSON.parse(body.toString()) as Json
    t.is(event['type'], headers['x-svc-event'] as string)
    const validate = validators.get(String(event['type']))
    t.true(validate?.(event), `${body.toString()}: ${JSON.stringify(validate?.errors)}`)
    t.false(/svcs_|whsec_|eyJ/.test(body.toString()), 'no secret in an event')
  }
})

test('what commerce tells of is as it is published', async (t) => {
  const selling = await testService({ environment: COMMERCE })
  const shop = await openShop(selling)
  t.teardown(async () => {
    await shop.api.close()
    await selling.end()
  })
  const post = async (path: string, json: unknown = {}) => {
    const answer = await shop.api.post(`/api/v1/commerce/${path}`, shop.token, json)
    t.true(answer.status < 300, JSON.stringify(answer.body))
    return answer.body
  }
  const told = async () => {
    const text = `select id, type, tenant_id as "tenantId", occurred_at as "occurredAt", data
      from events where type like 'commerce.%'`
    return sql<Parameters<typeof envelopeOf>[0]>(selling.db.database, text)
  }
  const until = async (type: EventType, count = 1) => {
    for (let turn = 0; turn < 1000; turn += 1) {
      if ((await told()).filter((event) => event.type === type).length >= count) return
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    t.fail(type)
  }
  const bought = async (outcome: string) => {
    const session = await shop.checkout({ customer_email: 'ada@example.com', quantity: 10 })
    await shop.pay(session['checkout_url'], outcome)
    return String(session['charge_id'])
  }
  await bought('decline')
  await bought('dispute')
  const [dispute] = (await shop.api.list('/api/v1/commerce/disputes', shop.token)).rows
  await post(`disputes/${String(dispute?.['id'])}/close`, { outcome: 'won' })
  const charge = await bought('succeed')
  await post(`charges/${charge}/refund`, { amount_minor: 100 })
  await until('commerce.settlement.released', 2)
  await post('payouts', { rail: 'sandbox', currency: 'USD', amount_minor: 1013 })
  await post('payouts', { rail: 'sandbox', currency: 'USD', amount_minor: 1000 })
  await until('commerce.payout.failed')
  await until('commerce.payout.paid')
  await post('statements', { currency: 'USD' })
  const events = await told()
  const types = new Set(events.map(({ type }) => type))
  for (const type of EVENT_TYPES.filter((one) => one.startsWith('commerce.'))) {
    t.true(types.has(type), type)
  }
  for (const event of events) {
    const posted: unknown = JSON.parse(envelopeOf(event))
    const validate = validators.get(event.type)!
    t.true(validate(posted), `${JSON.stringify(posted)}: ${JSON.stringify(validate.errors)}`)
  }
})

/** Of features that this build has; whoever builds another adds its events here. */
const BUILT: readonly EventType[] = [
  'auth.login.success',
  'auth.login.failure',
  'auth.logout',
  'auth.token.issued',
  'auth.token.revoked',
  'auth.mfa.challenge',
  'auth.mfa.verify',
  'tenant_user.invited',
  'tenant_user.activated',
  'tenant_user.suspended',
  'tenant_user.removed',
  'admin.user.created',
  'admin.agent.registered',
  'admin.delegation.revoked',
  'vault.credential.created',
  'vault.credential.accessed',
  'vault.grant.revoked',
  'egress.stream.closed',
  'org.created',
  'org.member.added',
  'sso.configured',
  'sso.login.success',
  'sso.login.failed',
  'sso.user.provisioned',
  'security.brute_force.detected',
  'security.refresh_token.reuse',
  'security.suspicious_activity',
  'commerce.payment.pending',
  'commerce.payment.succeeded',
  'commerce.payment.failed',
  'commerce.payment.refunded',
  'commerce.settlement.created',
  'commerce.settlement.held',
  'commerce.settlement.released',
  'commerce.dispute.opened',
  'commerce.dispute.closed',
  'commerce.payout.submitted',
  'commerce.payout.paid',
  'commerce.payout.failed',
  'commerce.statement.created',
  'webhook.test',
]

/** The others, by what they would tell of: a section of the settings, or an operation. */
const NOT_BUILT: Readonly<Partial<Record<EventType, string>>> = {
  'auth.adaptive_mfa.triggered': 'adaptive_mfa',
  'wallet.tx.signed': 'wallet',
  'wallet.tx.rejected': 'wallet',
  'wallet.budget.exceeded': 'wallet',
  // Registries of agents on a chain: there is no section for them.
  'chain.ownership.changed': 'chain',
  'chain.reputation.updated': 'chain',
  'chain.metadata.changed': 'chain',
  // No operation changes the role of a member.
  'org.member.role_changed': 'organizations',
}

test('every event of the catalogue is of a built feature, or of one that cannot be switched on', (t) => {
  const named = [...BUILT, ...Object.keys(NOT_BUILT)]
  t.deepEqual(named.toSorted(), [...EVENT_TYPES].toSorted())
  const unavailable = new Set<string>(unavailableSections.map(({ name }) => name))
  for (const [type, section] of Object.entries(NOT_BUILT)) {
    t.true(section === 'chain' || unavailable.has(section), `${type}: ${section}`)
  }
})

test('every event of a built feature is looked for by a test of the feature', (t) => {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && name !== join('flows', 'events.test.ts'))
    .map((name) => readFileSync(join('test', name), 'utf8'))
  const here = readFileSync(join('test', 'flows', 'events.test.ts'), 'utf8')
  const played = here.slice(0, here.indexOf('const BUILT'))
  const missing = BUILT.filter(
    (type) => ![...files, played].some((text) => text.includes(`'${type}'`)),
  )
  t.deepEqual(missing, [])
})

test('every event of a built feature is written by it', (t) => {
  const text = readdirSync('actors', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && name !== join('domain', 'events.ts'))
    .map((name) => readFileSync(join('actors', name), 'utf8'))
    .join('\n')
  const own = readFileSync(join('actors', 'domain', 'events.ts'), 'utf8')
  const missing = BUILT.filter(
    (type) => !text.includes(`'${type}'`) && !own.includes(`type: '${type}'`),
  )
  t.deepEqual(missing, [])
})
