/**
 * The group of hostile tenants of `noisy/groups`, on a separate thread: from a message until the next, each tenant
 * holds whatever it gets of all shared resources at the same time. Its agents stay within their rate limits.
 */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { Agent, request } from 'undici'
import { createAgentKey } from '../../runtime/clients/client/agent.js'
import { draftOf, EVENT, type Tenant } from './stage.js'

export type GroupNeeds = {
  readonly baseUrl: string
  readonly upstream: string
  readonly tenants: readonly Tenant[]
  /** Where strangers register. */
  readonly target: { readonly issuer: string; readonly tenantId: string }
}
/** Answers to the group by kind of call: `calls 503` and the like. */
export type GroupEnd = Readonly<Record<string, number>>

/** Calls under way of an agent, as by default: to silent upstreams, and to names without a server. */
const SILENT = 48
const UNNAMED = 16
/** Refused calls of an agent, which are repeated. The rate limit is ten a second. */
const AGENT_PER_SECOND = 8
/** As many as a tenant has webhook lanes by default. */
const SUBSCRIPTIONS = 32
const EVENT_EVERY_MS = 2_000
const TESTS = 4
const TEST_PAUSE_MS = 1_000
/** Registrations of strangers under way, each from its own address. */
const STRANGERS = 32
const STRANGER_PAUSE_MS = 500

const { baseUrl, upstream, tenants, target } = workerData as GroupNeeds
const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
const { host } = new URL(upstream)

type Sent = {
  readonly token?: string
  readonly json?: unknown
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

async function send(method: 'GET' | 'POST' | 'DELETE', path: string, sent: Sent) {
  const { token, json, headers = {}, signal } = sent
  const answer = await request(baseUrl + path, {
    dispatcher: agent,
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: json === undefined ? null : JSON.stringify(json),
    ...(signal === undefined ? {} : { signal }),
  })
  return { status: answer.statusCode, text: await answer.body.text() }
}

class Attack {
  readonly #over = new AbortController()
  readonly #answers: Record<string, number> = {}
  readonly #running: Promise<unknown>[] = []

  constructor() {
    const { signal } = this.#over
    setMaxListeners(0, signal)
    for (const tenant of tenants) this.#tenant(tenant, signal)
    this.#flood('did:web', STRANGERS, STRANGER_PAUSE_MS, () => register(signal))
  }

  async end(): Promise<GroupEnd> {
    this.#over.abort()
    await Promise.all(this.#running)
    return this.#answers
  }

  #tenant(tenant: Tenant, signal: AbortSignal): void {
    const pauseMs = ((SILENT + UNNAMED) * 1_000) / AGENT_PER_SECOND
    const [plain, names] = [tenant.reaches.plain[0]!, tenant.reaches.names[0]!]
    const call = (token: string, credentialId: string, url: string) =>
      send('POST', '/v1/proxy/body', {
        token,
        signal,
        headers: {
          'x-svc-credential-id': credentialId,
          'x-svc-method': 'GET',
          'x-svc-url': url,
          'x-svc-stream-response': 'true',
        },
      })
    for (const token of tenant.tokens) {
      this.#flood('calls', SILENT, pauseMs, () =>
        call(token, plain.credentialId, `${upstream}/silent`),
      )
      this.#flood('names', UNNAMED, pauseMs, (worker, turn) => {
        const origin = names.origins[(worker + turn * UNNAMED) % names.origins.length]!
        return call(token, names.credentialId, `${origin}/echo`)
      })
    }
    this.#running.push(this.#receivers(tenant, signal))
  }

  /** Receivers that do not answer, events for all of them, and test deliveries to them. */
  async #receivers({ token }: Tenant, signal: AbortSignal): Promise<void> {
    const webhooks = '/api/v1/webhooks'
    const made: string[] = []
    while (made.length < SUBSCRIPTIONS && !signal.aborted) {
      const json = { url: `${upstream}/hold/${made.length}`, event_types: [EVENT] }
      const { status, text } = await send('POST', webhooks, { token, json })
      if (status !== 201) throw new Error(text)
      made.push((JSON.parse(text) as { id: string }).id)
    }
    const json = draftOf(['localhost'])
    const floods = [
      this.#flood('events', 1, EVENT_EVERY_MS, () =>
        send('POST', '/api/v1/vault/credentials', { token, json, signal }),
      ),
      this.#flood('tests', TESTS, TEST_PAUSE_MS, (worker, turn) => {
        const id = made[(worker + turn * TESTS) % made.length]!
        return send('POST', `${webhooks}/${id}/test`, { token, signal })
      }),
    ]
    await Promise.all(floods)
    for (const id of made) await send('DELETE', `${webhooks}/${id}`, { token })
  }

  /** Workers that repeat a call after a pause, from a little less to a little more than given. */
  #flood(
    kind: string,
    workers: number,
    pauseMs: number,
    call: (worker: number, turn: number) => Promise<{ readonly status: number }>,
  ): Promise<unknown> {
    const { signal } = this.#over
    const work = async (worker: number) => {
      for (let turn = 0; !signal.aborted; turn += 1) {
        const answer = await call(worker, turn).catch((error: Error) => ({ status: error.name }))
        if (signal.aborted) return
        const key = `${kind} ${answer.status}`
        this.#answers[key] = (this.#answers[key] ?? 0) + 1
        await sleep(pauseMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => {})
      }
    }
    const running = Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)))
    this.#running.push(running)
    return running
  }
}

let strangers = 0
/** A registration whose document does not come. */
function register(signal: AbortSignal) {
  strangers += 1
  const didWeb = `did:web:${host.replace(':', '%3A')}:silent:${strangers}`
  const key = createAgentKey().registration({ ...target, didWeb })
  const address = `203.0.${(strangers >> 8) & 255}.${strangers & 255}`
  return send('POST', '/api/v1/agents/auth/register/pow', {
    json: { name: 'Stranger', tenant_id: target.tenantId, ...key },
    headers: { 'x-forwarded-for': address },
    signal,
  })
}

let attack: Attack | undefined
parentPort?.on('message', () => {
  if (attack === undefined) {
    attack = new Attack()
    return
  }
  void attack.end().then((end) => parentPort?.postMessage(end))
  attack = undefined
})
