import test from 'ava'
import { nearest } from '../../../../runtime/kernel/config/layers.js'

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
