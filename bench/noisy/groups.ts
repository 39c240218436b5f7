/**
 * The effect on a tenant of groups of tenants that cost nothing and hold what they can of all shared resources at the
 * same time: egress places, name look-ups, webhook lanes, test deliveries, did:web fetches. The honest tenant is a
 * sandbox too. Each round measures it alone and then with the group, in an open loop. Rate limits are on.
 *
 *     npm run bench -- noisy/groups [--groups 8,16,64] [--rounds 3] [--ms 10000]
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { Agent, request } from 'undici'
import { createAgentKey } from '../../runtime/clients/client/agent.js'
import { machine, median, pace, percentiles, publishTable } from '../harness.js'
import type { GroupEnd, GroupNeeds } from './group-thread.js'
import type { Arrival } from './places-thread.js'
import { draftOf, EVENT, openNoisyStage, type Stage } from './stage.js'

const RATIO_MAX = 2
const REFUSED_MAX = 0.01
const REFUSAL_MS_MAX = 50
const TRIES = 3
const TRY_EVERY_MS = 200
const WARM_UP_MS = 3_000
/** Until the group holds what it gets. */
const REACH_MS = 5_000
const REST_MS = 3_000
const ANSWER_MS_MAX = 30_000
/** Registrations of the report that found eight tenants with all places: four agents of each. */
const AGENTS = 32

const { values } = parseArgs({
  strict: false,
  options: {
    groups: { type: 'string', default: '8,16,64' },
    rounds: { type: 'string', default: '3' },
    ms: { type: 'string', default: '10000' },
  },
})
const phaseMs = Number(values.ms)

/** A refusal can be repeated. Any other status but the expected one is a failure. */
type Call = () => Promise<{ readonly status: number; readonly expected: number }>
type Kind = { readonly name: string; readonly perSecond: number; readonly call: Call }
type Tally = { calls: number; servedMs: number[]; refusedMs: number[]; failed: number }

const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 })

async function send(
  stage: Stage,
  path: string,
  body: string | null,
  headers: Record<string, string>,
) {
  const signal = AbortSignal.timeout(ANSWER_MS_MAX)
  const options = { dispatcher: agent, method: 'POST', headers, body, signal } as const
  const answer = await request(stage.baseUrl + path, options)
  return { status: answer.statusCode, text: await answer.body.text() }
}

/** Waits for a body with a text, from now on. */
function arrivalsAt(places: Stage['places']): (id: string) => Promise<void> {
  const arrived = new Set<() => void>()
  let bodies = ''
  places.on('message', ({ body }: Arrival) => {
    bodies += body
    for (const look of arrived) look()
  })
  return (id) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no arrival')), ANSWER_MS_MAX)
      const look = () => {
        if (!bodies.includes(id)) return
        clearTimeout(timer)
        arrived.delete(look)
        resolve()
      }
      arrived.add(look)
      look()
    })
}

