/**
 * A preload (`node --import`) that writes what a process sends to PostgreSQL to the file `RECORD_SQL`, a line for each
 * committed transaction. It stands below the queries of pg, because the service also sends its own messages.
 */
import { appendFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/** A statement: its name, text, parameters, and the tag with which it ended, such as `INSERT 0 1`. */
export type Sent = readonly [name: string, text: string, values: readonly SentValue[], tag: string]
export type SentValue = string | null | { readonly base64: string }
export type SentTransaction = {
  readonly database: string
  readonly atMs: number
  readonly statements: readonly Sent[]
}

type Bound = { readonly name: string; readonly text: string; readonly values: readonly SentValue[] }
type State = {
  database: string
  readonly parsed: Map<string, string>
  pending: Bound[]
  sent: Sent[]
  hasFailed: boolean
}
type Wire = { on(event: string, listener: (message: never) => void): void }
type Methods = Record<string, (this: Wire, ...given: never[]) => unknown>

const file = process.env['RECORD_SQL']
if (file !== undefined) record(file)

function record(to: string): void {
  // The pg of the tree that is recorded.
  const require = createRequire(join(process.cwd(), 'package.json'))
  const { prototype } = require('pg/lib/connection.js') as { readonly prototype: Methods }
  const { prepareValue } = require('pg/lib/utils.js') as { prepareValue(value: unknown): unknown }
  const states = new WeakMap<Wire, State>()
  const stateOf = (wire: Wire) => {
    const state = states.get(wire) ?? watch(wire, to)
    states.set(wire, state)
    return state
  }
  const before = (method: string, note: (state: State, given: never) => void) => {
    const own = prototype[method]!
    prototype[method] = function (...given) {
      note(stateOf(this), given[0]!)
      return own.apply(this, given)
    }
  }
  before('startup', (state, { database }: { readonly database: string }) => {
    state.database = database
  })
  before('parse', (state, { name = '', text }: { readonly name?: string; readonly text: string }) =>
    state.parsed.set(name, text),
  )
  type Bind = { readonly statement?: string; readonly values?: readonly unknown[] }
  before('bind', (state, { statement: name = '', values = [] }: Bind) => {
    const sent = values.map((value): SentValue => {
      const prepared = prepareValue(value) ?? null
      if (Buffer.isBuffer(prepared)) return { base64: prepared.toString('base64') }
      return prepared === null ? null : String(prepared)
    })
    state.pending.push({ name, text: state.parsed.get(name)!, values: sent })
  })
}

/** Puts what one connection sends together. Statements without a name are not of the service. */
function watch(wire: Wire, to: string): State {
  const state: State = { database: '', parsed: new Map(), pending: [], sent: [], hasFailed: false }
  wire.on('commandComplete', ({ text: tag }: { readonly text: string }) => {
    if (tag === 'ROLLBACK') state.hasFailed = true
    const done = state.pending.shift()
    if (done !== undefined && done.name !== '')
      state.sent.push([done.name, done.text, done.values, tag])
  })
  wire.on('errorMessage', () => {
    state.hasFailed = true
  })
  wire.on('readyForQuery', ({ status }: { readonly status: string }) => {
    state.pending = []
    if (status !== 'I') return
    const { database, sent: statements, hasFailed } = state
    if (statements.length > 0 && !hasFailed) {
      const transaction: SentTransaction = { database, atMs: Date.now(), statements }
      appendFileSync(to, `${JSON.stringify(transaction)}\n`)
    }
    state.sent = []
    state.hasFailed = false
  })
  return state
}
