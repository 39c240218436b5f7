import test from 'ava'
import * as fc from 'fast-check'
import { decodeParams, Router } from '../../gateway/router.js'

function routerOf(...paths: readonly string[]): Router<string> {
  const router = new Router<string>()
  for (const path of paths) router.add('GET', path, path)
  return router
}

const found = (router: Router<string>, path: string) => {
  const match = router.match(path)
  return match === null ? null : [match.resource.methods.get('GET'), match.params]
}

test('a literal path wins over a parameter at the same place', (t) => {
  const router = routerOf('/a/{id}', '/a/me')
  t.deepEqual(found(router, '/a/me'), ['/a/me', {}])
  t.deepEqual(found(router, '/a/7'), ['/a/{id}', { id: '7' }])
})

test('a dead end behind a literal goes back to the parameter', (t) => {
  const router = routerOf('/a/me/x/{y}', '/a/{id}/z')
  t.deepEqual(found(router, '/a/me/z'), ['/a/{id}/z', { id: 'me' }])
  t.deepEqual(found(router, '/a/me/x/1'), ['/a/me/x/{y}', { y: '1' }])
})

test('a parameter is neither empty nor two segments', (t) => {
  const router = routerOf('/a/{id}')
  for (const path of ['/a/', '/a', '/a/b/c', '/a//', '/A/b', '/a/b/']) {
    t.is(router.match(path), null, path)
  }
})

test('the methods of one path are distinguished and listed', (t) => {
  const router = new Router<string>()
  router.add('GET', '/a/{id}', 'read')
  router.add('DELETE', '/a/{id}', 'remove')
  const match = router.match('/a/1')
  t.is(match?.resource.methods.get('DELETE'), 'remove')
  t.is(match?.resource.allow, 'GET, DELETE, HEAD, OPTIONS')
})

test('what the router cannot hold is refused when it is declared', (t) => {
  const router = routerOf('/a/{id}', '/b')
  t.throws(() => router.add('GET', '/b', 'x'), { message: /declared twice/ })
  t.throws(() => router.add('GET', '/a/{other}', 'x'), { message: /are ambiguous/ })
  t.throws(() => router.add('GET', '/c/x{id}', 'x'), { message: /whole segment/ })
  t.throws(() => router.add('GET', 'c', 'x'), { message: /must begin with/ })
})

test('parameters are decoded once, and refused when they hide something', (t) => {
  t.deepEqual(decodeParams({ a: 'x%20y', b: '%C3%A4' }), { a: 'x y', b: 'ä' })
  t.deepEqual(decodeParams({ a: '%2541' }), { a: '%41' })
  for (const hidden of ['%2F', '%00', '%0a', '%7f', '%', '%f', '%ff']) {
    t.is(decodeParams({ a: hidden }), null, hidden)
  }
})

test('no path makes the router throw, and a match gives back what was in the path', (t) => {
  const router = routerOf('/a/{x}', '/a/{x}/b/{y}', '/c')
  t.notThrows(() =>
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary-ascii' }),
        fc.string({ unit: 'binary-ascii' }),
        (x, y) => {
          router.match(x)
          const safe = [x, y].map((part) => encodeURIComponent(part).replaceAll('.', '%2e'))
          const path = `/a/${safe[0]}/b/${safe[1]}`
          const match = router.match(path)
          if (x === '' || y === '') return match === null
          return match !== null && match.params['x'] === safe[0] && match.params['y'] === safe[1]
        },
      ),
    ),
  )
})
