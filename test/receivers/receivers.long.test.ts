/** The receivers of docs/guides/webhooks/webhook-receivers.md over the shared table, in the languages that are installed. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { program } from '../support/service/programs.js'
import { agrees } from './table.js'

function where(programs: readonly string[], title: string, run: (t: ExecutionContext) => void) {
  const absent = programs.filter((name) => program(name) === undefined)
  if (absent.length === 0) test(title, run)
  else test.skip(`${title} (skipped: ${absent.join(', ')} not installed)`, () => undefined)
}

/** Deleted after the test. */
function buildFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-receiver-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

where(['python3'], 'the receiver in Python agrees with the table', (t) => {
  agrees(t, 'python3', ['-B', 'test/receivers/judge.py'])
})

where(['bash', 'openssl', 'od'], 'the receiver in shell agrees with the table', (t) => {
  agrees(t, 'bash', ['test/receivers/judge.sh'])
})

where(['java', 'javac'], 'the receiver in Java agrees with the table', (t) => {
  const folder = buildFolder(t)
  const sources = ['Receiver.java', 'Judge.java'].map((name) => join('test', 'receivers', name))
  execFileSync('javac', ['-d', folder, ...sources])
  agrees(t, 'java', ['-cp', folder, 'Judge'])
})

where(['go'], 'the receiver in Go agrees with the table', (t) => {
  const built = join(buildFolder(t), 'judge')
  const sources = ['receiver.go', 'judge.go'].map((name) => join('test', 'receivers', 'go', name))
  execFileSync('go', ['build', '-o', built, ...sources])
  agrees(t, built, [])
})

where(['ruby'], 'the receiver in Ruby agrees with the table', (t) => {
  agrees(t, 'ruby', ['test/receivers/judge.rb'])
})

where(['php'], 'the receiver in PHP agrees with the table', (t) => {
  agrees(t, 'php', ['test/receivers/judge.php'])
})

where(['mcs', 'mono'], 'the receiver in C# agrees with the table', (t) => {
  const built = join(buildFolder(t), 'judge.exe')
  const sources = ['Receiver.cs', 'Judge.cs'].map((name) => join('test', 'receivers', name))
  execFileSync('mcs', ['-warnaserror', `-out:${built}`, ...sources])
  agrees(t, 'mono', [built])
})
