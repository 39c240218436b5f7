import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import test from 'ava'

const LOCK = '{}'

test('the launcher removes compiled files whose source is gone, and nothing else', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'svc-launch-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  const write = (path: string, text = '') => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  write('package-lock.json', LOCK)
  write('node_modules/.svc-lock', createHash('sha256').update(LOCK).digest('hex'))
  write('node_modules/typescript/bin/tsc')
  write('test/run.ts')
  write('dist/test/run.js', `process.stdout.write('ran ' + process.argv.slice(2))`)
  write('test/oauth/kept.test.ts')
  for (const name of ['kept.test', 'moved.test', 'moved']) {
    for (const ending of ['.js', '.js.map', '.d.ts']) write(`dist/test/oauth/${name}${ending}`)
  }
  write('dist/.build/test.tsbuildinfo')
  write('dist/test/oauth/notes.txt')
  mkdirSync(join(root, 'runtime'))
  copyFileSync('runtime/launch.mjs', join(root, 'runtime/launch.mjs'))

  const out = execFileSync(process.execPath, ['runtime/launch.mjs', 'test', '--area', 'oauth'], {
    cwd: root,
    encoding: 'utf8',
  })
  t.is(out, 'ran --area,oauth')
  t.deepEqual(readdirSync(join(root, 'dist/test/oauth')).sort(), [
    'kept.test.d.ts',
    'kept.test.js',
    'kept.test.js.map',
    'notes.txt',
  ])
  t.deepEqual(readdirSync(join(root, 'dist')).sort(), ['.build', 'test'])
  t.deepEqual(readdirSync(join(root, 'dist/test')).sort(), ['oauth', 'run.js'])
})
