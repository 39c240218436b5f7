/**
 * Malformed requests to all routes: the answer is described in OpenAPI, has the request id, discloses no internals, and the
 * service still works. Requests are generated from OpenAPI and then broken, so that they pass the first checks. TEST_LONG
 * sends eighty times as many.
 */
import type { ExecutionContext } from 'ava'
import * as fc from 'fast-check'
import { request } from 'undici'
import { bootstrap, callerOf, clientToken, type Json, login } from '../../support/agents/journey.js'
import { isReady, metric } from '../../support/service/watch.js'
import type { Scene } from './scene.js'
import { runs } from '../../support/runs.js'

const RUNS = runs(8_000, 100)

type Schema = {
  $ref?: string
  type?: string | string[]
  properties?: Record<string, Schema>
  items?: Schema
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
}
type Operation = {
  requestBody?: { content: Record<string, { schema?: Schema }> }
  parameters?: { name: string; in: string }[]
}
type Document = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

/** Problematic strings. */
const NASTY = [
  '',
  '\u0000',
  'null',
  '-1',
  '9'.repeat(400),
  '1e400',
  "' or 1=1 --",
  '${7*7}',
  '../../../etc/passwd',
  '%00',
  '%',
  '\ud800',
  '\u202e',
  '<script>',
  '\r\nx-injected: 1',
  '00000000-0000-0000-0000-000000000000',
  '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e',
  '__proto__',
  'constructor',
  'a'.repeat(5_000),
  '{"a":1}',
]
const text = fc.oneof(
  fc.constantFrom(...NASTY),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ maxLength: 12 }),
)
const anyJson = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  text,
  fc.constantFrom<unknown>(2 ** 53, -0, 1e308, true, [], {}, [[[[[[]]]]]]),
)

/** Values of a schema, some of them invalid. */
function shaped(schema: Schema, document: Document, depth = 0): fc.Arbitrary<unknown> {
  const name = schema.$ref?.split('/').at(-1)
  if (name !== undefined && depth < 6) {
    return shaped(document.components.schemas[name] ?? {}, document, depth + 1)
  }
  const broken = { arbitrary: anyJson, weight: 1 }
  const like = (arbitrary: fc.Arbitrary<unknown>, weight = 4) =>
    fc.oneof({ arbitrary, weight }, broken)
  if (schema.const !== undefined) return like(fc.constant(schema.const))
  if (schema.enum !== undefined) return like(fc.constantFrom(...schema.enum))
  if (schema.anyOf !== undefined && depth < 6) {
    return fc.oneof(...schema.anyOf.map((one) => shaped(one, document, depth + 1)))
  }
  if (schema.properties !== undefined && depth < 6) {
    const members = Object.entries(schema.properties).map(
      ([member, inner]) => [member, shaped(inner, document, depth + 1)] as const,
    )
    const object = fc.record(Object.fromEntries(members), { requiredKeys: [] })
    return like(object, 8)
  }
  const type = [schema.type].flat()[0]
  if (type === 'array') {
    return like(fc.array(shaped(schema.items ?? {}, document, depth + 1), { maxLength: 4 }))
  }
  if (type === 'integer' || type === 'number') return like(fc.oneof(fc.integer(), fc.double()))
  if (type === 'boolean') return like(fc.boolean())
  return like(text)
}

/** The described answer of features that are not configured. */
const NOT_IMPLEMENTED = 501
const OAUTH_ERROR = new Set(['error', 'error_description', 'error_uri', 'request_id'])
const STACK = /\n\s+at |node:internal|\/dist\/|\.js:\d+|\bselect .* from\b/

