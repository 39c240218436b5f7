import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { readOptions, UsageError } from './options.js'
import { slowest } from './progress.js'
import { shortDetail, sourceOf, tapReader, type TestPoint } from './tap.js'
import { keepResults, LONG_RUNS, NOT_THROUGH, passedBefore, reasonOf, turnOf } from './through.js'
import { SEEDED_FAULTS, wrongIn } from './seeded-faults.js'

function checkout(t: ExecutionContext, files: readonly string[]): string {
  const root = mkdtempSync(join(tmpdir(), 'svc-runner-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), '')
  }
  return root
}

const FILES = [
  'dist/test/actors/oauth/tokens/issue.test.js',
  'dist/test/flows/oauth/tokens/oauth.test.js',
  'dist/test/flows/vault/vault.test.js',
  'dist/test/gateway/router.test.js',
  'dist/test/tidy.test.js',
]

test('an area is every folder with its name', (t) => {
  const root = checkout(t, FILES)
  t.deepEqual(readOptions(['--area', 'oauth'], root).files, FILES.slice(0, 2))
  t.deepEqual(readOptions(['--area', 'gateway', '--area', 'vault'], root).files, [
    'dist/test/flows/vault/vault.test.js',
    'dist/test/gateway/router.test.js',
  ])
})

test('the long run takes each flow through one proxy and backend', (t) => {
  const flows = Array.from({ length: 12 }, (_, nth) => `dist/test/flows/agents/f${nth}.test.js`)
  const left = ['dist/test/gateway/router.test.js', 'dist/test/flows/operations/seed.test.js']
  const turns = LONG_RUNS.map((_, nth) => turnOf([...flows, ...left], nth))
  t.deepEqual(turns.flat().toSorted(), flows.toSorted())
  t.true(turns.every(({ length }) => length >= 2))
})

test('without files and areas everything runs', (t) => {
  const options = readOptions(['--long', '--match', 'a *'], checkout(t, FILES))
  t.deepEqual(options, {
    files: FILES,
    isWhole: true,
    flags: new Set(['--long']),
    match: ['a *'],
    through: undefined,
    coordination: 'postgres',
    resume: undefined,
    repeat: 1,
  })
})

test('a long file runs with --long, or by its name', (t) => {
  const long = 'dist/test/flows/vault/proxies.long.test.js'
  const root = checkout(t, [...FILES, long])
  t.deepEqual(readOptions([], root).files, FILES)
  t.true(readOptions(['--long'], root).files.includes(long))
  t.false(readOptions(['--area', 'vault'], root).files.includes(long))
  t.deepEqual(readOptions([long], root).files, [long])
})

test('a source names its compiled file', (t) => {
  const { files, isWhole } = readOptions(['test/tidy.test.ts'], checkout(t, FILES))
  t.deepEqual(files, ['dist/test/tidy.test.js'])
  t.false(isWhole)
})

for (const [words, message] of [
  [['--fast'], /^unknown option --fast\n\nusage: npm test.*--fail-on-skip/s],
  [['--area', 'oath'], /^unknown area oath: one of identity, oauth, .*gateway/],
  [['--area'], /^--area needs a value$/],
  [['--repeat', '0', 'dist/test/tidy.test.js'], /^--repeat needs a count$/],
  [['--repeat', '3'], /^--repeat needs files or an area$/],
  [['--base', 'main'], /^--base needs --changed$/],
  [['--changed'], /^--changed needs git and a base that it knows: /],
  [['--through', 'apache'], /^--through is one of nginx, haproxy$/],
  [['--coordination', 'etcd'], /^--coordination is one of postgres, redis, .*memcached$/],
  [['test/tidi.test.ts'], /^no test file test\/tidi\.test\.ts/],
  [['dist/test/run.js'], /^no test file/],
] as const) {
  test(`${words.join(' ')} is refused`, (t) => {
    const root = checkout(t, FILES)
    t.throws(() => readOptions(words, root), { instanceOf: UsageError, message })
  })
}

const TAP = `TAP version 13
ok 1 - a › later # SKIP
not ok 2 - a › one # two
#   logged
  ---
    name: AssertionError
    assertion: t.is()
    details:
      'Difference (- actual, + expected):': |-
        - 1
        + 2
    message: ''
    at: >-
      ExecutionContext.is
      (file:///svc/node_modules/ava/lib/assert.js:339:15)
  ...
ok 3 - a › fine
not ok 4 - dist/test/a.test.js exited due to SIGSEGV
1..4
`

test('points of TAP are read with the detail of a failure', (t) => {
  const points: TestPoint[] = []
  const read = tapReader((point) => points.push(point))
  for (const line of TAP.split('\n')) read(line)
  t.deepEqual(
    points.map(({ title, result }) => [result, title]),
    [
      ['skipped', 'a › later'],
      ['failed', 'a › one # two'],
      ['passed', 'a › fine'],
      ['failed', 'dist/test/a.test.js exited due to SIGSEGV'],
    ],
  )
  t.deepEqual(shortDetail(points[1]!.detail, 25), [
    'assertion: t.is()',
    'details:',
    "  'Difference (- actual, + expected):': |-",
    '    - 1',
    '    + 2',
  ])
  t.deepEqual(shortDetail(points[1]!.detail, 2), [
    'assertion: t.is()',
    '... 3 more lines',
    '    + 2',
  ])
})

test('what tests log is read, also between a failure and its detail', (t) => {
  const points: TestPoint[] = []
  const logged: string[] = []
  const read = tapReader(
    (point) => points.push(point),
    (line) => logged.push(line),
  )
  const lines = [
    'ok 1 - a',
    '#   5 KiB',
    'not ok 2 - b',
    '#   6 KiB',
    '  ---',
    '    assertion: t.is()',
  ]
  for (const line of [...lines, '  ...', '1..2', '# tests 2']) read(line)
  t.deepEqual(logged, ['5 KiB', '6 KiB'])
  t.deepEqual(points, [
    { title: 'a', result: 'passed', detail: [] },
    { title: 'b', result: 'failed', detail: ['assertion: t.is()'] },
  ])
})

test('the file of a title is found whatever AVA leaves out of the path', (t) => {
  t.deepEqual(sourceOf('flows › oauth › tokens › oauth › a code › is used once', FILES), {
    file: FILES[1]!,
    title: 'a code › is used once',
  })
  t.deepEqual(sourceOf('issue › one', FILES.slice(0, 1)), { file: FILES[0]!, title: 'issue › one' })
  t.deepEqual(sourceOf('oauth › tokens › oauth › one', FILES.slice(1, 3)), {
    file: FILES[1]!,
    title: 'one',
  })
  t.is(sourceOf('something else', FILES), undefined)
})

test('the slowest files come first', (t) => {
  const times = [1, 30.25, 2].map((seconds) => ({ file: `f${seconds}`, seconds, cpuSeconds: 0.5 }))
  t.deepEqual(slowest(times, 2), ['   30.3 s   (0.5 s CPU)  f30.25', '    2.0 s   (0.5 s CPU)  f2'])
})

test('the runner refuses what it does not know before it starts anything', (t) => {
  const { status, stderr } = spawnSync(process.execPath, ['dist/test/run.js', '--quick'], {
    encoding: 'utf8',
  })
  t.is(status, 2)
  t.regex(stderr, /^npm test: unknown option --quick/)
})

test('the page of several processes lists the flows that do not run through a proxy', (t) => {
  const page = readFileSync('docs/guides/operations/several-processes.md', 'utf8')
  for (const [name, reason] of Object.entries(NOT_THROUGH)) {
    t.true(existsSync(`test/flows/${name}.test.ts`), name)
    t.true(page.includes(`| \`${name}\` | ${reason} |`), name)
  }
})

test('the reason of a test that cannot run through a proxy is found in its failure', (t) => {
  const detail = [
    'name: NotThroughError',
    'message: >-',
    '  not through a proxy: it holds the clock',
    '  of the service',
    'at: none',
  ]
  t.is(reasonOf({ title: '', result: 'failed', detail }), 'it holds the clock of the service')
  t.is(reasonOf({ title: '', result: 'failed', detail: ['message: refused'] }), undefined)
})

test('a run that is resumed leaves out the files that have passed through the same proxy', (t) => {
  const path = join(checkout(t, []), 'results.jsonl')
  const run = { through: 'nginx', coordination: 'redis' } as const
  t.deepEqual([...passedBefore(path, run)], [])
  const result = { ...run, passed: 1, failed: [], leftOut: [] }
  keepResults(path, [
    { ...result, file: 'a' },
    { ...result, file: 'b', failed: ['one'] },
    { ...result, file: 'c', coordination: 'postgres' },
  ])
  t.deepEqual([...passedBefore(path, run)], ['a'])
  keepResults(path, [{ ...result, file: 'b' }])
  t.deepEqual([...passedBefore(path, run)], ['a', 'b'])
})

test('every seeded fault has its place in the program, and a daily test', (t) => {
  t.deepEqual(
    SEEDED_FAULTS.flatMap((fault) => wrongIn(fault, '.')),
    [],
  )
})
