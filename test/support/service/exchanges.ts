/**
 * What a test asks over HTTP and what comes, for the screen of its failure. Every client of Node counts: undici, fetch and the
 * helpers made of them announce their requests on the same channels.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { getGlobalDispatcher } from 'undici'

export type Exchange = {
  readonly method: string
  readonly url: string
  readonly headers: string
  body: string
  /** Undefined while nothing has come. */
  status?: number
  requestId?: string
  answer: string
}

/** Exchanges kept for each test: the last ones say why it failed. */
const EXCHANGES_MAX = 5
const BODY_CHARACTERS_MAX = 1500
const REQUESTS_MAX = 500
const LINES_MAX = 20

/** The members of undici's messages that are read here. */
type Sent = {
  readonly request: {
    readonly method: string
    readonly origin: string | URL
    readonly path: string
    readonly headers: string | readonly string[]
    readonly body: unknown
  }
}
type Came = Sent & {
  readonly response: { readonly statusCode: number; readonly headers: readonly Buffer[] }
}
type Part = Sent & { readonly chunk: Buffer }

const ofTest = new AsyncLocalStorage<Exchange[]>()
let isKeeping = false
const open = new WeakMap<Sent['request'], Exchange>()
/** The lines of the log of services in this process, by request id. The oldest request goes first. */
const lines = new Map<string, string[]>()
const logs = new Set<string>()

/** Runs a test. @returns its result, and the requests that it made last. */
export async function watchExchanges<Result>(
  test: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly exchanges: readonly Exchange[] }> {
  const exchanges: Exchange[] = []
  return { result: await ofTest.run(exchanges, test), exchanges }
}

/** Keeps a line of the log of a service in this process. */
export function rememberLine(line: string): void {
  const [, id] = /"request_id":"([^"]+)"/.exec(line) ?? []
  if (id === undefined) return
  const known = lines.get(id) ?? []
  known.push(line.trim())
  if (known.length > LINES_MAX) known.shift()
  lines.set(id, known)
  if (lines.size > REQUESTS_MAX) lines.delete(lines.keys().next().value!)
}

/** The log of a service of the runner: read when a test has failed. @returns what keeps its last lines at its end. */
export function rememberLog(path: string): (text: string) => void {
  logs.add(path)
  return (text) => {
    logs.delete(path)
    for (const line of text.split('\n')) rememberLine(line)
  }
}

/** What the services of this test file have logged of a request. */
export function linesOf(requestId: string): readonly string[] {
  const known = lines.get(requestId)
  if (known !== undefined) return known
  const all = [...logs].flatMap((path) => readFileSync(path, 'utf8').split('\n'))
  return all.filter((line) => line.includes(`"request_id":"${requestId}"`)).slice(-LINES_MAX)
}

/** From now on the requests of this process are kept with the test that makes them. */
export function keepExchanges(): void {
  if (isKeeping) return
  isKeeping = true
  // The client that is loaded first serves all, and the one of Node 20 does not announce the bodies of answers.
  getGlobalDispatcher()
  subscribe('undici:request:create', (message) => {
    const { request } = message as Sent
    const exchanges = ofTest.getStore()
    if (exchanges === undefined) return
    const { method, origin, path, headers, body } = request
    const isText = typeof body === 'string' || body instanceof Uint8Array
    const exchange: Exchange = {
      method,
      url: `${String(origin)}${path}`,
      headers: headersOf(headers),
      body: isText ? Buffer.from(body).toString('utf8').slice(0, BODY_CHARACTERS_MAX) : '',
      answer: '',
    }
    open.set(request, exchange)
    exchanges.push(exchange)
    if (exchanges.length > EXCHANGES_MAX) exchanges.shift()
  })
  subscribe('undici:request:headers', (message) => {
    const { request, response } = message as Came
    const exchange = open.get(request)
    if (exchange === undefined) return
    exchange.status = response.statusCode
    const words = response.headers.map(String)
    const at = words.findIndex((word, index) => index % 2 === 0 && /^x-request-id$/i.test(word))
    if (at !== -1) exchange.requestId = words[at + 1]!
  })
  subscribe('undici:request:bodyChunkReceived', (message) => {
    const { request, chunk } = message as Part
    const exchange = open.get(request)
    if (exchange === undefined || exchange.answer.length > BODY_CHARACTERS_MAX) return
    exchange.answer = (exchange.answer + String(chunk)).slice(0, BODY_CHARACTERS_MAX)
  })
}

/** undici has them as text, or as names and values in turn. */
function headersOf(given: string | readonly string[]): string {
  if (typeof given === 'string') return given.trim().replaceAll('\r\n', '\n')
  const pairs: string[] = []
  for (let index = 0; index < given.length; index += 2) {
    pairs.push(`${given[index]}: ${given[index + 1]}`)
  }
  return pairs.join('\n')
}
