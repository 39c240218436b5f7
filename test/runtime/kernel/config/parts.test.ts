/** Names that are near, and settings of the environment. */
import test from 'ava'
import {
  environmentName,
  environmentPath,
  environmentValue,
  readEnvironment,
} from '../../../../runtime/kernel/config/environment.js'
import { nearest } from '../../../../runtime/kernel/config/layers.js'
import type { Wanted } from '../../../../runtime/kernel/config/tree.js'

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

const cases: [text: string, wants: Wanted, value: unknown][] = [
  ['80', 'literal', 80],
  ['1_000', 'literal', 1000],
  ['0x10', 'literal', 16],
  ['true', 'literal', true],
  ['TRUE', 'literal', 'TRUE'],
  ['080', 'literal', '080'],
  ['', 'literal', ''],
  ['[1, 2]', 'literal', [1, 2]],
  ['1\nother = 2', 'literal', '1\nother = 2'],
  ['12345', 'string', '12345'],
  ['true', 'string', 'true'],
  ['plain text', 'string', 'plain text'],
  ['"quoted"', 'string', 'quoted'],
  ["'it # is'", 'string', 'it # is'],
  ['"unfinished', 'string', '"unfinished'],
  ['[1]', 'string', '[1]'],
  ['2024-01-01', 'string', '2024-01-01'],
  ['a,b', 'strings', ['a', 'b']],
  [' a , b ', 'strings', ['a', 'b']],
  ['a', 'strings', ['a']],
  ['10.0.0.0/8,::1', 'strings', ['10.0.0.0/8', '::1']],
  ['1,2', 'strings', ['1', '2']],
  ['["a", "b,c"]', 'strings', ['a', 'b,c']],
  ['"a"', 'strings', ['a']],
  ['', 'strings', []],
  ['[]', 'strings', []],
  ['a,,b', 'strings', ['a', '', 'b']],
  ['0,5,300', 'numbers', [0, 5, 300]],
  ['[0, 5]', 'numbers', [0, 5]],
  ['0,x', 'numbers', [0, 'x']],
]

for (const [text, wants, value] of cases) {
  test(`${JSON.stringify(text)} where ${wants} is wanted is ${JSON.stringify(value)}`, (t) => {
    t.deepEqual(environmentValue(text, wants), value)
  })
}

test('an inline table is read as one', (t) => {
  const value = environmentValue('{ "api.test" = "127.0.0.1" }', 'literal')
  t.deepEqual({ ...(value as object) }, { 'api.test': '127.0.0.1' })
})

test('names and paths are the reverse of one another', (t) => {
  const path = ['server', 'tls', 'cert_pem_path']
  t.is(environmentName('SVC_', path), 'SVC_SERVER__TLS__CERT_PEM_PATH')
  t.deepEqual(environmentPath('SVC_', 'SVC_SERVER__TLS__CERT_PEM_PATH'), path)
})

test('a lower-case name is not a setting', (t) => {
  t.is(environmentPath('SVC_', 'SVC_server__port'), undefined)
})

test('the environment is a copy: writes to it do not reach the process', (t) => {
  const environment = readEnvironment() as Record<string, string>
  t.is(environment['PATH'], process.env['PATH'])
  environment['SVC_TEST_COPY'] = 'x'
  t.is(process.env['SVC_TEST_COPY'], undefined)
})
