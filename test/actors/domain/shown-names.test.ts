import test from 'ava'
import { SHOWN_NAME } from '../../../actors/domain/shown-names.js'

for (const name of [
  'Lighthouse',
  'חנות הספרים',
  'متجر',
  'O’Hara & Söhne',
  '👩‍🚀 Crew',
  'x'.repeat(120),
])
  test(`${name} is a name`, (t) => t.regex(name, SHOWN_NAME))

for (const [title, name] of [
  ['nothing', ''],
  ['too much', 'x'.repeat(121)],
  ['an override', 'a\u202Eb'],
  ['an embedding', 'a\u202Bb'],
  ['an isolate', 'a\u2067b'],
  ['the end of an isolate', 'a\u2069b'],
  ['a control character', 'a\u0000b'],
  ['half of a surrogate pair', 'a\uD83Db'],
] as const)
  test(`${title} is none`, (t) => t.notRegex(name, SHOWN_NAME))
