/** `--output FILE`: the whole result of a command that succeeded, or the file as it was. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'

const MAIN = new URL('../../../runtime/main.js', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'svc-output-'))
test.after.always(() => rmSync(folder, { recursive: true, force: true }))

const BEFORE = 'the only copy of a secret'
const at = (name: string) => join(folder, name)
const svc = (...words: readonly string[]) =>
  spawnSync(process.execPath, [MAIN, ...words], {
    env: { PATH: process.env['PATH'], HOME: folder },
    cwd: folder,
    encoding: 'utf8',
  })

test.serial('a result is in the file and not on standard output', (t) => {
  const { status, stdout, stderr } = svc('config', 'example', '--output', 'new.toml')
  t.is(status, 0, stderr)
  t.is(stdout, '')
  t.is(statSync(at('new.toml')).mode & 0o777, 0o600)
  t.is(readFileSync(at('new.toml'), 'utf8'), svc('config', 'example').stdout)
})

test.serial('a file that exists keeps its mode, and a link its target', (t) => {
  writeFileSync(at('kept.toml'), BEFORE)
  chmodSync(at('kept.toml'), 0o644)
  symlinkSync('kept.toml', at('link.toml'))
  t.is(svc('config', 'example', '-o', 'link.toml').status, 0)
  t.is(statSync(at('kept.toml')).mode & 0o777, 0o644)
  t.is(readFileSync(at('kept.toml'), 'utf8'), readFileSync(at('new.toml'), 'utf8'))
})

test.serial('a device is written to', (t) => {
  t.is(svc('config', 'example', '-o', '/dev/null').status, 0)
  t.true(statSync('/dev/null').isCharacterDevice())
})

test.serial('a command that fails leaves the file as it was and prints what it has', (t) => {
  writeFileSync(at('result.json'), BEFORE)
  writeFileSync(at('svc.toml'), '[server]\nport = "no"\n')
  t.teardown(() => rmSync(at('svc.toml')))
  const refused = svc('config', 'check', '--json', '--output', 'result.json')
  t.is(refused.status, 78)
  t.regex(refused.stdout, /server\.port/)
  t.is(svc('audit', 'verify', 'nothing.jsonl', '--output', 'result.json').status, 1)
  t.is(svc('audit', 'verify', '--output', 'result.json').status, 1, 'without its argument')
  t.is(readFileSync(at('result.json'), 'utf8'), BEFORE)
})

test.serial('a file that cannot be written is refused before the command does anything', (t) => {
  mkdirSync(at('folder'))
  for (const path of ['folder', 'nowhere/file', 'new.toml/file']) {
    const { status, stderr } = svc('kms', 'keygen', '--dir', 'keys', '--output', path)
    t.is(status, 1, path)
    t.regex(stderr, /option '--output'/, path)
  }
  const left = readdirSync(folder)
  t.false(left.includes('keys'))
  t.deepEqual(
    left.filter((name) => name.endsWith('.new')),
    [],
    'no draft is left',
  )
})
