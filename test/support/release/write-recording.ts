/**
 * Records what this release sends to PostgreSQL, when it is cut: `node dist/test/support/release/write-recording.js`.
 * The run is the test that sends an example of every operation.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readMigrationFiles } from '../../../storage/platform/schema-version.js'
import { everyStatement } from '../storage/every-statement.js'
import type { SentTransaction } from './recorder.js'
import { fileOf, packed, recordedVersions, recordingOf } from './recording.js'

const RUN = 'dist/test/contract/openapi-examples.test.js'
const ROOT = new URL('../../../../', import.meta.url).pathname

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly version: string
}
if (recordedVersions().includes(version)) throw new Error(`${version} is recorded already`)
const folder = mkdtempSync(join(tmpdir(), 'svc-recording-'))
try {
  const lines = join(folder, 'sent.jsonl')
  const preload = new URL('recorder.js', import.meta.url).href
  execFileSync(process.execPath, ['dist/test/run.js', RUN], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, RECORD_SQL: lines, NODE_OPTIONS: `--import=${preload}` },
  })
  const sent = readFileSync(lines, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SentTransaction)
  const newest = (await readMigrationFiles()).at(-1)!.name
  const others = (await everyStatement()).map(({ text }) => text)
  writeFileSync(fileOf(version), packed(recordingOf(newest, sent, others)))
  process.stdout.write(`wrote ${fileOf(version)}\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
