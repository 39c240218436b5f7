/**
 * Every named statement of `storage/`: each exported function runs with stand-ins for its arguments and for the answers of
 * the database, and the statements that it would send are collected.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { parseEmail } from '../../../actors/domain/email.js'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { findLoginCandidates } from '../../../storage/agents/agent-challenges.js'
import { setOperatorScopes } from '../../../storage/identity/console/operators.js'
import { findAccountRecord } from '../../../storage/identity/suspensions.js'
import { removeIdentity } from '../../../storage/identity/upstream-identities.js'
import { findResourceByUri } from '../../../storage/oauth/api-resources.js'
import { returnToAuthority, takeFromAuthority } from '../../../storage/vault/egress-authorities.js'
import {
  settleBudget,
  spendBudgetBytes,
  takeFromBudget,
} from '../../../storage/vault/grant-budgets.js'
import { takeForBlock } from '../../../storage/vault/egress-blocks.js'
import { sortTenantUsers } from '../../../storage/identity/tenant-users.js'
import { insertVaultCredential } from '../../../storage/vault/vault-credentials.js'
import type { Database, Statement, Transaction } from '../../../storage/platform/sql.js'

const COMPILED = fileURLToPath(new URL('../../../storage/', import.meta.url))
const STATEMENTS_PER_CALL_MAX = 40
/** More than the most parameters of any function. */
const ARGUMENTS = 8
const HASH_BYTES = 32
/** A function that waits for something else than the database sends no further statement. */
const CALL_MS_MAX = 20
/** How the name of a statement is written. */
const NAMED = /\bname: '([a-z0-9_]+\.[a-z0-9_.]+)'/g

/** Stands for any value: each of its members is a stand-in and a function that returns one. */
function standIn(): unknown {
  const target = () => undefined
  return new Proxy(target, {
    get(_, name) {
      if (name === Symbol.toPrimitive) return (hint: string) => (hint === 'number' ? 1 : '1')
      if (name === Symbol.iterator) return [standIn()][Symbol.iterator].bind([standIn()])
      if (name === 'then' || name === 'toJSON') return undefined
      if (name === 'length') return 1
      return standIn()
    },
    apply: () => standIn(),
    has: () => true,
  })
}

const isStandIn = (value: unknown): boolean => typeof value === 'function'

type Found = Map<string, Statement>

/** What stands for arguments and rows in one run: different values take different branches. */
type Stage = {
  readonly argument: () => unknown
  readonly rows: () => unknown[]
}

const STAGES: readonly Stage[] = [
  { argument: standIn, rows: () => [standIn()] },
  { argument: standIn, rows: () => [] },
  { argument: () => null, rows: () => [standIn()] },
  { argument: () => undefined, rows: () => [standIn()] },
  { argument: () => '1', rows: () => [standIn()] },
]

function databaseOf(found: Found, { rows }: Stage): unknown {
  let sent = 0
  const send = (statement: Statement) => {
    found.set(`${statement.name} ${statement.text}`, statement)
    sent += 1
    if (sent > STATEMENTS_PER_CALL_MAX) throw new Error('the function does not end')
    const answer = rows()
    return { rows: answer, rowCount: answer.length }
  }
  const database = {
    tenantId: '00000000-0000-4000-8000-000000000000',
    query: async (statement: Statement) => send(statement),
    single: async (statement: Statement) => send(statement),
    atCommit: (statement: Statement) => void send(statement),
    afterCommit: () => undefined,
    forget: () => undefined,
    together: async (_tenant: unknown, statements: readonly Statement[]) => statements.map(send),
    tenant: async (_tenant: unknown, work: (tx: unknown) => unknown) => work(database),
    system: async (work: (tx: unknown) => unknown) => work(database),
  }
  return database
}

