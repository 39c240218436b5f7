/** All requests, including arbitrary bytes, get a documented answer. */
import test from 'ava'
import * as fc from 'fast-check'
import { openapiDocument } from '../../gateway/apps/openapi/openapi.js'
import { sendRaw, statuses } from './raw.js'
import { NODE_PARSED, onEachTransport, openStage, UWS_PARSED } from './stage.js'
import { runs } from '../support/runs.js'

type Responses = Record<string, Record<string, { responses: Record<string, unknown> }>>

/** Statuses without a route. */
const UNROUTED = new Set([400, 404, 405, 421, 431])
const RUNS = runs(300, 40)
const RAW_RUNS = runs(150)

const token = fc.string({
  minLength: 1,
  maxLength: 12,
  unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz-'),
})
const visible = fc.string({
  maxLength: 60,
  unit: fc.integer({ min: 0x20, max: 0x7e }).map((c) => String.fromCharCode(c)),
})
const header = fc.oneof(
  fc.record({ name: token.map((name) => `x-${name}`), value: visible }),
  fc.record({
    name: fc.constantFrom(
      'authorization',
      'accept',
      'content-type',
      'content-encoding',
      'idempotency-key',
      'dpop',
      'origin',
      'if-none-match',
      'x-forwarded-for',
      'x-request-id',
      'cookie',
      'x-probe',
    ),
    value: fc.oneof(
      visible,
      fc.constantFrom('Bearer good', 'application/json', 'DPoP good', '*', 'null'),
    ),
  }),
)
const path = fc.oneof(
  fc.constantFrom(
    '/hello',
    '/echo',
    '/guarded',
    '/direct',
    '/document',
    '/oauth/token',
    '/oauth/form',
    '/raw',
    '/page',
    '/break',
    '/metrics',
    '/openapi.json',
    '/api/docs',
    '/api/v1/capabilities',
  ),
  fc.webPath().map((tail) => `/things${tail}`),
  fc.webPath().map((tail) => `/errors${tail}`),
  fc.webPath().map((tail) => `/api/docs${tail}`),
  fc.webPath().map((tail) => (tail.startsWith('/') ? tail : `/${tail}`)),
)
const body = fc.oneof(
  fc.constant(undefined),
  fc.uint8Array({ maxLength: 300 }),
  fc.json().map((text) => new TextEncoder().encode(text)),
  fc.webQueryParameters().map((text) => new TextEncoder().encode(text)),
)
const anything = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'),
  path,
  query: fc.oneof(fc.constant(''), fc.webQueryParameters()),
  headers: fc.array(header, { maxLength: 6 }),
  body,
})

onEachTransport(
  test,
  { server: { endpoint_throttle: { enabled: false } } },
  ({ on, call, stage }) => {
    test(on('any request gets a documented status, a request id and no stack'), async (t) => {
      t.timeout(120_000)
      const { routes } = stage().gateway
      const document = openapiDocument({ issuer: 'https://id.test', exposure: 'internal', routes })
      const { paths } = document as { paths: Responses }
      const allowed = (method: string, requested: string): Set<number> => {
        const known = new Set(UNROUTED)
        const item = Object.entries(paths).find(([declared]) => fits(declared, requested))?.[1]
        if (method === 'OPTIONS' && item !== undefined) known.add(204)
        const operation = item?.[(method === 'HEAD' ? 'GET' : method).toLowerCase()]
        for (const status of Object.keys(operation?.responses ?? {})) known.add(Number(status))
        // 304 and 406 are possible for all operations.
        return known.add(304).add(406)
      }
      await t.notThrowsAsync(
        fc.assert(
          fc.asyncProperty(anything, async ({ method, path, query, headers, body }) => {
            const reply = await call({
              method,
              path: query === '' ? path : `${path}?${query}`,
              headers: Object.fromEntries(headers.map(({ name, value }) => [name, value.trim()])),
              ...(body === undefined || method === 'GET' || method === 'HEAD' ? {} : { body }),
            })
            const known = allowed(method, path)
            if (!known.has(reply.status)) throw new Error(`${method} ${path} gave ${reply.status}`)
            if ((reply.headers['x-request-id'] ?? '') === '') throw new Error('no x-request-id')
            if (/\n\s+at |node:internal|\.js:\d+/.test(reply.text)) {
              if (!path.startsWith('/api/docs')) throw new Error(`a stack: ${reply.text}`)
            }
            const type = reply.headers['content-type'] ?? ''
            if (reply.status >= 400 && method !== 'HEAD' && !type.endsWith('json')) {
              throw new Error(`${reply.status} as ${type}`)
            }
          }),
          { numRuns: RUNS },
        ),
      )
    })
  },
)

function fits(declared: string, requested: string): boolean {
  const pattern = declared.replaceAll(/\{[a-z_]+\}/g, '[^/]+')
  return new RegExp(`^${pattern}$`).test(requested)
}

for (const transport of [...UWS_PARSED, ...NODE_PARSED]) {
  test(`${transport}: any bytes on the socket leave the service standing`, async (t) => {
    t.timeout(120_000)
    const stage = await openStage({ transport, server: { endpoint_throttle: { enabled: false } } })
    t.teardown(() => stage.close())
    const line = fc.constantFrom(
      'GET /hello HTTP/1.1\r\n',
      'POST /echo HTTP/1.1\r\n',
      'Host: id.test\r\n',
      'Host:\r\n',
      'Content-Length: 5\r\n',
      'Transfer-Encoding: chunked\r\n',
      '\r\n',
      '5\r\nhello\r\n',
      '0\r\n\r\n',
      'Expect: 100-continue\r\n',
      'Connection: upgrade\r\nUpgrade: websocket\r\n',
    )
    const noise = fc.uint8Array({ maxLength: 40 }).map((raw) => Buffer.from(raw).toString('latin1'))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(line, noise), { maxLength: 8 }), async (parts) => {
        const reply = await sendRaw(stage, parts.join(''), { withinMs: 25 })
        const strange = statuses(reply).find((status) => status >= 500 && status !== 505)
        if (strange !== undefined) throw new Error(`${strange}: ${reply.text}`)
      }),
      { numRuns: RAW_RUNS },
    )
    t.is((await stage.call({ path: '/hello' })).status, 200)
  })
}
