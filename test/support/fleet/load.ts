/**
 * Steady load over HTTP/2, as a careful client sends it: a session that got a GOAWAY carries no further requests, a
 * request that the server has refused unprocessed is sent again (RFC 9113 section 8.7), and nothing else is repeated.
 */
import { randomUUID } from 'node:crypto'
import {
  type ClientHttp2Session,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json, Workspace } from '../agents/journey.js'

export interface Load {
  /** Requests that were answered as expected so far. */
  answered(): number
  /** Ends the load after the running requests. */
  stop(): Promise<LoadReport>
}

export interface LoadReport {
  readonly answered: number
  /** Requests without the expected answer: what they asked, and what happened. */
  readonly failures: readonly string[]
  /** How many of the failures are 503 with Retry-After. */
  readonly refusals: number
  /** Ids of the applications that the service said it created. */
  readonly created: readonly string[]
}

export interface LoadOptions {
  readonly baseUrl: string
  readonly ca: string
  readonly space: Workspace
  readonly workers: number
  /** Pause of a worker between two requests. */
  readonly paceMs: number
  /** The access token of now. Default: the token of the workspace, which expires. */
  readonly token?: (() => string) | undefined
}

type Sent = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

const CONNECTION_TRIES = 20
const CONNECTION_AGAIN_MS = 50
const REQUEST_MS_MAX = 35_000

/** Each worker asks for a token, creates an application, lists the agents and reads the metadata, in turn. */
export function startLoad({ baseUrl, ca, space, workers, paceMs, token }: LoadOptions): Load {
  const over = new AbortController()
  const failures: string[] = []
  const created: string[] = []
  const count = { answered: 0, refusals: 0 }
  const bearer = () => ({ authorization: `Bearer ${token?.() ?? space.accessToken}` })
  const basic = `Basic ${btoa(`${space.clientId}:${space.clientSecret}`)}`

  const work = async (session: Session) => {
    const ask = async (expected: number, head: OutgoingHttpHeaders, body?: string) => {
      const what = `${String(head[':method'] ?? 'GET')} ${String(head[':path'])}`
      try {
        const { status, headers, text } = await session.send(head, body)
        if (status === expected) {
          count.answered += 1
          return text
        }
        if (status === 503 && headers['retry-after'] !== undefined) count.refusals += 1
        failures.push(`${what}: ${status} ${text.slice(0, 200)}`)
      } catch (error) {
        failures.push(`${what}: ${String(error)}`)
      }
      return undefined
    }
    for (let turn = 0; !over.signal.aborted; turn += 1) {
      if (turn % 4 === 0) {
        const head = {
          ':method': 'POST',
          ':path': '/oauth/token',
          authorization: basic,
          'content-type': 'application/x-www-form-urlencoded',
        }
        await ask(200, head, 'grant_type=client_credentials')
      } else if (turn % 4 === 1) {
        const head = {
          ':method': 'POST',
          ':path': '/api/v1/applications',
          ...bearer(),
          'content-type': 'application/json',
        }
        const name = randomUUID()
        const body = JSON.stringify({ name, redirect_uris: ['https://app.example/cb'] })
        const text = await ask(201, head, body)
        if (text !== undefined) created.push(String((JSON.parse(text) as Json)['id']))
      } else if (turn % 4 === 2) {
        await ask(200, { ':path': '/api/v1/agents/me', ...bearer() })
      } else {
        await ask(200, { ':path': '/.well-known/openid-configuration' })
      }
      await sleep(paceMs)
    }
    session.close()
  }
  const working = Array.from({ length: workers }, () => work(new Session(baseUrl, ca)))
  return {
    answered: () => count.answered,
    async stop() {
      over.abort()
      await Promise.all(working)
      return { ...count, failures, created }
    },
  }
}

class Session {
  readonly #baseUrl: string
  readonly #ca: string
  #current: ClientHttp2Session | undefined

  constructor(baseUrl: string, ca: string) {
    this.#baseUrl = baseUrl
    this.#ca = ca
  }

  async send(head: OutgoingHttpHeaders, body?: string): Promise<Sent> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#once(await this.#open(), head, body)
      } catch (error) {
        if (!(error instanceof Unsent) || tries >= CONNECTION_TRIES) throw error
        await sleep(CONNECTION_AGAIN_MS)
      }
    }
  }

  close(): void {
    this.#current?.close()
  }

  async #open(): Promise<ClientHttp2Session> {
    if (this.#current !== undefined) return this.#current
    const session = connect(this.#baseUrl, { ca: this.#ca })
    const leave = () => {
      if (this.#current === session) this.#current = undefined
    }
    await new Promise<void>((resolve, reject) => {
      session.once('connect', () => resolve())
      session.once('error', (error) => reject(new Unsent(error)))
    })
    session.on('error', leave).on('close', leave).on('goaway', leave)
    this.#current = session
    return session
  }

  #once(session: ClientHttp2Session, head: OutgoingHttpHeaders, body?: string): Promise<Sent> {
    return new Promise((resolve, reject) => {
      // Another worker or a GOAWAY may have closed it: nothing was sent then.
      if (session.closed || session.destroyed) return reject(new Unsent('closed'))
      const stream = session.request(head, { endStream: body === undefined })
      let headers: IncomingHttpHeaders = {}
      let text = ''
      stream.setEncoding('utf8').on('data', (part: string) => (text += part))
      stream.once('response', (given) => (headers = given))
      stream.setTimeout(REQUEST_MS_MAX, () => {
        stream.close(constants.NGHTTP2_CANCEL)
        reject(new Error(`no answer within ${REQUEST_MS_MAX} ms`))
      })
      stream.once('error', (error) => {
        const isRefused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM
        reject(isRefused ? new Unsent(error) : error)
      })
      stream.once('close', () => {
        const status = Number(headers[':status'] ?? 0)
        if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) reject(new Unsent('refused'))
        else if (status === 0) reject(new Error('the connection ended without an answer'))
        else resolve({ status, headers, text })
      })
      if (body !== undefined) stream.end(body)
    })
  }
}

/** No server has processed the request. */
class Unsent extends Error {
  override readonly name = 'Unsent'

  constructor(cause: unknown) {
    super(`not sent: ${String(cause)}`)
  }
}