const lease = { kind: 'lease', id: '1' } as const
const budget = { window: 'total', requests: 1, bytes: 1, llmTokens: 1 } as const
const hold = { grantId: '1', budget, began: new Date(0), bytesBegan: new Date(0) }
const part = { requests: 1, bytes: 1 }
const now = new Date()
const WAYS_IN = [
  { kind: 'federated', id: '1', tenantId: null },
  { kind: 'passkey', id: '2', tenantId: null },
]
/** Statements of functions that need arguments of a certain kind. */
const OLDEST_FIRST = { by: 'created_at', descending: false, limit: 1, after: null } as const
const ANY_USER = { status: null, email: null, q: null, role: null }
const WITH_ARGUMENTS = () => [
  ...(['agent_id', 'did', 'key_id'] as const).map((by) =>
    statementOf((at) => findLoginCandidates(at, by, [])),
  ),
  statementOf((at) => findAccountRecord(at, { email: parseEmail('ada@example.com')! })),
  statementOf((at) => findResourceByUri(at, 'https://files.example.com/')),
  statementOf((at) => setOperatorScopes(at, '1', [], now)),
  statementOf((at) =>
    takeFromAuthority(at, '1', lease, { requests: 1, bytesMin: 1, bytesMax: 1, now }),
  ),
  statementOf((at) => returnToAuthority(at, '1', lease, part)),
  statementOf((at) =>
    takeFromBudget(at, '1', { id: '1', budget }, { requests: 1, bytesMin: 1, bytesMax: 1, now }),
  ),
  statementOf((at) => settleBudget(at, '1', { hold, requestsBack: 0, bytesBack: 0, tokens: 1 })),
  statementOf((at) => spendBudgetBytes(at, '1', hold, now)),
  statementOf((at) => takeForBlock(at, '1', lease, part, now)),
  statementOf((at) => sortTenantUsers(at, '1', ANY_USER, OLDEST_FIRST)),
  statementOf((at) => insertVaultCredential(at, { secret: null } as never, 0)),
  statementOf((at) => removeIdentity(at, '1', '1', '1', now), [[], WAYS_IN]),
]

/** All statements that the functions of `storage/` send, by name. One name can have several texts. */
export async function everyStatement(): Promise<readonly Statement[]> {
  const found: Found = new Map()
  const from = Buffer.from.bind(Buffer) as (...given: unknown[]) => Buffer
  const standIns = (value: unknown, ...rest: unknown[]) =>
    isStandIn(value) || value === null || value === undefined
      ? Buffer.alloc(HASH_BYTES)
      : from(value, ...rest)
  Object.assign(Buffer, { from: standIns })
  try {
    for (const file of files(COMPILED, '.js')) {
      if (readFileSync(file, 'utf8').search(NAMED) < 0) continue
      const module = (await import(pathToFileURL(file).href)) as Record<string, unknown>
      for (const exported of Object.values(module).flatMap(functionsOf)) {
        for (const stage of STAGES) await run(exported, found, stage)
      }
    }
  } finally {
    Object.assign(Buffer, { from })
  }
  const sent = [...found.values(), ...(await Promise.all(WITH_ARGUMENTS()))]
  return sent.filter(({ name, text }) => [name, text].every((part) => typeof part === 'string'))
}

type Run = (...given: unknown[]) => unknown

/** A function, or the functions of an entity's table. */
function functionsOf(exported: unknown): readonly Run[] {
  if (typeof exported === 'function') return [exported as Run]
  const members = typeof exported === 'object' && exported !== null ? Object.values(exported) : []
  return members.filter((member) => typeof member === 'function')
}

async function run(exported: Run, found: Found, stage: Stage): Promise<void> {
  const given = Array.from({ length: ARGUMENTS }, () => stage.argument())
  given[0] = databaseOf(found, stage)
  try {
    const result = exported(...given)
    // A function that composes a statement and lets its caller send it.
    const { name, text } = (result ?? {}) as Partial<Statement>
    if (typeof name === 'string' && typeof text === 'string') {
      found.set(`${name} ${text}`, result as Statement)
    }
    await Promise.race([result, sleep(CALL_MS_MAX, undefined, { ref: true })])
  } catch {
    // Not a function of statements, or it refuses its arguments.
  }
}

/** The first statement that `send` sends, after those that get the rows of `answers`. */
export async function statementOf(
  send: (at: Transaction & Database) => Promise<unknown>,
  answers: readonly (readonly unknown[])[] = [],
): Promise<Statement> {
  let sent: Statement | undefined
  let answered = 0
  const stop = (statement: Statement) => {
    const rows = answers[answered]
    answered += 1
    if (rows !== undefined) return { rows, rowCount: rows.length }
    sent = statement
    throw new Error('seen')
  }
  const at = { query: stop, together: (_: unknown, [first]: Statement[]) => stop(first!) }
  await send(at as unknown as Transaction & Database).catch(() => undefined)
  if (sent === undefined) throw new Error('nothing was sent')
  return sent
}

/** The names that stand in the sources of `storage/`, to compare with what was found. */
export function namedInSources(): ReadonlySet<string> {
  const names = new Set<string>()
  const sources = fileURLToPath(new URL('../../../../storage/', import.meta.url))
  for (const file of files(sources, '.ts')) {
    for (const [, name] of readFileSync(file, 'utf8').matchAll(
      /\bname: '([a-z0-9_]+\.[a-z0-9_.]+)'/g,
    )) {
      names.add(name!)
    }
  }
  return names
}

function files(folder: string, ending: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !name.endsWith('.d.ts'))
    .map((name) => join(folder, name))
    .toSorted()
}
