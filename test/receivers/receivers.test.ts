/**
 * Runs the receivers of docs/guides/webhooks/webhook-receivers.md over the shared table, in the
 * languages that are installed.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import test, { type ExecutionContext } from 'ava'
import { freshDatabase } from '../support/storage/database.js'
import { program } from '../support/service/programs.js'
import { body, type Case, CASES, good, webhook } from '../vectors/webhook-cases.js'
import { verify } from './receiver.js'

const PAGE = readFileSync('docs/guides/webhooks/webhook-receivers.md', 'utf8')
const NAMES = [
  'x-svc-signature-suite',
  'x-svc-signature-256',
  'x-svc-signature-max-age',
  'x-svc-timestamp',
  'x-svc-event',
  'x-svc-delivery',
]
/** The receivers support one secret. */
const TABLE = CASES.filter(({ secrets }) => secrets === undefined || secrets.length === 1)

function given({ headers, without, secrets, ageSecs = 0, ...one }: Case) {
  const all: Record<string, string | undefined> = { ...good(), ...headers }
  if (without !== undefined) delete all[without]
  const now = webhook.timestamp + ageSecs
  return { headers: all, secret: secrets?.[0] ?? webhook.secret, now, body: one.body ?? body }
}

const base64 = (value: string | Uint8Array) => Buffer.from(value).toString('base64')

function lineOf(one: Case): string {
  const { headers, secret, now, body: sent } = given(one)
  const named = NAMES.map((name) => headers[name])
  const fields = named.map((value) => (value === undefined ? '-' : base64(value)))
  return [...fields, base64(secret), base64(String(now)), base64(sent)].join('\t')
}

function agrees(t: ExecutionContext, command: string, args: readonly string[]): void {
  const input = `${TABLE.map(lineOf).join('\n')}\n`
  const output = execFileSync(command, args, { input, encoding: 'utf8' })
  const verdicts = output.trim().split('\n')
  t.is(verdicts.length, TABLE.length)
  for (const [at, { title, verdict }] of TABLE.entries()) {
    t.is(verdicts[at], String(verdict === 'genuine'), title)
  }
}

const RECEIVERS = [
  'receiver.ts',
  'receiver.py',
  'receiver.sh',
  'Receiver.java',
  'go/receiver.go',
  'receiver.rb',
  'receiver.php',
  'Receiver.cs',
]

for (const file of RECEIVERS) {
  test(`docs/guides/webhooks/webhook-receivers.md shows ${file} as it is tested`, (t) => {
    t.true(PAGE.includes(readFileSync(join('test', 'receivers', file), 'utf8').trim()))
  })
}

test('the receiver in TypeScript agrees with the table', (t) => {
  for (const one of TABLE) {
    const { headers, body: sent, secret, now } = given(one)
    t.is(verify(headers, sent, secret, now), one.verdict === 'genuine', one.title)
  }
})

test('the statements of docs/guides/webhooks/webhook-receivers.md let one of many of the same id through', async (t) => {
  const [create, keep] = [...PAGE.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, text]) => text!)
  const fresh = await freshDatabase(t)
  const clients = Array.from({ length: 8 }, () => new Client(fresh.superuserUrl))
  await Promise.all(clients.map((client) => client.connect()))
  try {
    const [first, second] = clients
    await first!.query(create!)
    const once = (id: string) =>
      Promise.all(
        clients.map(async (client) => (await client.query(keep!, [id])).rowCount ?? 0),
      ).then((counts) => counts.filter((count) => count === 1).length)
    t.is(await once('a'), 1)
    t.is(await once('a'), 0)

    await first!.query('begin')
    t.is((await first!.query(keep!, ['b'])).rowCount, 1)
    const waiting = second!.query(keep!, ['b'])
    await first!.query('rollback')
    t.is((await waiting).rowCount, 1, 'where the work failed, the next one does it')
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
})

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
