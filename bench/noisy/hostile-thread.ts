/**
 * The hostile tenant of `noisy/neighbour`, on a separate thread: keeps one resource at its limit
 * until it gets `stop`. Its concurrency is bounded, and refused calls are repeated after a pause.
 */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { Agent, request } from 'undici'
import { openBrowser } from '../../runtime/clients/client/browser.js'
import { draftOf, EVENT, MAIL_QUEUE_MAX, type Reach, type Tenant } from './stage.js'

export type HostileNeeds = {
  readonly baseUrl: string
  readonly upstream: string
  readonly tenant: Tenant
}
/** Number of answered and refused calls. Calls that hung until the stop do not count. */
export type HostileEnd = { readonly answered: number; readonly refused: number }

const PAUSE_MS = 50
const SUBSCRIPTIONS = 50
const BYTES_OF_A_CALL = 10_000_000
/** As many calls as fit into the share of a tenant, 128 MiB. */
const BYTES_HELD = 13
const CALL = '/v1/proxy/body'
const APPLICATIONS = '/api/v1/applications'
const CREDENTIALS = '/api/v1/vault/credentials'
const WEBHOOKS = '/api/v1/webhooks'

const { baseUrl, upstream, tenant } = workerData as HostileNeeds
const { token, reaches } = tenant
const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
const bearer = { authorization: `Bearer ${token}` }

type Sent = { readonly json?: unknown; readonly headers?: Record<string, string> }
type Method = 'GET' | 'POST' | 'DELETE'

async function send(method: Method, path: string, { json, headers }: Sent, signal?: AbortSignal) {
  const answer = await request(baseUrl + path, {
    dispatcher: agent,
    method,
    headers: {
      ...bearer,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: json === undefined ? null : JSON.stringify(json),
    ...(signal === undefined ? {} : { signal }),
  })
  // Reads the stream as it arrives, and drops it.
  const chunks: string[] = []
  const isJson = String(answer.headers['content-type']).includes('json')
  for await (const chunk of answer.body) if (isJson) chunks.push(String(chunk))
  return { status: answer.statusCode, text: chunks.join('') }
}

const relayed = (reach: Reach, url: string, stream: boolean) => ({
  headers: {
    'x-svc-credential-id': reach.credentialId,
    'x-svc-method': 'GET',
    'x-svc-url': url,
    'x-svc-stream-response': String(stream),
  },
})

/** @returns the status. */
type Attempt = (signal: AbortSignal, worker: number, turn: number) => Promise<number>

async function flood(workers: number, signal: AbortSignal, attempt: Attempt): Promise<HostileEnd> {
  const end = { answered: 0, refused: 0 }
  async function work(worker: number): Promise<void> {
    for (let turn = 0; !signal.aborted; turn += 1) {
      const status = await attempt(signal, worker, turn).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
      if (status === undefined) return
      end.answered += 1
      if (status === 429 || status === 503) end.refused += 1
      if (status >= 400) await sleep(PAUSE_MS)
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)))
  return end
}

const through = (reach: Reach, path: string, stream = true): Attempt => {
  const sent = relayed(reach, upstream + path, stream)
  return async (signal) => (await send('POST', CALL, sent, signal)).status
}

const application = (name: string) => ({ json: { name, grant_types: ['client_credentials'] } })

/** Subscriptions to a receiver that never responds, and events for all of them. */
async function lanes(signal: AbortSignal): Promise<HostileEnd> {
  const made = await Promise.all(
    Array.from({ length: SUBSCRIPTIONS }, async (_, at) => {
      const url = `${upstream}/hold/${at}`
      const json = { url, event_types: [EVENT] }
      const { status, text } = await send('POST', WEBHOOKS, { json })
      if (status !== 201) throw new Error(text)
      return (JSON.parse(text) as { id: string }).id
    }),
  )
  const end = { answered: 0, refused: 0 }
  while (!signal.aborted) {
    await send('POST', CREDENTIALS, { json: draftOf(['localhost']) })
    end.answered += 1
    await sleep(500)
  }
  await Promise.all(made.map((id) => send('DELETE', `${WEBHOOKS}/${id}`, {})))
  return end
}

let letters = 0
const letter: Attempt = async (signal) => {
  letters += 1
  const json = { email: `crowd${letters}@mail.svc-bench.net` }
  const { status } = await send('POST', '/api/v1/tenant-users', { json }, signal)
  // The queue is full: one more message at a time, which is dropped.
  if (letters > MAIL_QUEUE_MAX) await sleep(4 * PAUSE_MS)
  return status
}

/** Unknown users cost as much as known ones. Their sign-ins come from another address. */
const signIn: Attempt = async (_, worker, turn) => {
  const browser = openBrowser({ baseUrl })
  const query = new URLSearchParams({ tenant_slug: tenant.slug })
  const headers = { 'x-forwarded-for': '192.0.2.7' }
  const page = await browser.get(`/auth/login?${query.toString()}`, headers)
  const email = turn % 8 === 7 ? tenant.email : `none-${worker}-${turn}@bench.test`
  const fields = { email, password: tenant.password }
  const [form] = page.forms
  const filled = { ...form?.fields, ...fields }
  const { status } = form === undefined ? page : await browser.post(form.action, filled, headers)
  await browser.close()
  return status
}

const [plain, periodic, names] = [reaches.plain[0]!, reaches.periodic[0]!, reaches.names[0]!]
const behaviours: Record<string, (signal: AbortSignal) => Promise<HostileEnd>> = {
  calls: (signal) => flood(96, signal, through(plain, '/silent')),
  held: (signal) => flood(BYTES_HELD, signal, through(plain, `/fill/${BYTES_OF_A_CALL}`, false)),
  bytes: (signal) => flood(24, signal, through(plain, `/fill/${BYTES_OF_A_CALL}`, false)),
  names: (signal) =>
    flood(names.origins.length, signal, async (_, worker) => {
      const sent = relayed(names, `${names.origins[worker]!}/echo`, true)
      return (await send('POST', CALL, sent, signal)).status
    }),
  relay: (signal) => flood(16, signal, through(plain, '/letters')),
  redaction: (signal) => flood(16, signal, through(periodic, '/letters')),
  lanes,
  mail: (signal) => flood(8, signal, letter),
  passwords: (signal) => flood(64, signal, signIn),
  reads: (signal) =>
    flood(64, signal, async () => (await send('GET', APPLICATIONS, {}, signal)).status),
  writes: (signal) =>
    flood(32, signal, async (_, worker, turn) => {
      const sent = application(`Flood ${worker} ${turn}`)
      return (await send('POST', APPLICATIONS, sent, signal)).status
    }),
}

let over = new AbortController()
let running: Promise<HostileEnd> | undefined
parentPort?.on('message', (name: string | null) => {
  if (name !== null) {
    over = new AbortController()
    setMaxListeners(0, over.signal)
    running = behaviours[name]!(over.signal).catch((error: unknown) => {
      console.error(`the hostile tenant: ${String(error)}`)
      return { answered: 0, refused: 0 }
    })
    return
  }
  over.abort()
  void running?.then((end) => parentPort?.postMessage(end))
})
