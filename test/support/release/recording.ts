/**
 * What a release sends to PostgreSQL: every statement of its storage, and the transactions of a run through its operations.
 * A later release reads it to see that a migration lets the release serve (test/migrations/last-releases.test.ts).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Client } from 'pg'
import type { SentTransaction, SentValue } from './recorder.js'
import { IS_LONG } from '../runs.js'

/** The recordings of the source tree, `0.3.0.json.gz`. */
const FOLDER = new URL('../../../../test/migrations/releases/', import.meta.url)

export interface Recording {
  /** The newest migration of the release, such as `0095_account_recovery`. */
  readonly newest: string
  /** Texts without a repetition. */
  readonly texts: readonly string[]
  /** The index of each statement's text, and its parameters. Times are milliseconds before the end. */
  readonly transactions: readonly (readonly (readonly [number, ...SentValue[]])[])[]
}

/** The limits of a transaction, and the list of migrations. */
const NOT_REPLAYED = /set_config\('(?!svc\.)|\bsvc_migrations\b/
/** What can be prepared. */
const QUERY = /^\s*(?:select|with|insert|update|delete)\b/i
/** A text that is composed of arguments, with stand-ins for them. */
const STAND_IN = /\bundefined\b|\binto 1\b/
/** Parts of a query that writes. */
const WRITES = /\b(?:insert into|update|delete from|svc_number_\w+)\b/
const TIME = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)/g
/**
 * A run ended this long before it is replayed. The service has no time limit between 20 and 23 minutes, so none ends while
 * the run is replayed, and each replay finds the same rows.
 */
const ENDED_MS = 20 * 60_000
/** Texts of one query. PostgreSQL keeps a copy of the query for each of its prepared statements. */
const TOGETHER = 20
const SHIFTED = /@\{(-?\d+)\}/g

/** @param others texts that the run did not send. */
export function recordingOf(
  newest: string,
  sent: readonly SentTransaction[],
  others: readonly string[],
): Recording {
  const database = busiest(sent)
  const own = sent.filter((one) => one.database === database)
  const endMs = own.at(-1)!.atMs
  const shift = (value: SentValue) =>
    typeof value === 'string'
      ? value.replaceAll(TIME, (time) => `@{${Date.parse(time) - endMs}}`)
      : value
  const indexes = new Map<string, number>()
  const indexOf = (text: string) => {
    const index = indexes.get(text) ?? indexes.size
    indexes.set(text, index)
    return index
  }
  const transactions: Recording['transactions'][number][] = []
  for (const { statements } of own) {
    const queries = statements.filter(([, text]) => QUERY.test(text) && !NOT_REPLAYED.test(text))
    // Background work that finds nothing comes again and again.
    const isNew = queries.some(([, text]) => !indexes.has(text))
    const changes = queries.some(([, text, , tag]) =>
      tag.startsWith('SELECT') ? WRITES.test(text) && tag !== 'SELECT 0' : !tag.endsWith(' 0'),
    )
    if (!isNew && !changes) continue
    transactions.push(queries.map(([, text, values]) => [indexOf(text), ...values.map(shift)]))
  }
  for (const text of others) if (QUERY.test(text) && !STAND_IN.test(text)) indexOf(text)
  return { newest, texts: [...indexes.keys()], transactions }
}

/** The database of the service: the others are templates. */
function busiest(sent: readonly SentTransaction[]): string {
  const counts = new Map<string, number>()
  for (const { database } of sent) counts.set(database, (counts.get(database) ?? 0) + 1)
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]![0]
}

export const packed = (recording: Recording): Buffer =>
  gzipSync(JSON.stringify(recording), { level: 9 })

/** Versions with a recording, the oldest first. */
export function recordedVersions(): string[] {
  const versions = readdirSync(FOLDER).map((name) => name.replace(/\.json\.gz$/, ''))
  return versions.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))
}

/** How many of the newest migrations are checked one by one. Older ones do not change: only the long form checks them too. */
export const NEWEST = IS_LONG ? Number.MAX_SAFE_INTEGER : 5

export const fileOf = (version: string): string =>
  fileURLToPath(new URL(`${version}.json.gz`, FOLDER))

export function readRecording(version: string): Recording {
  return JSON.parse(gunzipSync(readFileSync(fileOf(version))).toString('utf8')) as Recording
}

/** Prepares all texts on a connection, as a process that serves has them. */
export async function prepareAll(client: Client, { texts }: Recording): Promise<void> {
  for (const [index, text] of texts.entries()) await client.query(`prepare old_${index} as ${text}`)
}

/** Prepares the texts again, as a new connection does. @returns the failures. */
export async function failuresOfTexts(client: Client, { texts }: Recording): Promise<string[]> {
  const probe = (some: readonly string[]) =>
    client.query(some.map((text) => `prepare probe as ${text}; deallocate probe`).join(';\n')).then(
      () => undefined,
      (error: Error) => error,
    )
  const failures: string[] = []
  for (let at = 0; at < texts.length; at += TOGETHER) {
    const some = texts.slice(at, at + TOGETHER)
    if ((await probe(some)) === undefined) continue
    for (const text of some) {
      const failure = await probe([text])
      if (failure !== undefined) failures.push(`${failure.message}: ${text.slice(0, 100)}`)
    }
  }
  return failures
}

/**
 * Runs the transactions on a connection of `prepareAll`, and undoes them.
 * @returns a line for each statement with the number of rows that it returned or changed.
 * @throws the first failure.
 */
export async function replay(
  client: Client,
  { texts, transactions }: Recording,
): Promise<readonly string[]> {
  const endMs = Date.now() - ENDED_MS
  const parts = transactions.flatMap((transaction) => [
    `select set_config('svc.scope', '', true), set_config('svc.tenant_id', '', true)`,
    ...transaction.map(([index, ...values]) => {
      const given = values.map((value) => literal(client, value, endMs)).join(', ')
      return `execute old_${index}${given === '' ? '' : `(${given})`}`
    }),
    'set constraints all immediate',
    'set constraints all deferred',
  ])
  await client.query('begin')
  try {
    const results = (await client.query(parts.join(';\n'))) as unknown as { rowCount: number }[]
    return results.map(({ rowCount }, at) => {
      const index = Number(/^execute old_(\d+)/.exec(parts[at]!)?.[1])
      return `${rowCount} rows: ${texts[index]?.slice(0, 200)}`
    })
  } finally {
    await client.query('rollback')
  }
}

function literal(client: Client, value: SentValue, endMs: number): string {
  if (value === null) return 'null'
  if (typeof value === 'object')
    return `'\\x${Buffer.from(value.base64, 'base64').toString('hex')}'`
  return client.escapeLiteral(
    value.replaceAll(SHIFTED, (_, beforeMs) => new Date(endMs + Number(beforeMs)).toISOString()),
  )
}
