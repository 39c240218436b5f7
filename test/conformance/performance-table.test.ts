/** The table of docs/reference/performance.md is what the script makes from bench/results.json. */
import { existsSync, readFileSync } from 'node:fs'
import test from 'ava'
import type { Report } from '../../bench/harness.js'
import {
  readResults,
  resultOf,
  type Results,
  tableOf,
  withReason,
  withResult,
  withTable,
} from '../../bench/published/results.js'
import { type RowDefinition, ROWS } from '../../bench/published/rows.js'

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

const ROW: RowDefinition = {
  id: 'one',
  what: 'one thing',
  bench: 'flows/one',
  report: 'One thing',
  reference: 'bare',
  ours: 'ours',
  per: 'CPU second',
  target: 0.5,
  stretch: 0.6,
  needs: ['wrk'],
}
const VERSIONS = { reference: 'bare 1.0', ours: 'svc 1.0' }

function report(ours: number, spread = 1.1): Report {
  const row = (name: string, perCpuSecond: number) => ({
    name,
    perSecond: 1,
    perCpuSecond,
    spread,
    ratio: null,
    ratioPerCpu: null,
    target: null,
    reached: null,
    figures: { residentMib: perCpuSecond },
  })
  return {
    name: 'One thing, in detail',
    date: '2026-11-23T10:00:00.000Z',
    machine: 'a machine',
    rounds: 5,
    ms: 1000,
    rows: [row('bare', 100_000), row('ours', ours)],
  }
}

const lastLine = (definition: RowDefinition, from: Results) =>
  tableOf([definition], from).split('\n').at(-1)

test('a row compares what its definition names', (t) => {
  const result = resultOf(ROW, [report(55_000)], VERSIONS, '')
  t.is(result.ratio, 0.55)
  t.is(
    lastLine(ROW, { rows: [result] }),
    '| one thing (`flows/one`) | 100,000 per CPU second: bare (bare 1.0) | 55,000 per CPU second: ours (svc 1.0) | 0.55 | 0.5 reached | 0.6 missed | 2026-11-23 |',
  )
  const noisy = resultOf(ROW, [report(55_000, 1.4)], VERSIONS, 'beside tests')
  t.regex(lastLine(ROW, { rows: [noisy] })!, /0\.55 \(noisy\) .* 2026-11-23; beside tests \|$/)
})

test('a figure with a limit is reached from below', (t) => {
  const { reference: _, ...bare } = ROW
  const limited = {
    ...bare,
    per: { figure: 'residentMib', unit: 'MiB' },
    target: 150,
    stretch: 140,
  }
  const result = resultOf(limited, [report(145)], VERSIONS, '')
  t.is(result.ratio, null)
  t.regex(
    lastLine(limited, { rows: [result] })!,
    /145 MiB: ours \(svc 1\.0\) \|  \| at most 150 MiB reached \| at most 140 MiB missed/,
  )
})

test('a row that was not repeated keeps its value and says why', (t) => {
  const first = withResult({ rows: [] }, resultOf(ROW, [report(55_000)], VERSIONS, ''))
  const later = withReason(first, 'one', 'wrk not installed')
  t.regex(lastLine(ROW, later)!, /0\.55 .* 2026-11-23; since then: wrk not installed \|$/)
  const again = withResult(later, resultOf(ROW, [report(65_000)], VERSIONS, ''))
  t.is(again.rows.length, 1)
  t.regex(lastLine(ROW, again)!, /0\.65 \| 0\.5 reached \| 0\.6 reached \| 2026-11-23 \|$/)
  t.regex(lastLine(ROW, { rows: [] })!, /\| not yet, needs wrk \|$/)
})

test('a report without the rows of a definition is refused', (t) => {
  t.throws(() => resultOf({ ...ROW, report: 'Another' }, [report(1)], VERSIONS, ''), {
    message: /no report that begins with "Another"/,
  })
  t.throws(() => resultOf({ ...ROW, ours: 'another' }, [report(1)], VERSIONS, ''), {
    message: /has no row "another"/,
  })
})
