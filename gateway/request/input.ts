/** Reads and validates the declared parts of a request. Cheap checks come first. */
import { decodeJwt } from 'jose'
import type { Principal } from '../../actors/domain/principal.js'
import { systemClock } from '../../runtime/kernel/clock.js'
import {
  checked,
  fingerprintOf,
  headerPointer,
  idempotencyKey,
  objectOf,
  parseBody,
  parseFields,
  pathPointer,
  queryPointer,
  refuseMedia,
} from '../body/read.js'
import type { ClientAddresses } from './client-address.js'
import type { CompiledRoute } from '../compile-route.js'
import type { HttpExchange } from '../http-exchange.js'
import { accepts } from '../headers/accept.js'
import { decodedOr } from './presented-client.js'
import type { Problem } from '../response/problems.js'
import {
  type AnyRouteRequest,
  type BodyRule,
  type FormFields,
  type IdempotencyClaim,
  isQueryFields,
  type StreamedBody,
} from '../route.js'
import { decodeParams } from '../router.js'
import { clientAddressOf, EMPTY, type Parts, type RequestContext } from './request-context.js'

type PartsRead =
  | { readonly ok: true; readonly value: Parts }
  | { readonly ok: false; readonly problem: Problem; readonly close?: boolean }
  /** The request was answered. */
  | { readonly ok: false; readonly problem: null }

/** Time limit of a body if request_timeout_secs is 0. */
const BODY_MS_MAX = 600_000
const NO_BYTES = new Uint8Array(0)
/** Tags of operations whose protocol has one media type, so that Accept chooses nothing. */
const PROTOCOLS: ReadonlySet<string> = new Set([
  'OAuth',
  'Verifiable credentials',
  'Shared signals',
])
/**
 * Bytes of a too large body that are read and dropped, so that a client that writes its whole request before it
 * reads gets the answer.
 */
const DROPPED_BYTES_MAX = 64 * 1024 * 1024

/** True if the rest of a too large body is dropped. Otherwise the connection is closed. */
export function restIsDropped({ headers }: Pick<HttpExchange, 'headers'>): boolean {
  const declared = headers.get('content-length')
  return declared !== undefined && Number(declared) <= DROPPED_BYTES_MAX
}

const ANSWERED: PartsRead = { ok: false, problem: null }
const refused = (problem: Problem): PartsRead => ({ ok: false, problem })

export class InputReader {
  private readonly addresses: ClientAddresses

  constructor(addresses: ClientAddresses) {
    this.addresses = addresses
  }

  /**
   * @param admits judges the length of a body before it is read, or parsed if its length was unknown. False: it has
   * answered the request.
   * @returns a promise only if there is a body to read.
   */
  read(
    context: RequestContext,
    compiled: CompiledRoute,
    principal: Principal | null,
    admits: (bytes: number) => boolean,
  ): PartsRead | Promise<PartsRead> {
    const { exchange } = context
    const { route, offers } = compiled
    if (!isAcceptable(compiled, exchange.headers.get('accept')))
      return refused({
        name: 'not-acceptable',
        detail: `This operation answers ${offers.join(', ')}.`,
      })
    const media = route.body === undefined ? undefined : refuseMedia(route.body, exchange)
    if (media !== undefined) return refused(media)

    const raw = decodeParams(context.rawParams)
    if (raw === null) return refused({ name: 'bad-request', detail: 'The path is malformed.' })
    const params =
      route.params === undefined ? accepted(raw) : checked(route.params, raw, pathPointer)
    if (!params.ok) return params

    const query = queryOf(compiled, exchange.query)
    if (!query.ok) return query
    const headers =
      route.headers === undefined
        ? accepted(EMPTY)
        : checked(route.headers, exchange.headers.all(), headerPointer)
    if (!headers.ok) return headers

    const key = route.idempotent === true ? exchange.headers.get('idempotency-key') : undefined
    const idempotencyKeyValue = key === undefined ? undefined : idempotencyKey(key)
    if (idempotencyKeyValue === null) return refused(BAD_KEY)

    const partsWith = (body: unknown, bytes: Uint8Array): PartsRead => {
      const idempotency: IdempotencyClaim | null =
        idempotencyKeyValue === undefined
          ? null
          : {
              scope: this.scopeOf(context, principal),
              key: idempotencyKeyValue,
              fingerprint: fingerprintOf(bytes),
            }
      const value: Parts = {
        params: params.value,
        query: query.value,
        headers: headers.value,
        body,
        idempotency,
      }
      return { ok: true, value }
    }
    if (route.body === undefined) return partsWith(null, NO_BYTES)
    if (route.body.kind === 'stream') {
      const declared = exchange.headers.get('content-length')
      const announced = declared === undefined ? null : Number(declared)
      if (announced !== null && announced > route.body.maxBytes) {
        const close = !restIsDropped(exchange)
        return { ok: false, problem: { name: 'payload-too-large' }, close }
      }
      const stream = exchange.hasBody ? exchange.streamBody(route.body.maxBytes) : null
      const bytes = exchange.hasBody ? announced : 0
      return partsWith({ stream, bytes } satisfies StreamedBody, NO_BYTES)
    }
    const rule = route.body
    const declared = exchange.headers.get('content-length')
    if (declared !== undefined && !admits(Math.min(Number(declared), rule.maxBytes)))
      return ANSWERED
    return exchange.readBody(rule.maxBytes, this.bodyMs(context, rule)).then((bytes) => {
      if (declared === undefined && !admits(bytes.byteLength)) return ANSWERED
      // Warnings need an authenticated caller, whose tenant tells whether it is a sandbox.
      const onUnknown =
        principal === null
          ? undefined
          : (names: readonly string[]) => void (context.unknown = names)
      const parsed = parseBody(rule, bytes, onUnknown)
      return parsed.ok ? partsWith(parsed.value, bytes) : parsed
    })
  }

