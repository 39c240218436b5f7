/**
 * The effect on a tenant of another tenant that uses up its share of a resource: p99 of its calls,
 * first alone, then with the hostile tenant, for each resource. An open loop: calls start at a
 * fixed rate, whatever their outcome. Everything runs on loopback and ends after some minutes.
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { Agent, request } from 'undici'
import { openBrowser } from '../../runtime/clients/client/browser.js'
import { machine, pace, percentiles, publishTable } from '../harness.js'
import type { HostileEnd, HostileNeeds } from './hostile-thread.js'
import type { Arrival } from './places-thread.js'
import { draftOf, EVENT, openNoisyStage } from './stage.js'

const RATIO_MAX = 2
const WARM_UP_MS = 2_000
/** Maximum time for the hostile tenant to reach its limit. */
const REACH_MS = 3_000
/** Pause after a phase, until its remaining work is done. */
const REST_MS = 2_000
const ARRIVES_WITHIN_MS = 30_000

const { values } = parseArgs({
  strict: false,
  options: { ms: { type: 'string' }, only: { type: 'string' }, quotas: { type: 'boolean' } },
})
const phaseMs = Number(values.ms ?? 8_000)
/** Resources to measure, by name: `--only calls,names`. Default: all. */
const only = values.only === undefined ? undefined : String(values.only).split(',')

/** The rate limits are on: the hostile tenant stays within them, and so does the honest one. */
const quotas = values.quotas === true
const QUOTA_PER_SECOND_MAX = 8

const stage = await openNoisyStage({ quotas })
const { baseUrl, upstream, honest, hostile, places } = stage
const needs: HostileNeeds = { baseUrl, upstream, tenant: hostile[0]! }
const enemy = new Worker(new URL('./hostile-thread.js', import.meta.url), {
  workerData: needs,
})
const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 })

const arrivals: Arrival[] = []
places.on('message', (arrival: Arrival) => void arrivals.push(arrival))

