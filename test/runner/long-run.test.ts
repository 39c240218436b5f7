import { readFileSync } from 'node:fs'
import test from 'ava'
import { LONG_RUN_PAGE, type LongRun, withRun } from './long-run.js'

const RUN: LongRun = {
  date: new Date('2026-02-03T23:00:00Z'),
  commit: 'abc1234',
  machine: '2 × A, 4 GiB, Node 20',
  passed: 7000,
  failed: 0,
  skipped: 2,
  seconds: 5400,
}

test('a run becomes the first row of the page, and the text around the table stays', (t) => {
  const page = readFileSync(LONG_RUN_PAGE, 'utf8')
  const first = withRun(page, RUN)
  const second = withRun(first, { ...RUN, commit: 'def5678', failed: 1 })
  const row = '| 2026-02-03 | passed | abc1234 | 2 × A, 4 GiB, Node 20 | 7000 | 0 | 2 | 1.5 h |\n'
  const failed =
    '| 2026-02-03 | failed | def5678 | 2 × A, 4 GiB, Node 20 | 7000 | 1 | 2 | 1.5 h |\n'
  t.true(second.includes(failed + row))
  t.is(first.replace(row, ''), page)
})

test('the page keeps the last 20 runs', (t) => {
  let page = readFileSync(LONG_RUN_PAGE, 'utf8')
  for (let run = 0; run < 30; run += 1) page = withRun(page, { ...RUN, commit: `run${run}` })
  const commits = [...page.matchAll(/\| (run\d+) \|/g)].map(([, commit]) => commit)
  t.deepEqual(
    commits,
    Array.from({ length: 20 }, (_, at) => `run${29 - at}`),
  )
})

test('a page without the table is refused', (t) => {
  t.throws(() => withRun('# Long runs\n', RUN), { message: /no table of runs/ })
})
