/** Events of organizations: in the list of the organization, and with one id in the feeds and webhooks of its tenants. */
import test from 'ava'
import type { Json } from '../../../support/api.js'
import { newFixture } from '../../../support/agents/delegation.js'
import { signIn } from '../../../support/identity/person.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sharedApi } from '../../../support/service.js'
import { sql } from '../../../support/storage/sql.js'

const { api, running } = await sharedApi('plain')

const ORGANIZATIONS = '/api/v1/control-plane/organizations'
const tenantsOf = (organizationId: string) => `${ORGANIZATIONS}/${organizationId}/tenants`
const eventsOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/events`
const membersOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/members`

type Event = { readonly sequence: number; readonly event_id: string; readonly type: string } & Json

async function feed(path: string, token: string, query = 'after=0'): Promise<Event[]> {
  const { body } = await api.get(`${path}?${query}`, token).gives(200)
  return body['items'] as Event[]
}

const created = async (path: string, token: string, json: Json) => {
  const { body } = await api.post(path, token, json).gives(201)
  return body
}

/** A new environment of the organization, and a token of its owner there. */
async function environment(organizationId: string, operator: string, name: string) {
  const { id, slug } = await created(tenantsOf(organizationId), operator, { name })
  const switched = await api.post(`${tenantsOf(organizationId)}/${String(id)}/switch`, operator)
  return { id: String(id), slug: String(slug), token: String(switched.body['access_token']) }
}

const ids = (events: readonly Event[]) => events.map(({ type, event_id: id }) => [type, id])
const ofOrganization = (events: readonly Event[]) =>
  events.filter(({ type }) => type === 'org.created' || type.startsWith('org.member.'))

test('an organization made over the API reaches its list, and the feed of each later tenant begins with it', async (t) => {
  const { operator, agentId } = await api.workspace()
  const organization = await created(ORGANIZATIONS, operator, { name: 'Wind farms' })
  const organizationId = String(organization['id'])
  const own = await feed(eventsOf(organizationId), operator)
  t.deepEqual(
    own.map(({ type, sequence }) => [type, sequence]),
    [
      ['org.created', 1],
      ['org.member.added', 2],
    ],
  )
  t.like(own[0]!, {
    organization_id: organizationId,
    data: {
      actor: { type: 'agent', id: agentId },
      resource: { type: 'organization', id: organizationId },
      name: 'Wind farms',
    },
  })
  for (const name of ['First', 'Second']) {
    const { id, token } = await environment(organizationId, operator, name)
    const [first] = await feed('/api/v1/events', token)
    t.like(first, { sequence: 1, type: 'org.created', event_id: own[0]!.event_id, tenant_id: id })
    t.deepEqual(first!['data'], own[0]!['data'])
    t.is(first!['timestamp'], own[0]!['timestamp'])
  }
})

test('a change of members reaches the feed and the webhooks of each tenant under one id', async (t) => {
  const { operator, organizationId, token: atHome } = await api.workspace()
  const second = await environment(organizationId, operator, 'Second')
  const webhook = await created('/api/v1/webhooks', second.token, {
    url: 'https://receiver.example.com/hook',
    event_types: ['org.member.*'],
  })
  const json = { email: `${second.id}@harbour.test`, role: 'admin' }
  const invited = await created(membersOf(organizationId), operator, json)
  const member = `${membersOf(organizationId)}/${String(invited['id'])}`
  t.is((await api.delete(member, operator)).status, 204)

  const own = await feed(eventsOf(organizationId), operator)
  const changes = own.slice(-2)
  t.deepEqual(
    changes.map(({ type }) => type),
    ['org.member.invited', 'org.member.removed'],
  )
  for (const token of [atHome, second.token]) {
    t.deepEqual(ids(ofOrganization(await feed('/api/v1/events', token)).slice(-2)), ids(changes))
  }
  const path = `/api/v1/webhooks/${String(webhook['id'])}/deliveries`
  for (;;) {
    const { rows } = await api.list(path, second.token)
    if (rows.length < 2) continue
    const delivered = rows.map(({ event_id: id }) => String(id))
    t.deepEqual(delivered.toSorted(), changes.map(({ event_id: id }) => String(id)).toSorted())
    break
  }
})