let nth = 0
async function send(method: 'GET' | 'POST', path: string, json?: unknown, headers = {}) {
  const answer = await request(baseUrl + path, {
    dispatcher: agent,
    method,
    headers: {
      authorization: `Bearer ${honest.token}`,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: json === undefined ? null : JSON.stringify(json),
  })
  const text = await answer.body.text()
  if (answer.statusCode >= 400) throw new Error(`${path}: ${answer.statusCode} ${text}`)
  return text
}

async function arrival(holds: string): Promise<void> {
  const endMs = performance.now() + ARRIVES_WITHIN_MS
  for (;;) {
    const at = arrivals.findIndex(({ body }) => body.includes(holds))
    if (at >= 0) return void arrivals.splice(at, 1)
    if (performance.now() > endMs) throw new Error(`nothing arrives of ${holds}`)
    await sleep(2)
  }
}

const relay = (credentialId: string, url: string, stream: boolean) =>
  send('POST', '/v1/proxy/body', undefined, {
    'x-svc-credential-id': credentialId,
    'x-svc-method': 'GET',
    'x-svc-url': url,
    'x-svc-stream-response': String(stream),
  })
const [{ credentialId }] = honest.reaches.plain as [(typeof honest.reaches.plain)[number]]
const echo = (stream: boolean) => () => relay(credentialId, `${upstream}/echo`, stream)

/** Every name once, so that neither DNS cache nor connection pool helps. */
const names = honest.reaches.names.flatMap((reach) =>
  reach.origins.map((origin) => ({ origin, by: reach.credentialId })),
)
async function freshName(): Promise<void> {
  const next = names.pop()
  if (next === undefined) throw new Error('all names are known')
  await relay(next.by, `${next.origin}/echo`, true)
}

async function make(): Promise<void> {
  nth += 1
  const draft = { name: `Honest ${nth}`, grant_types: ['client_credentials'] }
  await send('POST', '/api/v1/applications', draft)
}

/** @returns the id that the event contains. */
async function emit(): Promise<string> {
  const answer = await send('POST', '/api/v1/vault/credentials', draftOf(['localhost']))
  return (JSON.parse(answer) as { id: string }).id
}

async function letter(): Promise<void> {
  nth += 1
  const email = `honest${nth}@mail.svc-bench.net`
  await send('POST', '/api/v1/tenant-users', { email })
  await arrival(email)
}

async function signIn(): Promise<void> {
  const browser = openBrowser({ baseUrl })
  const query = new URLSearchParams({ tenant_slug: honest.slug, return_to: '/auth/account' })
  const headers = { 'x-forwarded-for': '192.0.2.8' }
  const page = await browser.get(`/auth/login?${query.toString()}`, headers)
  const { email, password } = honest
  const form = page.forms[0]!
  const filled = { ...form.fields, email, password }
  const { status } = await browser.post(form.action, filled, headers)
  await browser.close()
  if (status !== 303) throw new Error(`a sign-in is answered ${status}`)
}

type Resource = {
  readonly name: string
  /** Name of the hostile workload. */
  readonly hostile: string
  readonly perSecond: number
  readonly call: () => Promise<unknown>
}
const resources: readonly Resource[] = [
  { name: 'egress calls under way', hostile: 'calls', perSecond: 15, call: echo(true) },
  { name: 'buffered bytes: held', hostile: 'held', perSecond: 15, call: echo(false) },
  { name: 'buffered bytes: held and refused', hostile: 'bytes', perSecond: 15, call: echo(false) },
  { name: 'name look-ups', hostile: 'names', perSecond: 15, call: freshName },
  { name: 'streams, an ordinary secret', hostile: 'relay', perSecond: 15, call: echo(true) },
  { name: 'the same streams, redaction', hostile: 'redaction', perSecond: 15, call: echo(true) },
  {
    name: 'webhook lanes: from write to arrival',
    hostile: 'lanes',
    perSecond: 10,
    call: async () => arrival(await emit()),
  },
  { name: 'mail: from write to arrival', hostile: 'mail', perSecond: 10, call: letter },
  { name: 'argon2 places: sign-ins', hostile: 'passwords', perSecond: 2, call: signIn },
  {
    name: 'mailboxes: reads',
    hostile: 'reads',
    perSecond: 20,
    call: () => send('GET', '/api/v1/applications?limit=1'),
  },
  { name: 'database connections: writes', hostile: 'writes', perSecond: 10, call: make },
]

/** p99 in milliseconds. Failed calls are counted separately. */
async function measured({ perSecond, call }: Resource, ms: number) {
  let failed = 0
  const rate = quotas ? Math.min(perSecond, QUOTA_PER_SECOND_MAX) : perSecond
  const { figures = percentiles([]) } = await pace(ms, rate, () =>
    call().catch((error: unknown) => {
      failed += 1
      console.error(String(error))
    }),
  )
  return { p99Ms: figures['p99Ms']!, p50Ms: figures['p50Ms']!, failed }
}

async function compared(resource: Resource) {
  await measured(resource, WARM_UP_MS)
  await sleep(REST_MS)
  const idle = await measured(resource, phaseMs)
  const before = await stage.refusals()
  enemy.postMessage(resource.hostile)
  await sleep(REACH_MS)
  const noisy = await measured(resource, phaseMs)
  const after = await stage.refusals()
  places.postMessage('release')
  const stopped = once(enemy, 'message') as Promise<[HostileEnd]>
  enemy.postMessage(null)
  const [end] = await stopped
  places.postMessage('release')
  await sleep(REST_MS)
  const refused = Array.from(after, ([name, count]) => ({
    name,
    count: count - (before.get(name) ?? 0),
  })).filter(({ count }) => count > 0)
  const ratio = noisy.p99Ms / idle.p99Ms
  return { resource: resource.name, idle, noisy, ratio, refused, hostile: end }
}

type Row = Awaited<ReturnType<typeof compared>>

function toMarkdown(rows: readonly Row[]): string {
  const ms = (value: number) => value.toFixed(value < 100 ? 1 : 0)
  const head = [
    '',
    'idle p50 ms',
    'idle p99 ms',
    'noisy p50 ms',
    'noisy p99 ms',
    'p99 ratio',
    `target ${RATIO_MAX}`,
    'refused by a share',
    'answers to the hostile tenant, 429 or 503',
    'honest calls failed',
  ]
  const lines = rows.map(({ resource, idle, noisy, ratio, refused, hostile: end }) => [
    resource,
    ms(idle.p50Ms),
    ms(idle.p99Ms),
    ms(noisy.p50Ms),
    ms(noisy.p99Ms),
    ratio.toFixed(2),
    ratio <= RATIO_MAX ? 'reached' : 'missed',
    refused.map(({ name, count }) => `${count} ${name}`).join(', ') || '0',
    `${end.answered}, ${end.refused}`,
    String(idle.failed + noisy.failed),
  ])
  return [
    '### A noisy neighbour',
    '',
    `${machine()}; ${new Date().toISOString().slice(0, 10)}; phases of ${phaseMs} ms; rate limits ${quotas ? 'on' : 'off'}.`,
    '',
    ...[head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`),
    '',
  ].join('\n')
}

try {
  await send('POST', '/api/v1/webhooks', { url: `${upstream}/quick`, event_types: [EVENT] })
  const rows: Row[] = []
  for (const resource of resources) {
    if (only !== undefined && !only.includes(resource.hostile)) continue
    rows.push(await compared(resource))
    console.error(`${resource.name}: done`)
  }
  await publishTable(toMarkdown(rows), { name: 'A noisy neighbour', machine: machine(), rows })
} finally {
  await enemy.terminate()
  await agent.destroy()
  await stage.end()
}
