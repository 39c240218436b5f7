import test from 'ava'
import * as fc from 'fast-check'
import { parse, TomlError } from 'smol-toml'
import { lineOf, pathKey, tomlLines } from '../../../../runtime/kernel/config/toml-lines.js'
import { runs } from '../../../support/runs.js'

const document = `# a comment with = and [brackets]
top = 1
[server]
port = 80 # trailing
"quoted key".inner = """
two
lines""" 
hosts = [
  "a", # one
  'b',
]
[server.tls]
cert = { path = 'x', more = { deep = [
  1, 2 ] } }

[[chains]]
id = "first"
[[chains]]
id = "second"
[chains.extra]
when = 1979-05-27 07:32:00
'literal.dot' = '''it's'''
`

for (const [path, line] of [
  ['top', 2],
  ['server', 3],
  ['server.port', 4],
  ['server|quoted key|inner', 5],
  ['server.hosts', 8],
  ['server.hosts.0', 9],
  ['server.hosts.1', 10],
  ['server.tls', 12],
  ['server.tls.cert.path', 13],
  ['server.tls.cert.more.deep.0', 14],
  ['chains', 16],
  ['chains.0.id', 17],
  ['chains.1', 18],
  ['chains.1.id', 19],
  ['chains.1.extra', 20],
  ['chains.1.extra.when', 21],
  ['chains|1|extra|literal.dot', 22],
] as const) {
  test(`${path} is on line ${line}`, (t) => {
    const segments = path.split(path.includes('|') ? '|' : '.')
    t.is(tomlLines(document).get(pathKey(segments)), line)
  })
}

test('a path that is not in the document gets the line of its table', (t) => {
  t.is(lineOf(tomlLines(document), ['server', 'tls', 'key']), 12)
  t.is(lineOf(tomlLines(document), ['elsewhere']), 1)
})

test('carriage returns before newlines do not count as lines', (t) => {
  t.is(tomlLines('a = 1\r\n\r\nb = 2\r\n').get(pathKey(['b'])), 3)
})

test('escaped quotes and up to two quotes before the closing three do not end a text', (t) => {
  const lines = tomlLines('a = "x\\"y"\nb = """q"""""\nc = \'\'\'q\'\'\'\'\'\nd = 1')
  t.deepEqual(
    ['a', 'b', 'c', 'd'].map((key) => lines.get(pathKey([key]))),
    [1, 2, 3, 4],
  )
})

const bareKey = fc.constantFrom('a', 'b-1', 'c_2', '"q k"', "'l.k'", '"\\u0061x"')
const scalar = fc.constantFrom(
  '1',
  'true',
  '-0.5e3',
  '"a # b = ]"',
  '"\\"\\\\"',
  "'it } is'",
  '"""\nx\n\n"y" """',
  "'''\n'z'\n'''",
  '1979-05-27T07:32:00Z',
  '1979-05-27 07:32:00',
  '[ ]',
  '{ }',
)
const value = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, scalar, tie('array'), tie('table')),
  array: fc
    .array(tie('value'), { maxLength: 3 })
    .map((items) => `[ ${items.map((item) => `${item} # c ]\n`).join(', ')} ]`),
  table: fc
    .uniqueArray(bareKey, { maxLength: 3 })
    .chain((keys) => fc.tuple(...keys.map((key) => tie('value').map((one) => `${key} = ${one}`))))
    .map((pairs) => `{ ${pairs.join(', ')} }`),
})).value
const line = fc.oneof(
  fc.tuple(bareKey, value).map(([key, one]) => `${key} = ${one}`),
  fc.tuple(bareKey, bareKey, value).map(([a, b, one]) => `${a} . ${b} = ${one} # end`),
  bareKey.map((key) => `[t.${key}]`),
  bareKey.map((key) => `[[list]]\nin.${key} = 1`),
  bareKey.map((key) => `[list.${key}]`),
  fc.constantFrom('', '# [comment]', '  \t'),
)

const TRIES = runs(2_000, 250)

test('the paths with a line are the paths of the document, for any document', (t) => {
  let accepted = 0
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), fc.constantFrom('\n', '\r\n'), (rows, eol) => {
      const text = rows.join('\n').replaceAll('\n', eol)
      const parsed = accept(text)
      if (parsed === undefined) return
      accepted += 1
      t.deepEqual([...tomlLines(text).keys()].sort(), [...pathsOf(parsed, [])].sort())
    }),
    { numRuns: TRIES },
  )
  t.true(accepted > 0.15 * TRIES, `${accepted} documents were accepted`)
})

function accept(text: string): unknown {
  try {
    return parse(text)
  } catch (error) {
    if (error instanceof TomlError) return undefined
    throw error
  }
}

function* pathsOf(value: unknown, path: readonly string[]): Generator<string> {
  if (path.length > 0) yield pathKey(path)
  if (typeof value !== 'object' || value === null || value instanceof Date) return
  for (const [key, item] of Object.entries(value)) yield* pathsOf(item, [...path, key])
}
