/**
 * A card provider on loopback with the part of the Stripe API that svc uses: it keeps its own books,
 * honours idempotency keys (including server errors), signs webhooks, and can be made to fail.
 */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Dispatcher, request } from 'undici'
import { serviceAgent } from '../../../runtime/clients/client/connections.js'
import type { Json } from '../api.js'
import { CardBooks, type ProviderEvent } from './card-books.js'
import { act, type Answer, refused } from './card-routes.js'

const CARD_KEY = 'sk_test_51LoopbackProviderKey'
export const CARD_WEBHOOK_SECRET = 'whsec_loopback_provider_secret'
const SERVER_ERROR: Answer = { status: 500, body: { error: { type: 'api_error' } } }

/** Outcome of a call: `hang_*` never answers, `error_*` answers 500, before or after its effect. */
export type Mishap = 'none' | 'hang_before' | 'hang_after' | 'error_before' | 'error_after'

export type Called = {
  readonly method: string
  readonly path: string
  readonly fields: Json
  readonly idempotencyKey: string | null
}

type Kept = { readonly fields: string; readonly answer: Answer }
type Receiver = { readonly baseUrl: string; readonly ca?: string | undefined }
type Delivery = {
  readonly secret?: string
  readonly atMs?: number
  readonly signature?: string | null
}

export class CardProvider extends CardBooks {
  readonly calls: Called[] = []
  /** Chosen for each call. Default none. */
  mishap: (call: Called) => Mishap = () => 'none'
  /** Keeps a call waiting. Default: none. */
  wait: (call: Called) => Promise<void> = () => Promise.resolve()
  private readonly kept = new Map<string, Kept>()
  private readonly agents = new Map<string, Dispatcher>()
  private readonly stop: () => Promise<unknown>

  constructor(url: string, stop: () => Promise<unknown>) {
    super(url)
    this.stop = stop
  }

  /** Settings that make the service use it. */
  get environment(): Readonly<Record<string, string>> {
    return {
      SVC_COMMERCE__CARD__PROVIDER: 'stripe_compatible',
      SVC_COMMERCE__CARD__API_BASE_URL: this.url,
      SVC_COMMERCE__CARD__SECRET_KEY: CARD_KEY,
      SVC_COMMERCE__CARD__WEBHOOK_SECRET: CARD_WEBHOOK_SECRET,
      SVC_COMMERCE__CARD__CHECKOUT_HOSTS: new URL(this.url).host,
      SVC_COMMERCE__CARD__TIMEOUT_SECS: '2',
    }
  }

  count(method: string, path: RegExp): number {
    return this.calls.filter((one) => one.method === method && path.test(one.path)).length
  }

  /** A day passes: idempotency keys are forgotten. */
  forgetKeys(): void {
    this.kept.clear()
  }

  async serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await callIn(incoming)
    this.calls.push(call)
    const say = ({ status, body }: Answer) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (incoming.headers.authorization !== `Bearer ${CARD_KEY}`) {
      return void say(refused(401, 'invalid_api_key'))
    }
    await this.wait(call)
    const mishap = this.mishap(call)
    if (mishap === 'hang_before') return
    const answer = this.answerTo(call, mishap)
    if (mishap !== 'hang_after') say(answer)
  }

  /** The first response under an idempotency key is final, including a server error. */
  private answerTo(call: Called, mishap: Mishap): Answer {
    const { idempotencyKey: key, fields, path } = call
    if (key === null) return this.run(call, mishap)
    const asked = JSON.stringify([path, fields])
    const known = this.kept.get(key)
    if (known !== undefined) {
      if (known.fields === asked) return known.answer
      return { status: 400, body: { error: { type: 'idempotency_error' } } }
    }
    // A copy, so that later changes do not affect the stored response.
    const answer = structuredClone(this.run(call, mishap))
    this.kept.set(key, { fields: asked, answer })
    return answer
  }

  private run({ method, path, fields }: Called, mishap: Mishap): Answer {
    if (mishap === 'error_before') return SERVER_ERROR
    const answer = act(this, method, path, fields)
    return mishap === 'error_after' ? SERVER_ERROR : answer
  }

  /** Delivers a webhook as the provider would. @returns the status of the response. */
  async deliver(
    { baseUrl, ca }: Receiver,
    { body }: Pick<ProviderEvent, 'body'>,
    { secret = CARD_WEBHOOK_SECRET, atMs = Date.now(), signature }: Delivery = {},
  ): Promise<number> {
    const at = Math.floor(atMs / 1000)
    const mac = createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')
    const signed = signature === undefined ? `t=${at},v1=${mac},v0=${'0'.repeat(64)}` : signature
    const answer = await request(new URL('/api/v1/commerce/card/events', baseUrl), {
      dispatcher: this.agentFor(ca),
      method: 'POST',
      headers: {
        'content-type': 'application/json; charset=utf-8',
        ...(signed === null ? {} : { 'stripe-signature': signed }),
      },
      body,
    })
    await answer.body.dump()
    return answer.statusCode
  }

  private agentFor(ca: string | undefined): Dispatcher {
    const known = this.agents.get(ca ?? '')
    if (known !== undefined) return known
    const agent = serviceAgent(ca === undefined ? {} : { connect: { ca } })
    this.agents.set(ca ?? '', agent)
    return agent
  }

  async close(): Promise<void> {
    await Promise.all([...this.agents.values()].map((agent) => agent.close()))
    await this.stop()
  }
}

export async function startCardProvider(): Promise<CardProvider> {
  const server = createServer((incoming, response) => {
    provider.serve(incoming, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : undefined)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const provider = new CardProvider(`http://127.0.0.1:${port}`, () => {
    server.closeAllConnections()
    server.close()
    return once(server, 'close')
  })
  return provider
}

async function callIn(incoming: IncomingMessage): Promise<Called> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const { pathname, search } = new URL(incoming.url ?? '/', 'http://provider')
  const method = incoming.method ?? 'GET'
  const text = method === 'POST' ? Buffer.concat(chunks).toString() : search.slice(1)
  const key = incoming.headers['idempotency-key']
  return {
    method,
    path: pathname,
    fields: nested(text),
    idempotencyKey: typeof key === 'string' ? key : null,
  }
}

/** `a[b][0]=1` as `{a: {b: {0: '1'}}}`. */
function nested(text: string): Json {
  const root: Json = {}
  for (const [name, value] of new URLSearchParams(text)) {
    const path = name.split(/\[|\]\[|\]/).filter((part) => part !== '')
    let at = root
    for (const part of path.slice(0, -1)) at = (at[part] ??= {}) as Json
    at[path.at(-1)!] = value
  }
  return root
}
