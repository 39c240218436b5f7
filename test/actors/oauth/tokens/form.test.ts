import test from 'ava'
import * as fc from 'fast-check'
import { readForm, readScope } from '../../../../actors/oauth/tokens/form.js'

test('a form returns each value once, and an empty one as absent', (t) => {
  const form = readForm([
    ['grant_type', 'refresh_token'],
    ['scope', ''],
  ])
  t.false('repeated' in form)
  if ('repeated' in form) return
  t.is(form.get('grant_type'), 'refresh_token')
  t.is(form.get('scope'), null)
  t.is(form.get('client_id'), null)
})

test('every repeated name is reported, only resource may repeat', (t) => {
  t.deepEqual(
    readForm([
      ['scope', 'a'],
      ['client_id', 'x'],
      ['scope', 'a'],
    ]),
    { repeated: 'scope' },
  )
  const form = readForm([
    ['resource', 'https://a.example'],
    ['resource', ''],
    ['resource', 'https://b.example'],
  ])
  t.false('repeated' in form)
  if (!('repeated' in form))
    t.deepEqual(form.all('resource'), ['https://a.example', 'https://b.example'])
})

test('audience may repeat in an exchange, and in nothing else', (t) => {
  const audiences = [
    ['audience', 'a'],
    ['audience', 'b'],
  ] as const
  const exchange = ['grant_type', 'urn:ietf:params:oauth:grant-type:token-exchange'] as const
  for (const fields of [
    [exchange, ...audiences],
    [...audiences, exchange],
  ]) {
    const form = readForm(fields)
    t.deepEqual('repeated' in form ? form : form.all('audience'), ['a', 'b'])
    t.deepEqual(readForm([...fields, exchange]), { repeated: 'grant_type' })
  }
  t.deepEqual(readForm([['grant_type', 'refresh_token'], ...audiences]), { repeated: 'audience' })
  t.deepEqual(readForm(audiences), { repeated: 'audience' })
})

test('for any fields, a form either reports a repetition or returns every value', (t) => {
  const field = fc.tuple(
    fc.constantFrom('a', 'b', 'resource', '__proto__', 'constructor', 'toString', ''),
    fc.string(),
  )
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(field, { maxLength: 8 }), (fields) => {
        const names = fields.map(([name]) => name).filter((name) => name !== 'resource')
        const repeats = new Set(names).size !== names.length
        const form = readForm(fields)
        if ('repeated' in form) return repeats && names.some((name) => name === form.repeated)
        return (
          !repeats &&
          fields.every(
            ([name, value]: readonly [string, string]) =>
              value === '' || form.all(name).includes(value),
          )
        )
      }),
    ),
  )
})

for (const [scope, tokens] of [
  ['openid', ['openid']],
  ['vault:read vault:list', ['vault:read', 'vault:list']],
  ['a b a', ['a', 'b']],
  ['!#[]~', ['!#[]~']],
  [' a', null],
  ['a ', null],
  ['a  b', null],
  ['a\tb', null],
  ['a"b', null],
  ['a\\b', null],
  ['ä', null],
  ['', null],
] as const) {
  test(`the scope ${JSON.stringify(scope)} is ${tokens === null ? 'malformed' : 'read'}`, (t) =>
    t.deepEqual(readScope(scope), tokens))
}

test('a scope with well-formed tokens is read as its set, in order', (t) => {
  const characters = Array.from({ length: 0x7e - 0x21 + 1 }, (_, i) =>
    String.fromCharCode(0x21 + i),
  )
  const token = fc.string({
    unit: fc.constantFrom(...characters.filter((c) => c !== '"' && c !== '\\')),
    minLength: 1,
    maxLength: 12,
  })
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(token, { minLength: 1, maxLength: 10 }), (tokens) => {
        const read = readScope(tokens.join(' '))
        return read !== null && read.join(' ') === [...new Set(tokens)].join(' ')
      }),
    ),
  )
})
