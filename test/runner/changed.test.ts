import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { changedPaths, changedTests, type Tree } from './changed.js'

const TEXTS: Record<string, string> = {
  'dist/test/actors/oauth/pure.test.js': `import { a } from "../../../actors/oauth/rule.js"`,
  'dist/test/actors/vault/thread.test.js': `new Worker(new URL('./worker.js', import.meta.url))`,
  'dist/test/actors/vault/worker.js': `import "../../../actors/vault/relay.js"`,
  'dist/test/flows/oauth/code.test.js': `import { testService } from "../../support/service.js"`,
  'dist/test/flows/vault/vault.test.js': `import { testService } from "../../support/service.js"
docsPage(t, 'guides/vault/egress')`,
  'dist/test/flows/vault/run.test.js': `spawn('node', ['runtime/svc.cjs', 'run'])`,
  'dist/test/contract/all.test.js': `import { testService } from "../support/service.js"`,
  'dist/test/tidy.test.js': '',
  'dist/test/storage/plain.test.js': '',
  'dist/test/support/service.js': `import { startService } from "../../runtime/startup.js"
import "./storage/database.js"`,
  'dist/test/support/seed.js': `import "./service/exchanges.js"`,
  'dist/runtime/startup.js': `import "../actors/oauth/rule.js"
import "../actors/vault/relay.js"`,
  'dist/runtime/main.js': `import "./startup.js"`,
  'dist/actors/vault/relay.js': `import "../platform/batch.js"`,
}
const FILES = Object.keys(TEXTS).filter((path) => path.endsWith('.test.js'))
const TREE: Tree = { areas: ['oauth', 'vault'], read: (path) => TEXTS[path] }
/** Tests of the whole tree and of all routes run with every change. */
const ALWAYS = ['contract/all', 'tidy']

for (const [what, changed, tests] of [
  ['nothing', [], []],
  [
    'a rule of an area',
    ['actors/oauth/rule.ts'],
    ['actors/oauth/pure', 'flows/oauth/code', ...ALWAYS],
  ],
  [
    'a module that a thread imports',
    ['actors/vault/relay.ts'],
    ['actors/vault/thread', 'flows/vault/vault', 'flows/vault/run', ...ALWAYS],
  ],
  [
    'a module without an area',
    ['actors/platform/batch.ts'],
    ['actors/vault/thread', 'flows/oauth/code', 'flows/vault/vault', 'flows/vault/run', ...ALWAYS],
  ],
  ['a test', ['test/storage/plain.test.ts'], ['storage/plain', ...ALWAYS]],
  ['a page that a test reads', ['docs/guides/vault/egress.md'], ['flows/vault/vault', ...ALWAYS]],
  ['a page without a test', ['docs/other.md'], ALWAYS],
  [
    'a migration',
    ['migrations/0001_first.sql'],
    ['flows/oauth/code', 'flows/vault/vault', ...ALWAYS],
  ],
] as const) {
  test(`the tests that ${what} can break`, (t) => {
    const expected = tests.map((name) => `dist/test/${name}.test.js`)
    t.deepEqual(changedTests(FILES, changed, TREE).sort(), expected.sort())
  })
}

for (const path of ['package-lock.json', 'test/run.ts', 'test/support/service/exchanges.ts']) {
  test(`${path} can break every test`, (t) => {
    t.deepEqual(changedTests(FILES, [path], TREE), FILES)
  })
}

test('what has changed is what differs from the base, and the working tree', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'svc-changed-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', ...words], {
      cwd: root,
      stdio: 'pipe',
    })
  const commit = (name: string) => {
    writeFileSync(join(root, name), '')
    git('add', '.')
    git('commit', '-qm', name)
  }
  git('init', '-qb', 'main')
  commit('first')
  commit('second')
  t.deepEqual(changedPaths(root, undefined), ['second'])
  git('checkout', '-qb', 'branch')
  commit('third')
  writeFileSync(join(root, 'first'), 'edited')
  writeFileSync(join(root, 'fourth'), '')
  t.deepEqual(changedPaths(root, undefined).sort(), ['first', 'fourth', 'third'])
  t.deepEqual(changedPaths(root, 'HEAD').sort(), ['first', 'fourth'])
  t.throws(() => changedPaths(root, 'nowhere'), { message: /nowhere/ })
})
