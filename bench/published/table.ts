/** Writes the table of docs/reference/performance.md: `npm run bench -- table [--json FILE]`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readResults, tableOf, withTable } from './results.js'
import { ROWS } from './rows.js'

const PAGE = fileURLToPath(new URL('../../../docs/reference/performance.md', import.meta.url))
const RESULTS = fileURLToPath(new URL('../../../bench/results.json', import.meta.url))

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: { json: { type: 'string', default: RESULTS } },
})
const table = tableOf(ROWS, readResults(values.json))
writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), table))
