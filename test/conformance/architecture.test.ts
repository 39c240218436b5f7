/** docs/concepts/architecture.md says where services run, as `runtime/process/planes.ts` places them. */
import { readFileSync } from 'node:fs'
import test from 'ava'
import { placements } from '../../runtime/process/planes.js'

const page = readFileSync('docs/concepts/architecture.md', 'utf8')
const [, section = ''] = page.split('\n## What runs where\n')
/** The first cell of each row, and the rest of the row. */
const rows = [...section.split('\n## ')[0]!.matchAll(/^\| `(.+?)` \|(.*)$/gm)]

const placed = (tag: 'thread' | 'pool') =>
  new Map(
    placements.flatMap(({ place, definition }) =>
      place.tag === tag ? [[place.name, definition.address.name] as const] : [],
    ),
  )

test('the page has each thread and each pool, and no other', (t) => {
  const names = rows.flatMap(([, cell]) => cell!.split('`, `'))
  t.deepEqual(names.toSorted(), [...placed('thread').keys(), ...placed('pool').keys()].toSorted())
})

test('the page says how many pools there are', (t) => {
  t.is(placed('pool').size, 6)
  t.regex(section, /^Six pools/m)
})