  /**
   * The scope of idempotency keys: tenant, caller, method and path (docs/reference/http.md, Idempotency). A caller
   * without a token is identified by address and host.
   */
  private scopeOf(context: RequestContext, principal: Principal | null): string {
    const { exchange } = context
    const caller =
      principal === null
        ? `anonymous:${clientAddressOf(context, this.addresses)}:${exchange.host}`
        : `${principal.tenantId}:${principal.clientId}:${principal.subject}`
    return `${caller}:${exchange.method}:${exchange.path}`
  }

  private bodyMs({ deadlineMs }: RequestContext, rule: BodyRule<unknown>): number {
    const ownMs =
      rule.kind === 'raw' && rule.withinSecs !== undefined ? rule.withinSecs * 1000 : BODY_MS_MAX
    return deadlineMs === undefined
      ? ownMs
      : Math.min(ownMs, Math.max(1, deadlineMs - systemClock.monotonicMs()))
  }
}

const accepted = (value: unknown) => ({ ok: true, value }) as const

/**
 * Negotiated routes also answer clients that do not accept HTML, with a redirect or an error. OAuth, credential
 * issuers and shared signals answer JSON whatever a client accepts (RFC 6749 section 5.1): many send the Accept of a browser.
 */
const isAcceptable = ({ route, offers }: CompiledRoute, accept: string | undefined): boolean =>
  accept === undefined ||
  offers.length === 0 ||
  route.errors === 'negotiated' ||
  route.errors === 'oauth' ||
  route.tags.some((tag) => PROTOCOLS.has(tag)) ||
  accepts(accept, offers)

function queryOf({ route, emptyQuery }: CompiledRoute, text: string): ReturnType<typeof checked> {
  if (emptyQuery !== null && text === '') return emptyQuery
  if (route.query === undefined) return accepted(EMPTY)
  const fields = parseFields(text)
  if (!fields.ok || isQueryFields(route.query)) return fields
  const object = objectOf(fields.value, 'query:')
  return object.ok ? checked(route.query, object.value, queryPointer) : object
}

const BAD_KEY: Problem = {
  name: 'bad-request',
  detail: 'The idempotency-key must have 1 to 255 visible ASCII characters.',
  errors: [{ pointer: 'header:idempotency-key', detail: '1 to 255 visible ASCII characters' }],
}

/**
 * The client id in a form, a Basic header or an access token, for CORS, or null. The token is not verified here:
 * the client id selects who may read the answer, and an invalid token gets an error anyway.
 */
export function clientIdOf({ body, credentials }: AnyRouteRequest): string | null {
  if (Array.isArray(body)) {
    const valueOf = (wanted: string) => (body as FormFields).find(([name]) => name === wanted)?.[1]
    const clientId = valueOf('client_id')
    if (clientId !== undefined) return clientId
    // RFC 6750 section 2.2.
    const token = valueOf('access_token')
    if (token !== undefined) return clientIdIn(token)
  } else if (typeof body === 'object' && body !== null && 'client_id' in body) {
    return String(body.client_id)
  }
  const token = /^(?:bearer|dpop) +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(
    credentials.authorization ?? '',
  )?.[1]
  if (token !== undefined) return clientIdIn(token)
  const basic = /^basic +([A-Za-z0-9+/]+=*)$/i.exec(credentials.authorization ?? '')?.[1]
  if (basic === undefined) return null
  const [user = ''] = Buffer.from(basic, 'base64').toString('utf8').split(':')
  return user === '' ? null : decodedOr(user)
}

function clientIdIn(token: string): string | null {
  try {
    const clientId = decodeJwt(token)['client_id']
    return typeof clientId === 'string' ? clientId : null
  } catch {
    return null
  }
}
