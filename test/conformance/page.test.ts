/** Every test that docs/reference/conformance.md and docs/concepts/threat-model.md name exists. */
import { existsSync, readFileSync } from 'node:fs'
import test from 'ava'

for (const [name, rowsMin] of [
  ['reference/conformance', 70],
  ['concepts/threat-model', 30],
] as const) {
  test(`every test that docs/${name}.md names exists`, (t) => {
    const page = readFileSync(`docs/${name}.md`, 'utf8')
    const rows = [...page.matchAll(/^\|.*\| `([\w/.-]+)`: (.+) \|$/gm)].map(([, file, title]) => ({
      file: `test/${file!}.test.ts`,
      title: title!,
    }))
    t.true(rows.length > rowsMin, String(rows.length))
    // Every other row that names a file names no test of it.
    const named = [...page.matchAll(/^\|.*\| `[\w/.-]+\/[\w.-]+`:.*\|$/gm)]
    t.is(named.length, rows.length, 'a row names a file without a test')
    const missing = rows.filter(({ file, title }) => {
      // A title may contain an escaped quote.
      return !existsSync(file) || !readFileSync(file, 'utf8').replaceAll("\\'", "'").includes(title)
    })
    t.deepEqual(missing, [])
  })
}
