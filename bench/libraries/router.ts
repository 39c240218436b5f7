/**
 * The router against find-my-way: all routes of the build, the same requests in the same order. Needs nothing.
 *
 *     node dist/bench/libraries/router.js
 */
import FindMyWay from 'find-my-way'
import { routes } from '../../gateway/route-table.js'
import { Router } from '../../gateway/router.js'
import { compare, publish, repeat } from '../harness.js'

type Request = { readonly method: string; readonly path: string }

const router = new Router<string>()
const library = FindMyWay()
for (const { method, path, operationId } of routes) {
  router.add(method, path, operationId)
  // find-my-way treats a colon as the start of a parameter: `::` is a literal one.
  const pattern = path.replaceAll(':', '::').replaceAll(/\{([a-z][a-z0-9_]*)\}/g, ':$1')
  library.on(method as FindMyWay.HTTPMethod, pattern, () => operationId)
}

/** A request for every route, in a fixed order that differs from the table's. */
const UUID = '018f2b3c-4d5e-7f60-8a9b-0c1d2e3f4a5b'
const requests: readonly Request[] = routes
  .map(({ method, path }) => ({ method, path: path.replaceAll(/\{[^}]+\}/g, UUID) }))
  .toSorted((a, b) => hash(a.path + a.method) - hash(b.path + b.method))
const literal = requests.filter(({ path }) => !path.includes(UUID))
const withParameters = requests.filter(({ path }) => path.includes(UUID))
const unknown = requests.map(({ method, path }) => ({ method, path: `${path}/unknown` }))

const ours = ({ method, path }: Request) => router.match(path)?.resource.methods.get(method)
const theirs = ({ method, path }: Request) => library.find(method as FindMyWay.HTTPMethod, path)

for (const request of requests) {
  const handler = theirs(request)?.handler as (() => string) | undefined
  if (ours(request) === undefined || ours(request) !== handler?.()) {
    throw new Error(`the routers differ at ${request.method} ${request.path}`)
  }
}

for (const [title, mix] of [
  ['literal paths', literal],
  ['paths with parameters', withParameters],
  ['unknown paths', unknown],
] as const) {
  const inTurn = (find: (request: Request) => unknown) => {
    let next = 0
    return () => {
      next = (next + 1) % mix.length
      return find(mix[next]!)
    }
  }
  await publish(
    await compare({
      name: `Router: ${title}, ${mix.length} of ${routes.length} routes`,
      reference: { name: 'find-my-way 9.10.1', run: (ms) => repeat(ms, inTurn(theirs)) },
      contenders: [{ name: 'gateway/router.ts', run: (ms) => repeat(ms, inTurn(ours)) }],
    }),
  )
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (const char of text) value = Math.imul(value ^ char.charCodeAt(0), 0x01000193)
  return value >>> 0
}
