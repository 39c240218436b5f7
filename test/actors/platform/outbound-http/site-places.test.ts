/** Places of requests that wait for documents, by site. */
import test from 'ava'
import { sitePlaces } from '../../../../actors/platform/outbound-http/site-places.js'

const BUSY = 'busy'
const silent = () => new Promise<string>(() => undefined)

test('a silent site holds half of the places, whatever its names, and others fail immediately', async (t) => {
  const places = sitePlaces('test')
  const fetches = Array.from({ length: 116 }, (_, nth) =>
    places(new URL(`https://n${nth}.evil.example/`), BUSY, silent),
  )
  t.deepEqual(await Promise.all(fetches.slice(112)), [BUSY, BUSY, BUSY, BUSY])
  const good = () => Promise.resolve('found')
  t.is(await places(new URL('https://client.example/'), BUSY, good), 'found')
})

test('a site without a place takes one from a site that holds several', async (t) => {
  const places = sitePlaces('test')
  const [oldest] = ['evil.example', 'mean.example'].flatMap((site) =>
    Array.from({ length: 112 }, () => places(new URL(`https://${site}/`), BUSY, silent)),
  )
  let isAsked = false
  const honest = places(new URL('https://client.test/'), BUSY, () => {
    isAsked = true
    return Promise.resolve('found')
  })
  t.true(isAsked)
  t.is(await honest, 'found')
  t.is(await oldest, BUSY)
})

test('each address is one site', async (t) => {
  const places = sitePlaces('test')
  const held = Array.from({ length: 113 }, () =>
    places(new URL('https://192.0.2.1/'), BUSY, silent),
  )
  t.is(await held[112], BUSY)
  t.is(await places(new URL('https://198.51.2.1/'), BUSY, () => Promise.resolve('found')), 'found')
})
