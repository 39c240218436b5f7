import test from 'ava'
import { z } from 'zod'
import { unknownMembers, warningsHeader } from '../../gateway/body/unknown-members.js'

const Nested = z.object({
  name: z.string(),
  tags: z.array(z.object({ key: z.string() })).default([]),
  limits: z.object({ bytes: z.int() }).optional(),
  anything: z.record(z.string(), z.unknown()).nullable().optional(),
  loose: z.looseObject({ a: z.string() }).optional(),
  either: z.union([z.string(), z.object({ x: z.int() }), z.object({ y: z.int() })]).optional(),
  both: z.intersection(z.object({ l: z.int() }), z.object({ r: z.int() })).optional(),
  made: z.preprocess((value) => value, z.object({ inner: z.int() })).optional(),
  turned: z
    .object({ given: z.string() })
    .transform(({ given }) => ({ other: given }))
    .optional(),
})

for (const [title, value, expected] of [
  ['nothing', { name: 'x', tags: [{ key: 'k' }], limits: { bytes: 1 } }, []],
  ['a member of the body', { name: 'x', nmae: 1 }, ['/nmae']],
  ['a member of a list', { tags: [{ key: 'k' }, { kee: 'k' }] }, ['/tags/1/kee']],
  ['a member of an object in it', { limits: { bites: 1 } }, ['/limits/bites']],
  ['nothing of a record, a loose object', { anything: { q: 1 }, loose: { b: 1 } }, []],
  ['nothing of an alternative', { either: { y: 1 } }, []],
  ['a member that no alternative knows', { either: { x: 1, z: 1 } }, ['/either/z']],
  ['nothing of both sides', { both: { l: 1, r: 1 } }, []],
  ['a member that neither side knows', { both: { l: 1, q: 1 } }, ['/both/q']],
  ['a member behind preprocess', { made: { outer: 1 } }, ['/made/outer']],
  [
    'what was sent, not what it is turned into',
    { turned: { given: 'x', other: 1 } },
    ['/turned/other'],
  ],
  ['a name with a slash and a tilde', { 'a/b~c': 1 }, ['/a~1b~0c']],
  ['names of every object', { constructor: 1, toString: 1 }, ['/constructor', '/toString']],
  ['nothing of what is no object', 7, []],
] as const) {
  test(`unknown members: ${title}`, (t) => {
    t.deepEqual(unknownMembers(Nested, value), expected)
  })
}

test('unknown members: ten at most, and each name is cut and made safe for a header', (t) => {
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`m${at}`, at]))
  const named = unknownMembers(Nested, many)
  t.is(named.length, 10)
  t.is(warningsHeader(named).split(', ').length, 10)
  const evil = ['/a"\r\nset-cookie: x=1', `/${'n'.repeat(500)}`, '/\u0000ü😀', '/a, b;c="d"']
  const value = warningsHeader(evil)
  t.regex(value, /^[ -~]+$/)
  for (const one of value.split(', ')) {
    t.regex(one, /^unknown-member;pointer="#[A-Za-z0-9_.~/?-]{1,64}"$/)
  }
})