/** What the honest tenant does. */
async function kindsOf(stage: Stage, target: GroupNeeds['target']): Promise<readonly Kind[]> {
  const { honest, upstream, places } = stage
  const bearer = { authorization: `Bearer ${honest.token}` }
  const json = (path: string, value: unknown) =>
    send(stage, path, JSON.stringify(value), { ...bearer, 'content-type': 'application/json' })
  const arrival = arrivalsAt(places)
  const hooks = await Promise.all(
    Array.from({ length: 10 }, async (_, at) => {
      const event_types = at === 0 ? [EVENT] : ['webhook.test']
      const url = `${upstream}/quick`
      return JSON.parse((await json('/api/v1/webhooks', { url, event_types })).text) as Made
    }),
  )
  const applications = await Promise.all(
    Array.from({ length: 8 }, async (_, at) => {
      const draft = { name: `Honest ${at}`, grant_types: ['client_credentials'] }
      const { text } = await json('/api/v1/applications', draft)
      const { client_id, client_secret } = JSON.parse(text) as Made
      return `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`
    }),
  )
  const form = (path: string, authorization: string, fields: Record<string, string>) =>
    send(stage, path, new URLSearchParams(fields).toString(), {
      authorization,
      'content-type': 'application/x-www-form-urlencoded',
    })
  const relay = (credentialId: string, url: string, stream: boolean) =>
    send(stage, '/v1/proxy/body', null, {
      ...bearer,
      'x-svc-credential-id': credentialId,
      'x-svc-method': 'GET',
      'x-svc-url': url,
      'x-svc-stream-response': String(stream),
    })
  const [plain] = honest.reaches.plain
  const names = honest.reaches.names.flatMap(({ credentialId, origins }) =>
    origins.map((origin) => ({ credentialId, origin })),
  )
  let nth = 0
  const next = <T>(list: readonly T[]): T => list[(nth += 1) % list.length]!
  const is = (expected: number) => (answer: { readonly status: number }) => ({
    status: answer.status,
    expected,
  })
  return [
    {
      name: 'egress call',
      perSecond: 6,
      call: () => relay(plain!.credentialId, `${upstream}/echo`, nth++ % 2 === 0).then(is(200)),
    },
    {
      name: 'egress call to a new name',
      perSecond: 1,
      call: () => {
        const { credentialId, origin } = names.pop() ?? next(names)
        return relay(credentialId, `${origin}/echo`, true).then(is(200))
      },
    },
    {
      name: 'token',
      perSecond: 4,
      call: () =>
        form('/oauth/token', next(applications.slice(0, 4)), {
          grant_type: 'client_credentials',
        }).then(is(200)),
    },
    {
      name: 'introspection',
      perSecond: 4,
      call: () =>
        form('/oauth/introspect', next(applications.slice(4)), { token: honest.token }).then(
          is(200),
        ),
    },
    {
      name: 'webhook, from write to arrival',
      perSecond: 1,
      call: async () => {
        const { status, text } = await json('/api/v1/vault/credentials', draftOf(['localhost']))
        if (status === 201) await arrival((JSON.parse(text) as Made).id)
        return { status, expected: 201 }
      },
    },
    {
      name: 'test delivery',
      perSecond: 1,
      call: () =>
        send(stage, `/api/v1/webhooks/${next(hooks.slice(1)).id}/test`, null, bearer).then(is(200)),
    },
    {
      name: 'did:web fetch',
      perSecond: 1,
      call: () => {
        nth += 1
        const didWeb = `did:web:${new URL(upstream).host.replace(':', '%3A')}:echo:${nth}`
        const key = createAgentKey().registration({ ...target, didWeb })
        const draft = { name: 'Honest', tenant_id: target.tenantId, ...key }
        return send(stage, '/api/v1/agents/auth/register/pow', JSON.stringify(draft), {
          'content-type': 'application/json',
          'x-forwarded-for': `192.0.2.${nth % 250}`,
          // The document is fetched, and is none.
        }).then(is(400))
      },
    },
  ]
}

type Made = { readonly id: string; readonly client_id: string; readonly client_secret: string }

const emptyTally = (): Tally => ({ calls: 0, servedMs: [], refusedMs: [], failed: 0 })

async function tried({ name, call }: Kind, tally: Tally): Promise<void> {
  tally.calls += 1
  for (let turn = 0; turn < TRIES; turn += 1) {
    if (turn > 0) await sleep(TRY_EVERY_MS)
    const begun = performance.now()
    const { status, expected } = await call().catch((error: Error) => ({
      status: error.name,
      expected: 0,
    }))
    const ms = performance.now() - begun
    if (status === expected) return void tally.servedMs.push(ms)
    if (status !== 503 && status !== 429) {
      console.error(`${name}: ${status}`)
      break
    }
    tally.refusedMs.push(ms)
  }
  tally.failed += 1
}

async function phase(kinds: readonly Kind[], ms: number): Promise<Map<string, Tally>> {
  const tallies = new Map(kinds.map(({ name }) => [name, emptyTally()]))
  await Promise.all(
    kinds.map((kind) => pace(ms, kind.perSecond, () => tried(kind, tallies.get(kind.name)!))),
  )
  return tallies
}

const p99 = (tally: Tally) => percentiles(tally.servedMs)['p99Ms']!
const sum = (tallies: readonly Tally[]): Tally => ({
  calls: tallies.reduce((total, { calls }) => total + calls, 0),
  servedMs: tallies.flatMap(({ servedMs }) => servedMs),
  refusedMs: tallies.flatMap(({ refusedMs }) => refusedMs),
  failed: tallies.reduce((total, { failed }) => total + failed, 0),
})

