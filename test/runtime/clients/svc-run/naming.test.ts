/** Parsing of --credential, and removal of the program's own parameter. */
import test from 'ava'
import * as fc from 'fast-check'
import { parseNamed } from '../../../../runtime/clients/svc-run/credential-choice.js'
import { withoutParameter } from '../../../../runtime/clients/client/egress-fields.js'

const ID = '01980000-0000-7000-8000-000000000001'

test('--credential is a host, an id and an optional scheme', (t) => {
  const host = 'api.example.com'
  t.deepEqual(parseNamed(`${host}=${ID}`), { host, id: ID, authScheme: null })
  t.deepEqual(parseNamed(`API.Example.com.=${ID.toUpperCase()},header:x-key`), {
    host,
    id: ID,
    authScheme: 'header:x-key',
  })
  const ugly = ['', '=', host, `${host}=`, `${host}=x`, `=${ID}`, `*.a.com=${ID}`, `${ID}=${host}`]
  for (const each of [...ugly, `1.2.3.4=${ID}`, `${host}=${ID},`, `${host}=${ID},none`]) {
    t.throws(() => parseNamed(each), undefined, each)
  }
})

test('only the named parameter is removed, the rest is unchanged', (t) => {
  const base = 'https://api.example.com/a%2Fb'
  for (const [query, left] of [
    ['', ''],
    ['?key=1', ''],
    ['?a=1&KEY=2&b=%2f', '?a=1&b=%2f'],
    ['?k%65y=1&keys=2', '?keys=2'],
    ['?key', ''],
    ['?a?key=1', '?a?key=1'],
  ] as const) {
    t.is(withoutParameter(base + query, 'key'), base + left)
  }
  const part = fc.stringMatching(/^[a-z0-9%+=.~-]{0,8}$/)
  fc.assert(
    fc.property(fc.array(part, { minLength: 1 }), (parts) => {
      const left = new URL(withoutParameter(`${base}?${parts.join('&')}`, 'k'))
      t.false([...left.searchParams.keys()].some((name) => name.toLowerCase() === 'k'))
      t.deepEqual(
        [...left.searchParams].map(([name]) => name),
        [...new URL(`${base}?${parts.join('&')}`).searchParams]
          .map(([name]) => name)
          .filter((name) => name.toLowerCase() !== 'k'),
      )
    }),
  )
})
