import test from 'ava'
import * as fc from 'fast-check'
import { printedFailures, withoutPasswords } from '../../../../runtime/kernel/config/print.js'

for (const [text, printed] of [
  ['postgres://svc:hunter2@db/svc', 'postgres://svc:[secret]@db/svc'],
  ['postgres://:hunter2@db/svc', 'postgres://:[secret]@db/svc'],
  ['postgres://svc:a@b@db/svc', 'postgres://svc:[secret]@db/svc'],
  ['postgres://svc:a/b@db/svc', 'postgres://svc:[secret]@db/svc'],
  ['postgres://svc@db/svc?password=hunter2&x=1', 'postgres://svc@db/svc?password=[secret]&x=1'],
  ['redis://:hunter2@cache:6379/0', 'redis://:[secret]@cache:6379/0'],
  ['https://rpc.example/?api_key=abc', 'https://rpc.example/?api_key=[secret]'],
  ['https://x.example/?AccessToken=abc', 'https://x.example/?AccessToken=[secret]'],
  ['svc:hunter2@db:5432/svc', 'svc:[secret]@db:5432/svc'],
  ['host=db password=hunter2 user=svc', 'host=db password=[secret] user=svc'],
  ["host=db password = 'hunter 2\\' x' user=svc", 'host=db password = [secret] user=svc'],
  ['Server=db;Pwd=hunter2;Port=1', 'Server=db;Pwd=[secret];Port=1'],
  ['db:5432', 'db:5432'],
  ['svc <no-reply@example.com>', 'svc <no-reply@example.com>'],
  ['http://localhost:8080/path', 'http://localhost:8080/path'],
  ['postgres://svc@db:5432/svc?sslmode=require', 'postgres://svc@db:5432/svc?sslmode=require'],
  ['plain text', 'plain text'],
] as const) {
  test(`${text} is printed as ${printed}`, (t) => t.is(withoutPasswords(text), printed))
}

test('no password of a URL is ever printed, whatever its characters', (t) => {
  const secret = fc
    .string({ minLength: 1, maxLength: 12, unit: 'binary' })
    .map((end) => `s3cr3t${end}`)
  fc.assert(
    fc.property(secret, (password) => {
      t.false(withoutPasswords(`postgres://user:${password}@host/db`).includes('s3cr3t'))
    }),
  )
})

test('failures are printed with value, source, rule and fix', (t) => {
  const source = { kind: 'file', path: 'svc.toml', line: 7 } as const
  const text = printedFailures([
    { key: 'server.port', value: '99999', source, rule: 'must be smaller', fix: 'make it so' },
    { key: 'SVC_X', source: { kind: 'environment', name: 'SVC_X' }, rule: 'is bad', fix: 'go' },
  ])
  t.is(
    text,
    'The configuration is refused: 2 failures.\n\n' +
      '  server.port = 99999  (svc.toml:7)\n    must be smaller\n    To fix: make it so\n\n' +
      '  SVC_X\n    is bad\n    To fix: go',
  )
})