async function measured(tenants: number) {
  const stage = await openNoisyStage({
    quotas: true,
    tenants,
    agents: Math.max(1, Math.ceil(AGENTS / tenants)),
  })
  const { baseUrl, hostileUpstream, hostile, hostilePlaces } = stage
  const metadata = await fetch(`${baseUrl}/api/v1/agents/workspace/bootstrap`)
  const { issuer, control_plane_tenant_id } = (await metadata.json()) as Record<string, string>
  const target = { issuer: issuer!, tenantId: control_plane_tenant_id! }
  const needs: GroupNeeds = { baseUrl, upstream: hostileUpstream, tenants: hostile, target }
  const group = new Worker(new URL('./group-thread.js', import.meta.url), {
    workerData: needs,
  })
  try {
    const kinds = await kindsOf(stage, target)
    await phase(kinds, WARM_UP_MS)
    const rounds: { readonly idle: Map<string, Tally>; readonly noisy: Map<string, Tally> }[] = []
    const ends: GroupEnd[] = []
    for (let round = 0; round < Number(values.rounds); round += 1) {
      const idle = await phase(kinds, phaseMs)
      group.postMessage('begin')
      await sleep(REACH_MS)
      const noisy = await phase(kinds, phaseMs)
      const ended = once(group, 'message') as Promise<[GroupEnd]>
      group.postMessage('end')
      hostilePlaces.postMessage('release')
      ends.push((await ended)[0])
      hostilePlaces.postMessage('release')
      await sleep(REST_MS)
      rounds.push({ idle, noisy })
      console.error(`${tenants} tenants, round ${round + 1}: ${JSON.stringify(ends.at(-1))}`)
    }
    const refused = Object.fromEntries(await stage.refusals())
    const rows = kinds.map(({ name }) => {
      const [idle, noisy] = [
        sum(rounds.map((each) => each.idle.get(name)!)),
        sum(rounds.map((each) => each.noisy.get(name)!)),
      ]
      const ratios = rounds.map((each) => p99(each.noisy.get(name)!) / p99(each.idle.get(name)!))
      return { tenants, name, idle, noisy, ratio: median(ratios), ratios }
    })
    return { rows, ends, refused }
  } finally {
    await group.terminate()
    await stage.end()
  }
}

type Row = Awaited<ReturnType<typeof measured>>['rows'][number]

function reached({ ratio, noisy }: Row): boolean {
  return (
    ratio <= RATIO_MAX &&
    noisy.refusedMs.length <= noisy.calls * REFUSED_MAX &&
    noisy.refusedMs.every((ms) => ms <= REFUSAL_MS_MAX) &&
    noisy.failed === 0
  )
}

function toMarkdown(rows: readonly Row[]): string {
  const ms = (value: number) => value.toFixed(value < 100 ? 1 : 0)
  const head = [
    'tenants',
    'honest tenant',
    'idle p50 ms',
    'idle p99 ms',
    'noisy p50 ms',
    'noisy p99 ms',
    'p99 ratio',
    'spread of the ratio',
    'refused',
    'slowest refusal ms',
    'failed three times',
    'target',
  ]
  const lines = rows.map((row) => {
    const { tenants, name, idle, noisy, ratio, ratios } = row
    const at = (tally: Tally, figure: string) => ms(percentiles(tally.servedMs)[figure]!)
    return [
      String(tenants),
      name,
      at(idle, 'p50Ms'),
      at(idle, 'p99Ms'),
      at(noisy, 'p50Ms'),
      at(noisy, 'p99Ms'),
      ratio.toFixed(2),
      (Math.max(...ratios) / Math.min(...ratios)).toFixed(2),
      `${noisy.refusedMs.length} of ${noisy.calls}`,
      noisy.refusedMs.length === 0 ? '' : ms(Math.max(...noisy.refusedMs)),
      String(idle.failed + noisy.failed),
      reached(row) ? 'reached' : 'missed',
    ]
  })
  return [
    '### Groups of hostile tenants',
    '',
    `${machine()}; ${new Date().toISOString().slice(0, 10)}; listener uWebSockets; ${String(values.rounds)} rounds of ${phaseMs} ms.`,
    '',
    ...[head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`),
    '',
  ].join('\n')
}

try {
  const rows: Row[] = []
  for (const tenants of String(values.groups).split(',')) {
    const result = await measured(Number(tenants))
    rows.push(...result.rows)
    console.error(`${tenants} tenants, refused by shares: ${JSON.stringify(result.refused)}`)
  }
  await publishTable(toMarkdown(rows), { name: 'Groups of hostile tenants', rows })
} finally {
  await agent.destroy()
}
