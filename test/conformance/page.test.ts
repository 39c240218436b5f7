/** docs/conformance.md names tests; every one of them is there. */
import { existsSync, readFileSync } from 'node:fs'
import test from 'ava'

const page = readFileSync('docs/conformance.md', 'utf8')
const rows = [...page.matchAll(/^\|.*\| `([\w/-]+)`: (.+) \|$/gm)].map(([, file, title]) => ({
  file: `test/${file!}.test.ts`,
  title: title!,
}))

test('every test that is named is there', (t) => {
  t.true(rows.length > 70, String(rows.length))
  const missing = rows.filter(({ file, title }) => {
    // Titles may be written with an escaped quote.
    return !existsSync(file) || !readFileSync(file, 'utf8').replaceAll("\\'", "'").includes(title)
  })
  t.deepEqual(missing, [])
})