/** A property of requests that are generated from the OpenAPI document. */
export async function garbage(t: ExecutionContext<Scene>): Promise<void> {
  t.timeout(600_000)
  const { running } = t.context
  const http = callerOf(running.baseUrl)
  const space = await bootstrap(http)
  const document = (await http.call('/openapi.json')).body as unknown as Document
  const entered = await login(http, space)
  const service = await clientToken(http, space)

  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  )
  const authorization = fc.oneof(
    fc.constantFrom(
      undefined,
      `Bearer ${space.accessToken}`,
      `Bearer ${String(entered.body['access_token'])}`,
      `Bearer ${String(service.body['access_token'])}`,
      `Basic ${Buffer.from(`${space.clientId}:${space.clientSecret}`).toString('base64')}`,
    ),
    text.map((word) => `Bearer ${word.replaceAll(/[^\x21-\x7e]/g, '')}`),
    fc.constantFrom('Bearer', 'Basic !!!', 'DPoP a.b.c', 'Bearer a.b.c', 'Negotiate x'),
  )
  const whole = fc.constantFrom(...operations).chain(({ method, path, operation }) => {
    const [type, described] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
    const value = shaped(described?.schema ?? {}, document)
    const bytes = fc.uint8Array({ maxLength: 200 }).map((raw) => Buffer.from(raw))
    const encoded =
      type === 'application/x-www-form-urlencoded'
        ? value.map((fields) => Buffer.from(formOf(fields)))
        : value.map((json) => Buffer.from(JSON.stringify(json) ?? ''))
    const cut = fc.tuple(encoded, fc.nat(60)).map(([raw, at]) => raw.subarray(0, at))
    const segments = fc.array(
      fc.oneof(text, fc.constantFrom(space.tenantId, space.organizationId, space.agentId)),
      { minLength: 5, maxLength: 5 },
    )
    const query = (operation.parameters ?? []).filter((one) => one.in === 'query')
    return fc.record({
      method: fc.constant(method.toUpperCase()),
      declared: fc.constant(path),
      segments,
      query: fc.record(Object.fromEntries(query.map(({ name }) => [name, text])), {
        requiredKeys: [],
      }),
      body: fc.oneof(
        { arbitrary: encoded, weight: 6 },
        { arbitrary: bytes, weight: 1 },
        { arbitrary: cut, weight: 1 },
      ),
      contentType: fc.oneof(
        { arbitrary: fc.constant(type ?? 'application/json'), weight: 9 },
        {
          arbitrary: fc.constantFrom('text/plain', 'application/json; charset=x', ''),
          weight: 1,
        },
      ),
      authorization,
      idempotencyKey: fc.option(fc.constantFrom('same', 'a b', 'x'.repeat(300)), {
        nil: undefined,
        freq: 4,
      }),
    })
  })

  const seen = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(whole, async (sent) => {
      let at = 0
      const path = sent.declared.replaceAll(/\{[^}]+\}/g, () => segmentOf(sent.segments[at++]!))
      const query = new URLSearchParams(Object.entries(sent.query).filter(isGiven)).toString()
      const hasBody = !['GET', 'DELETE'].includes(sent.method)
      const answer = await request(`${running.baseUrl}${path}${query === '' ? '' : `?${query}`}`, {
        method: sent.method as 'POST',
        headers: {
          ...(hasBody && sent.contentType !== '' ? { 'content-type': sent.contentType } : {}),
          ...(sent.authorization === undefined ? {} : { authorization: sent.authorization }),
          ...(sent.idempotencyKey === undefined ? {} : { 'idempotency-key': sent.idempotencyKey }),
        },
        body: hasBody ? sent.body : null,
      })
      const said = await answer.body.text()
      const { statusCode: status, headers } = answer
      seen.set(status, (seen.get(status) ?? 0) + 1)
      const where = `${sent.method} ${sent.declared} ${status}: ${said.slice(0, 200)}`
      // The test service itself compares status, type and body with OpenAPI.
      if (status >= 500 && status !== NOT_IMPLEMENTED) throw new Error(where)
      if (String(headers['x-request-id'] ?? '') === '') throw new Error(`no request id: ${where}`)
      const challenge = String(headers['www-authenticate'] ?? '')
      if (challenge.includes('error="') && !challenge.includes('error_description="'))
        throw new Error(`a challenge without words: ${where}: ${challenge}`)
      if (headers['x-injected'] !== undefined) throw new Error(`a header was injected: ${where}`)
      if (status < 400) return
      if (STACK.test(said)) throw new Error(`it shows the inside: ${where}`)
      const type = String(headers['content-type'] ?? '')
      if (type.startsWith('text/html')) return
      const body = JSON.parse(said) as Json
      // JSON-RPC 2.0 section 5.1: the error is an object with a number.
      if (sent.declared === '/mcp' && isJsonRpcError(body)) return
      // RFC 8935 section 2.3: the error of a security event is `err`.
      const code = sent.declared.endsWith('/security-events') ? body['err'] : body['error']
      if (typeof code !== 'string') throw new Error(`no error code: ${where}`)
      // OAuth endpoints use their own form, as OpenAPI describes.
      const isOauth =
        type === 'application/json' && Object.keys(body).every((name) => OAUTH_ERROR.has(name))
      if (!isOauth && type !== 'application/problem+json') throw new Error(`${type}: ${where}`)
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  )
  t.log(
    [...seen]
      .toSorted(([a], [b]) => a - b)
      .map(([status, n]) => `${status}: ${n}`)
      .join(', '),
  )
  t.true((seen.get(400) ?? 0) > 0 && (seen.get(200) ?? 0) > 0)
  t.true(await isReady(http))
  t.is(await metric(http, 'svc_actor_unavailable_total', { reason: 'failed' }), 0)
  t.is(await metric(http, 'svc_actor_restarts_total'), 0)
  await bootstrap(http)
}

function formOf(fields: unknown): string {
  const form = new URLSearchParams()
  if (typeof fields !== 'object' || fields === null) return String(fields)
  for (const [name, value] of Object.entries(fields)) {
    form.append(name, typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
  }
  return form.toString()
}

/** A path segment. Unpaired surrogates cannot be encoded. */
function segmentOf(word: string): string {
  return encodeURIComponent(word.replaceAll(/[\ud800-\udfff]/g, 'x').slice(0, 600)) || 'x'
}

function isGiven(pair: [string, string | undefined]): pair is [string, string] {
  return pair[1] !== undefined
}

function isJsonRpcError({ jsonrpc, error }: Json): boolean {
  return jsonrpc === '2.0' && Number.isInteger((error as { code?: unknown } | null)?.code)
}
