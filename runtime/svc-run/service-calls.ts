/** One call of a program as a call of the egress proxy of the service: POST /v1/proxy/body. */
import type { Readable } from 'node:stream'
import { type Dispatcher, request } from 'undici'
import { serviceAgent } from '../client/connections.js'
import { injectionPoint } from '../../actors/vault/egress/inject/injection.js'
import type { TokenSource } from '../client/token-source.js'
import type { ChosenCredential } from './credential-choice.js'

export type HeaderPairs = readonly (readonly [name: string, value: string])[]

export type OutboundCall = {
  readonly method: string
  /** Absolute, https. */
  readonly url: string
  readonly headers: HeaderPairs
  readonly body: Readable | Uint8Array | null
  /** Length of the body where it is known. */
  readonly bodyBytes: number | null
  readonly credential: ChosenCredential
  readonly stream: boolean
  readonly signal: AbortSignal
}

export type ServiceAnswer = Dispatcher.ResponseData

export interface ServiceCalls {
  /** Any status is an answer. @throws when the service cannot be reached, or is no egress proxy. */
  send(call: OutboundCall): Promise<ServiceAnswer>
  close(): Promise<void>
}

/** Belong to the connection between the program and us, or are ours to set. */
const NOT_SENT = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

export function serviceCalls(baseUrl: string, token: TokenSource): ServiceCalls {
  // The service has its own clocks for a call; a long one is none of ours to end.
  const agent = serviceAgent({ headersTimeout: 0, bodyTimeout: 0 })
  const address = new URL('/v1/proxy/body', baseUrl)
  return {
    close: () => agent.destroy(),
    async send({ method, url, headers, body, bodyBytes, credential, stream, signal }) {
      const point = injectionPoint(credential.authScheme)
      const own = point?.in === 'header' ? point.name : null
      const answer = await request(address, {
        dispatcher: agent,
        method: 'POST',
        signal,
        headers: {
          ...relayedFields(headers, own),
          authorization: `Bearer ${await token()}`,
          'x-svc-credential-id': credential.id,
          'x-svc-auth-scheme': credential.authScheme,
          'x-svc-method': method,
          'x-svc-url': point?.in === 'query' ? withoutParameter(url, point.key) : url,
          'x-svc-stream-response': String(stream),
          ...(bodyBytes === null ? {} : { 'content-length': String(bodyBytes) }),
        },
        body,
      })
      if (answer.headers['proxy-status'] === undefined) {
        await answer.body.dump()
        throw new Error(`${baseUrl} answered ${answer.statusCode} and is no svc with egress`)
      }
      return answer
    },
  }
}

/** The program's fields as the service takes them, without the one that the secret goes into. */
function relayedFields(headers: HeaderPairs, own: string | null): Record<string, string> {
  const fields: Record<string, string> = {}
  const others: [string, string][] = []
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    // Servers exist that read `_` and `-` alike.
    const isOwn = own !== null && lower.replaceAll('_', '-') === own.replaceAll('_', '-')
    if (NOT_SENT.has(lower) || isOwn) continue
    if (!PLAIN_NAME.test(lower) || !PLAIN_VALUE.test(value)) {
      others.push([lower, value])
      continue
    }
    const as = lower === 'content-type' ? lower : `x-svc-header-${lower}`
    fields[as] = fields[as] === undefined ? value : `${fields[as]}, ${value}`
  }
  if (others.length > 0) fields['x-svc-headers'] = asciiJson(others)
  return fields
}

/**
 * What every server reads as it is: the native one of the service reads nothing of other names, and
 * cuts off values that end beyond ASCII.
 */
const PLAIN_NAME = /^[a-z0-9-]+$/
const PLAIN_VALUE = /^[\t -~]*$/

/** JSON that a field value can hold. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[^ -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** The address without every parameter of that name; all the rest byte for byte. */
export function withoutParameter(url: string, key: string): string {
  const at = url.indexOf('?')
  if (at < 0) return url
  const wanted = key.toLowerCase()
  const kept = url
    .slice(at + 1)
    .split('&')
    .filter(
      (part) =>
        ![...new URLSearchParams(part).keys()].some((name) => name.toLowerCase() === wanted),
    )
  return url.slice(0, at) + (kept.length === 0 ? '' : `?${kept.join('&')}`)
}
