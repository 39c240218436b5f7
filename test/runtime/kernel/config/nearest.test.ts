import test from 'ava'
import * as fc from 'fast-check'
import { nearest, slips } from '../../../../runtime/kernel/config/nearest.js'

const known = ['server.port', 'server.host', 'jwt.key_rotation_days', 'database.url']

for (const [name, expected] of [
  ['server.prot', 'server.port'],
  ['server.porto', 'server.port'],
  ['sever.port', 'server.port'],
  ['server.hots', 'server.host'],
  ['jwt.key_rotation_day', 'jwt.key_rotation_days'],
  ['databse.urll', 'database.url'],
  ['something.entirely.else', undefined],
  ['', undefined],
] as const) {
  test(`the nearest to "${name}" is ${expected ?? 'none'}`, (t) =>
    t.is(nearest(name, known), expected))
}

test('a swap of neighbours is one slip', (t) => t.is(slips('prot', 'port'), 1))

test('the distance is symmetric, zero only for equals, and bounded by the longer text', (t) => {
  const text = fc.string({ maxLength: 12 })
  fc.assert(
    fc.property(text, text, (a, b) => {
      t.is(slips(a, b), slips(b, a))
      t.is(slips(a, b) === 0, a === b)
      t.true(slips(a, b) <= Math.max(a.length, b.length))
    }),
  )
})