test('who joins at one tenant is named there, and by the membership in the others', async (t) => {
  const workspace = await api.workspace()
  const { operator, organizationId } = workspace
  const human = await newFixture(api, workspace)
  const { rows } = await api.list(membersOf(organizationId), operator)
  const { id } = rows.find(({ email }) => email === human.email)!
  await api.delete(`${membersOf(organizationId)}/${String(id)}`, operator)
  const second = await environment(organizationId, operator, 'Second')
  const json = { email: human.email, role: 'member' }
  const invited = await created(membersOf(organizationId), operator, json)
  const browser = openBrowser(running)
  t.is((await signIn(browser, human)).status, 303)

  const [here, there, own] = await Promise.all([
    feed('/api/v1/events', workspace.token),
    feed('/api/v1/events', second.token),
    feed(eventsOf(organizationId), operator),
  ])
  const joined = [here, there, own].map((events) => ofOrganization(events).at(-1)!)
  t.is(new Set(joined.map(({ event_id: one }) => one)).size, 1)
  const member = { type: 'member', id: invited['id'] }
  const dataOf = (event: Event) => event['data'] as Json
  t.is((dataOf(joined[0]!)['member'] as Json)['type'], 'human')
  for (const event of joined.slice(1)) {
    t.deepEqual(dataOf(event)['member'], member)
    t.deepEqual(dataOf(event)['actor'], { type: 'organization', id: organizationId })
  }
})

test('a deleted agent leaves its organizations with an event', async (t) => {
  const { operator, organizationId, tenantId, token } = await api.workspace()
  const { agentId } = await api.register(tenantId)
  const json = { agent_id: agentId, role: 'member' }
  const member = await created(membersOf(organizationId), operator, json)
  await api.delete(`/api/v1/agents/${agentId}`, token).gives(204)
  const own = await feed(eventsOf(organizationId), operator)
  t.like(own.at(-1)!, { type: 'org.member.removed', data: { member_id: member['id'] } })
})

test('an organization from before its events were kept gets one creation for all later tenants', async (t) => {
  const { operator, organizationId } = await api.workspace()
  await sql(running)`delete from organization_events where organization_id = ${organizationId}`
  const made = await Promise.all(
    ['A', 'B', 'C'].map((name) => environment(organizationId, operator, name)),
  )
  const firsts = await Promise.all(
    made.map(async ({ token }) => (await feed('/api/v1/events', token))[0]!),
  )
  const own = await feed(eventsOf(organizationId), operator)
  t.deepEqual(
    own.map(({ type }) => type),
    ['org.created'],
  )
  for (const first of firsts) t.deepEqual(ids([first]), ids(own))
})

test('owners read the events of their organization in pages, others do not', async (t) => {
  const { operator, organizationId, token } = await api.workspace()
  const path = eventsOf(organizationId)
  const all = await feed(path, operator, '')
  const paged: Event[] = []
  for (let after = 0; ; ) {
    const { body } = await api.get(`${path}?after=${after}&limit=1`, operator)
    const items = body['items'] as Event[]
    if (items.length === 0) {
      t.is(body['next_after'], after)
      break
    }
    paged.push(...items)
    after = body['next_after'] as number
  }
  t.deepEqual(paged, all)
  for (const query of ['after=-1', 'after=x', 'limit=0'])
    t.is((await api.get(`${path}?${query}`, operator)).status, 400, query)

  const stranger = await api.workspace('Stranger')
  t.is((await api.get(path, stranger.operator)).status, 404)
  t.is((await api.get(path)).status, 401)
  const json = { agent_id: stranger.agentId, role: 'admin' }
  await created(membersOf(organizationId), operator, json)
  const { key, agentId, controlPlane } = stranger
  const admin = await api.login(key, { agent_id: agentId, tenant_id: controlPlane })
  t.is((await api.get(path, String(admin.body['access_token']))).status, 403)
  t.is((await api.get(path, token)).status, 403, 'the token of a tenant')
})
