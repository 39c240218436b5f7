/**
 * `svc webhooks listen` against a running service: from a commit to a receiver that is not
 * reachable from outside.
 */
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { receive } from '../../../actors/domain/webhooks/receive.js'
import { listen, type ListenOptions } from '../../../runtime/cli/webhooks/listen.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { insertApplication, newClientSecret } from '../../../storage/oauth/applications.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { notThrough } from '../../support/fleet/through.js'
import { sharedService } from '../../support/service.js'
import { tenantAgent } from '../../support/identity/tenant-agent.js'

const running = await sharedService('plain', { transport: 'plain_http' })
const random = systemRandom(systemClock)
type Got = { readonly headers: Record<string, string>; readonly body: Buffer }

async function world(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-listen-'))
  const agent = await tenantAgent(running.baseUrl)
  const { tenantId } = agent
  const got: Got[] = []
  let status = 204
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      got.push({ headers: request.headers as Record<string, string>, body: Buffer.concat(chunks) })
      response.writeHead(status).end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const ending = new AbortController()
  t.teardown(async () => {
    ending.abort()
    receiver.closeAllConnections()
    receiver.close()
    await rm(folder, { recursive: true })
  })
  const { secret, sha256 } = newClientSecret(random)
  const clientId = random.uuid()
  await running.db.database.tenant(tenantId, (tx) =>
    insertApplication(tx, {
      id: clientId,
      tenantId,
      name: 'Listener',
      redirectUris: [],
      createdAt: new Date(),
      secretSha256: sha256,
      grantTypes: ['client_credentials'],
      scopes: ['webhooks:read'],
    }),
  )
  const clientSecretFile = join(folder, 'client-secret')
  await writeFile(clientSecretFile, `${secret}\n`)
  const options: ListenOptions = {
    url: running.baseUrl,
    forwardTo: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`,
    type: ['*'],
    clientId,
    clientSecretFile,
    secretFile: join(folder, 'kept', 'secret'),
    json: true,
  }
  const lines: string[] = []
  const errors: string[] = []
  let heard: () => void = () => undefined
  const start = (changed: Partial<ListenOptions> = {}, signal = ending.signal) => {
    notThrough('its command trusts no certificate of a test')
    return listen(
      { ...options, ...changed },
      {
        out: (text) => {
          lines.push(text)
          heard()
        },
        err: (text) => void errors.push(text),
        clock: systemClock,
        signal,
      },
    )
  }
  const until = async (count: number) => {
    while (lines.length < count) await new Promise<void>((resolve) => (heard = resolve))
  }
  async function emit(type: string, data = {}) {
    const event = { id: random.uuid(), tenantId, type, data, occurredAt: new Date() }
    await running.db.database.tenant(tenantId, (tx) => appendEvents(tx, [event]))
    return event
  }
  const answerWith = (next: number) => {
    status = next
  }
  return { agent, options, got, lines, errors, ending, start, until, emit, answerWith }
}

test('events committed after the start arrive in order, signed like any delivery', async (t) => {
  const { options, got, lines, ending, start, until, emit } = await world(t)
  await emit('security.suspicious_activity', { before: true })
  const listening = start()
  await until(1)
  const first = await emit('security.suspicious_activity', { n: 1 })
  await emit('commerce.settlement.released', { n: 2 })
  await until(3)
  ending.abort()
  await listening
  t.is((await stat(options.secretFile)).mode & 0o777, 0o600)
  const secret = (await readFile(options.secretFile, 'utf8')).trim()
  t.is(got.length, 2)
  for (const { headers, body } of got) {
    const nowSecs = Math.floor(Date.now() / 1000)
    t.is(receive(headers, body, { secrets: [secret], nowSecs }).tag, 'genuine')
  }
  t.deepEqual(JSON.parse(String(got[0]?.body)), {
    event_id: first.id,
    type: first.type,
    tenant_id: first.tenantId,
    timestamp: first.occurredAt.toISOString(),
    data: { n: 1 },
  })
  t.like(JSON.parse(lines[1] ?? ''), { type: 'security.suspicious_activity', status: 204 })
})

test('the secret stays the same, filters apply, and a failing receiver is reported', async (t) => {
  const { options, got, lines, start, until, emit, answerWith } = await world(t)
  await emit('security.suspicious_activity')
  await emit('commerce.settlement.released')
  answerWith(500)
  const once = new AbortController()
  const listening = start({ after: '0', type: ['commerce.settlement.*'] }, once.signal)
  await until(2)
  once.abort()
  await listening
  t.is(got.length, 1)
  t.like(JSON.parse(lines[1] ?? ''), { type: 'commerce.settlement.released', status: 500 })
  const secret = await readFile(options.secretFile, 'utf8')
  const twice = new AbortController()
  const again = start({}, twice.signal)
  await until(3)
  twice.abort()
  await again
  t.is(await readFile(options.secretFile, 'utf8'), secret)
})

test('a missing token or scope ends it immediately with the reason', async (t) => {
  const { options, start } = await world(t)
  const { tokenFile: _, clientId: __, ...anonymous } = options
  await t.throwsAsync(() => start({ ...anonymous, clientId: random.uuid() }), {
    message: /no token/,
  })
  const tokenFile = join(options.secretFile, '..', 'token')
  await writeFile(tokenFile, 'not.a.token\n')
  await t.throwsAsync(() => start({ tokenFile }), { message: /answered 401/ })
})

test('events are listed by number, never events of another tenant', async (t) => {
  const { agent, emit } = await world(t)
  const { agent: stranger } = await world(t)
  const now = await agent.ask('GET', '/api/v1/events')
  t.deepEqual(now.body['items'], [])
  const { id } = await emit('security.suspicious_activity')
  const after = String(now.body['next_after'])
  const found = await agent.ask('GET', `/api/v1/events?after=${after}`)
  const items = found.body['items'] as { event_id: string; sequence: number }[]
  t.deepEqual(
    items.map(({ event_id }) => event_id),
    [id],
  )
  t.is(found.body['next_after'], items[0]?.sequence)
  const theirs = await stranger.ask('GET', '/api/v1/events?after=0')
  t.false(JSON.stringify(theirs.body).includes(id))
  for (const bad of ['-1', '01', '1e3', 'x', '9'.repeat(16)]) {
    t.is((await agent.ask('GET', `/api/v1/events?after=${bad}`)).status, 400)
  }
})
