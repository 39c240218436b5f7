import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { keepTimes } from './times.js'

test('the times of a run are added to those before, and only on demand to the committed ones', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'svc-times-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'test/runner'), { recursive: true })
  mkdirSync(join(root, 'dist'))
  const committed = join(root, 'test/runner/seconds.json')
  writeFileSync(committed, '{"dist/gone.test.js": 9, "dist/b.test.js": 2}')
  writeFileSync(join(root, 'dist/a.test.js'), '')
  writeFileSync(join(root, 'dist/b.test.js'), '')
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as object
  const ran = (file: string, seconds: number) => [
    { file: join(root, file), seconds, cpuSeconds: 1 },
  ]

  keepTimes(ran('dist/b.test.js', 3.14), root, false)
  t.is(Object.keys(read(committed)).length, 2)
  keepTimes(ran('dist/a.test.js', 1), root, true)
  t.deepEqual(read(join(root, 'dist/.build/test-times.json')), {
    'dist/a.test.js': 1,
    'dist/b.test.js': 3.1,
  })
  // A file that is gone has no time.
  t.deepEqual(read(committed), { 'dist/a.test.js': 1, 'dist/b.test.js': 2 })
})
