/**
 * Calls of the API on behalf of a signed-in user, in this process and through the pipeline of HTTP: the same route,
 * authorization, validation, rate limits and audit. The console has no other way to read or to change anything.
 */
import type { ByteStream } from '../../../runtime/kernel/stream.js'
import {
  BodyUnreadable,
  type Answer,
  type HeaderFields,
  type HttpExchange,
  type HttpExchangeHandler,
  type StreamedAnswer,
  type StreamEnd,
} from '../../http-exchange.js'
import type { AnyRouteRequest } from '../../route.js'

export type ApiCall = {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** JSON text, the bytes of a file, or null. */
  readonly body?: string | Uint8Array | null | undefined
  /** The access token. Without one the call is anonymous. */
  readonly token?: string | undefined
  readonly idempotencyKey?: string | undefined
  /** Media type of the body. Default: application/json. */
  readonly contentType?: string | undefined
}

export type ApiAnswer = {
  readonly status: number
  readonly header: (name: string) => string | undefined
  readonly text: string
  /** The parsed body. Null without a body, or if it is not JSON. */
  readonly json: unknown
  /** The body of an answer that is written while it is made, such as a file. The caller reads or cancels it. */
  readonly stream?: ByteStream | undefined
}

/** The request of a browser on whose behalf the API is called. */
type CallOrigin = Pick<AnyRouteRequest, 'host' | 'clientAddress' | 'requestId'>

export type ConsoleApi = (origin: CallOrigin, call: ApiCall) => Promise<ApiAnswer>

/** @param handler the pipeline, which is complete only after the routes that call it. */
export function consoleApi(handler: () => HttpExchangeHandler, secure: boolean): ConsoleApi {
  return (origin, call) =>
    new Promise((resolve) => handler()(new InnerExchange(origin, call, secure, resolve)))
}

/** A request of the process to itself. Its answer is kept in memory. */
class InnerExchange implements HttpExchange {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: HeaderFields
  readonly host: string
  readonly peerAddress: string
  readonly secure: boolean
  readonly hasBody: boolean
  readonly fault = null
  readonly bodyFailure = null
  private readonly body: Uint8Array
  private readonly resolve: (answer: ApiAnswer) => void
  private answered = false

  constructor(
    { host, clientAddress, requestId }: CallOrigin,
    call: ApiCall,
    secure: boolean,
    resolve: (answer: ApiAnswer) => void,
  ) {
    const { method, path, body = null, token, idempotencyKey } = call
    const mark = path.indexOf('?')
    this.method = method
    this.path = mark < 0 ? path : path.slice(0, mark)
    this.query = mark < 0 ? '' : path.slice(mark + 1)
    this.host = host
    this.peerAddress = clientAddress
    this.secure = secure
    this.hasBody = body !== null
    this.body = typeof body === 'string' ? Buffer.from(body) : (body ?? new Uint8Array(0))
    this.resolve = resolve
    this.headers = fields({
      'x-request-id': requestId,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      ...(body === null
        ? {}
        : {
            'content-type': call.contentType ?? 'application/json',
            'content-length': String(this.body.length),
          }),
    })
  }

  turn(): true {
    return true
  }

  async readBody(maxBytes: number): Promise<Uint8Array> {
    if (this.body.length > maxBytes) throw new BodyUnreadable('too_large')
    return this.body
  }

  streamBody(): never {
    throw new Error('the console calls no operation with a streamed body')
  }

  /** Hands the body to the page, which relays it to the browser. */
  async relay({ body, ...head }: StreamedAnswer): Promise<StreamEnd> {
    if (this.answered) {
      body.cancel('it was answered before')
      return 'left'
    }
    this.resolveWith(head, '', body)
    return 'complete'
  }

  send({ body, ...head }: Answer): void {
    if (this.answered) return
    this.resolveWith(head, body === null || typeof body === 'string' ? (body ?? '') : decode(body))
  }

  private resolveWith(
    { status, block, headers }: Pick<Answer, 'status' | 'block' | 'headers'>,
    text: string,
    stream?: ByteStream,
  ): void {
    this.answered = true
    const pairs = new Map([...block.pairs, ...headers])
    this.resolve({ status, header: (name) => pairs.get(name), text, json: parsed(text), stream })
  }

  onAborted(): void {
    // A call ends with its answer: the action counts even if the browser has left.
  }

  get done(): boolean {
    return this.answered
  }
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}

function fields(all: Readonly<Record<string, string>>): HeaderFields {
  return {
    get: (name) => all[name],
    has: (name) => name in all,
    all: () => ({ ...all }),
  }
}
