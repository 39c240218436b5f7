/**
 * Watches the messages that the kernel may send again after a restart: they append no event. It hooks what runs messages and
 * what sends statements, so it covers all services of this process.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { readdirSync } from 'node:fs'
import { ActorEndpoint } from '../../runtime/kernel/actor-endpoint.js'
import type { Job } from '../../runtime/kernel/job.js'
import type { Address, Protocol } from '../../runtime/kernel/protocol.js'
import { DatabaseConnection } from '../../storage/platform/connection.js'
import type { Statement } from '../../storage/platform/sql.js'

const APPENDS = /\binsert into unnumbered_events\b/i

const ACTORS = new URL('../../actors/', import.meta.url)
const protocols = readdirSync(ACTORS, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('/protocol.js'),
)
const idempotent = new Set<string>()
for (const path of protocols) {
  const members = Object.values((await import(new URL(path, ACTORS).href)) as object)
  for (const { name, idempotent: kinds } of members as Address<Protocol>[])
    for (const kind of kinds ?? []) idempotent.add(`${name}.${kind}`)
}

const running = new AsyncLocalStorage<Job>()
let report: ((fault: string) => void) | undefined

/** An unhandled rejection fails the file. */
function reject(fault: string): void {
  void Promise.reject(new Error(fault))
}

/** From now on the messages of this process are watched. */
export function watchIdempotent(onFault = reject): void {
  const isWatching = report !== undefined
  report = onFault
  if (isWatching) return
  // oxlint-disable-next-line typescript/unbound-method
  const { begin } = ActorEndpoint.prototype
  ActorEndpoint.prototype.begin = function (executor) {
    const execute = executor.execute.bind(executor)
    executor.execute = (job) => running.run(askedBy(job), () => execute(job))
    begin.call(this, executor)
  }
  const { run, pipeline } = DatabaseConnection.prototype
  DatabaseConnection.prototype.run = function (statement) {
    judge([statement])
    return run.call(this, statement) as never
  }
  DatabaseConnection.prototype.pipeline = function (statements, ...options) {
    judge(statements)
    return pipeline.call(this, statements, ...options)
  }
}

const nameOf = ({ owner, kind }: Job) => `${owner.name}.${kind}`

/** The idempotent message of the same request for which this one is sent, or this one. */
function askedBy(job: Job): Job {
  const outer = running.getStore()
  const isInner =
    outer !== undefined && job.requestId !== undefined && outer.requestId === job.requestId
  return isInner && idempotent.has(nameOf(outer)) ? outer : job
}

function judge(statements: readonly Statement[]): void {
  const job = running.getStore()
  if (job === undefined || !idempotent.has(nameOf(job))) return
  for (const { name, text, values } of statements) {
    // A commit that several messages share has events of the others.
    const isOurs = job.requestId === undefined || String(values).includes(job.requestId)
    if (isOurs && APPENDS.test(text))
      report?.(`${nameOf(job)} may be sent again after a restart, and runs ${name}`)
  }
}
