/** JSON and form requests to a service, for the client library, the tour and the command line. */
import { request as send } from 'undici'
import { serviceAgent } from './connections.js'

export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The parsed body of a JSON response, the text of any other. */
  readonly body: unknown
}

export type Request = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path and query, relative to the base address. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly json?: unknown
  readonly form?: Readonly<Record<string, string>> | undefined
  /** Access token for the Authorization header. */
  readonly token?: string | undefined
}

export interface HttpClient {
  readonly baseUrl: string
  /** Any status is a response. @throws when the service cannot be reached. */
  request(request: Request): Promise<Answer>
  close(): Promise<void>
}

const TIMEOUT_MS = 60_000

/**
 * HTTP/2 when the service supports it over TLS, otherwise HTTP/1.1.
 * @param ca PEM of the CA to trust, when the system does not know it.
 */
export function httpClient(baseUrl: string, ca?: string): HttpClient {
  const agent = serviceAgent({
    ...(ca === undefined ? {} : { connect: { ca } }),
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    keepAliveTimeout: 1_000,
  })
  return {
    baseUrl,
    close: () => agent.close(),
    async request({ method, path, headers = {}, json, form, token }) {
      const answer = await send(new URL(path, baseUrl), {
        dispatcher: agent,
        method,
        headers: {
          accept: 'application/json',
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...headers,
        },
        body: bodyOf(json, form),
      })
      const text = await answer.body.text()
      const contentType = String(answer.headers['content-type'] ?? '')
      return {
        status: answer.statusCode,
        headers: Object.fromEntries(
          Object.entries(answer.headers).map(([name, value]) => [name, String(value)]),
        ),
        body: /[/+]json\b/.test(contentType) && text !== '' ? JSON.parse(text) : text,
      }
    },
  }
}

function bodyOf(json: unknown, form: Readonly<Record<string, string>> | undefined): string | null {
  if (json !== undefined) return JSON.stringify(json)
  return form === undefined ? null : new URLSearchParams(form).toString()
}
