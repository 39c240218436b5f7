/** The table of docs/reference/performance.md is what the script makes from bench/results.json. */
import { existsSync, readFileSync } from 'node:fs'
import test from 'ava'
import { readResults, tableOf, withTable } from '../../bench/published/results.js'
import { ROWS } from '../../bench/published/rows.js'

const results = readResults('bench/results.json')

test('the page has the table of the results', (t) => {
  const page = readFileSync('docs/reference/performance.md', 'utf8')
  t.is(withTable(page, tableOf(ROWS, results)), page, 'run: npm run bench -- table')
})

test('each row has a bench, a section of the page and one result at most', (t) => {
  const page = readFileSync('docs/reference/performance.md', 'utf8')
  const ids = ROWS.map(({ id }) => id)
  t.is(new Set(ids).size, ids.length)
  const measured = results.rows.map(({ id }) => id)
  t.is(new Set(measured).size, measured.length)
  for (const id of measured) t.true(ids.includes(id), id)
  const headings = page.split('\n').filter((line) => line.startsWith('## '))
  for (const { bench } of ROWS) {
    t.true(existsSync(`bench/${bench}.ts`), bench)
    t.true(
      headings.some((line) => line.includes(`\`${bench}\``)),
      bench,
    )
  }
})
