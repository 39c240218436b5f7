/**
 * Processes of a release serve while the migrations of the next one run, and after each of them. What a release sends is
 * recorded when it is cut (test/support/release/write-recording.ts).
 */
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { runMigrations } from '../../migrations/main.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { type MigrationFile, readMigrationFiles } from '../../storage/platform/schema-version.js'
import { formerFiles } from '../support/release/former-files.js'
import {
  failuresOfTexts,
  NEWEST,
  prepareAll,
  type Recording,
  readRecording,
  recordedVersions,
  recordingOf,
  replay,
} from '../support/release/recording.js'
import { emptyDatabase } from '../support/storage/database.js'
import { IS_LONG } from '../support/runs.js'

const versions = recordedVersions()
/** The migrations after older releases are released too, and do not change. */
const checked = IS_LONG ? versions : versions.slice(-1)
const numberOf = (name: string) => Number(name.slice(0, 4))

test('every release in the changelog is recorded', async (t) => {
  const changelog = await readFile(new URL('../../../CHANGELOG.md', import.meta.url), 'utf8')
  const cut = [...changelog.matchAll(/^## (\d+\.\d+\.\d+)/gm)].map(([, version]) => version!)
  t.deepEqual(versions, cut.toReversed())
})

type Failure = { readonly migration: string; readonly failures: readonly string[] }

/** Applies the migrations of the next release one by one. @returns what fails after each of them. */
async function failuresOf(
  t: ExecutionContext,
  recording: Recording,
  files: readonly MigrationFile[],
  folder?: URL,
): Promise<readonly Failure[]> {
  const { url } = await emptyDatabase(t)
  const migrate = (newest: string) => {
    const names = files.map(({ name }) => name).filter((name) => name <= newest)
    return runMigrations({ url, log: silentLogger, folder, only: new Set(names) })
  }
  await migrate(recording.newest)
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  t.deepEqual(await failuresOfTexts(client, recording), [])
  await prepareAll(client, recording)
  const before = await replay(client, recording)
  const found: Failure[] = []
  // Others are in the release, or say that they end what the release needs.
  const later = files
    .filter(
      ({ name, oldestBuild: old }) => name > recording.newest && old! <= numberOf(recording.newest),
    )
    .map(({ name }) => name)
  const together = later.slice(0, -NEWEST)
  if (together.length > 0) t.deepEqual(await migrate(together.at(-1)!), together)
  for (const migration of later.slice(together.length)) {
    t.deepEqual(await migrate(migration), [migration])
    const failures = await failuresOfTexts(client, recording)
    await replay(client, recording).then(
      (now) => failures.push(...now.filter((line, at) => line !== before[at])),
      (error: Error) => failures.push(error.message),
    )
    found.push({ migration, failures })
  }
  return found
}

for (const version of checked) {
  test(`${version} works after each migration of the next release`, async (t) => {
    t.timeout(300_000)
    const next = versions[versions.indexOf(version) + 1]
    const last = next === undefined ? '9999' : readRecording(next).newest
    const files = (await readMigrationFiles()).filter(({ name }) => name <= last)
    const found = await failuresOf(t, readRecording(version), files)
    t.true(found.length > 0 || next === undefined)
    t.deepEqual(
      found.filter(({ failures }) => failures.length > 0),
      [],
    )
  })
}

if (IS_LONG) {
  test('a trigger that calls a function of a later migration is found', async (t) => {
    t.timeout(300_000)
    const folder = await formerFiles(t)
    const files = (await readMigrationFiles(folder)).filter(({ name }) => name < '0098')
    const [found] = await failuresOf(t, readRecording('0.3.0'), files, folder)
    t.is(found!.migration, '0096_egress_blocks')
    t.regex(found!.failures.join(), /function svc_announce\(unknown, text\) does not exist/)
  })
}

test('what a process sends is recorded and runs again', async (t) => {
  const { url } = await emptyDatabase(t)
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  await client.query('create table one (a integer, at timestamptz)')
  const folder = await mkdtemp(join(tmpdir(), 'svc-recorder-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const lines = join(folder, 'sent.jsonl')
  const text = 'insert into one (a, at) values ($1, $2)'
  const program = `import { Client } from 'pg'
    const client = new Client({ connectionString: process.argv[1] })
    await client.connect()
    for (const end of ['commit', 'rollback']) {
      await client.query('begin')
      await client.query({ name: 'one.insert', text: ${JSON.stringify(text)}, values: [1, new Date()] })
      await client.query(end)
    }
    await client.end()`
  const preload = new URL('../support/release/recorder.js', import.meta.url).href
  const words = [`--import=${preload}`, '--input-type=module', '--eval', program, url]
  execFileSync(process.execPath, words, { env: { ...process.env, RECORD_SQL: lines } })
  const sent = (await readFile(lines, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const recording = recordingOf('0001', sent, ['delete from one'])
  t.deepEqual(recording.texts, [text, 'delete from one'])
  t.is(recording.transactions.length, 1)
  await client.query('truncate one')
  await prepareAll(client, recording)
  for (const _ of [1, 2]) {
    const rows = await replay(client, recording)
    t.deepEqual(
      rows.filter((line) => line.endsWith(text)),
      [`1 rows: ${text}`],
    )
  }
  await client.query('alter table one drop column at')
  t.is((await failuresOfTexts(client, recording)).length, 1)
})
