/** A process that runs one service after another, as `svc serve` does, because most of a start is to load the modules. */
import { closeSync, openSync, writeSync } from 'node:fs'
import perfHooks from 'node:perf_hooks'
import { takeCoverage } from 'node:v8'
import { createLogger } from '../../../runtime/kernel/log.js'
import { beginYoung } from '../../../runtime/kernel/v8-flags.js'
import { type Service, startService } from '../../../runtime/process/startup.js'
import { watchContract } from '../contract.js'
import { watchIdempotent } from '../idempotent.js'
import { CONTRACT_FAULT } from './process.js'

export type HostRequest =
  | {
      readonly tag: 'start'
      readonly environment: Readonly<Record<string, string>>
      readonly logPath: string
      /** Compares its answers with the OpenAPI document and copies messages between actors, as a service of a test. */
      readonly isWatched: boolean
    }
  | { readonly tag: 'stop' }
/** To each request one. `failed`: the service has not started. */
export type HostReply =
  | { readonly tag: 'started' }
  | { readonly tag: 'failed'; readonly reason: string }
  | { readonly tag: 'stopped'; readonly clean: boolean }

beginYoung()
// The metrics look at the delay of the loop every 10 ms, which costs a waiting service more than all its other work.
const { monitorEventLoopDelay } = perfHooks
perfHooks.monitorEventLoopDelay = (options) =>
  monitorEventLoopDelay({ ...options, resolution: 100 })
const reply = (what: HostReply) => process.send!(what)
let stopping = new AbortController()
let running: Promise<Service> | undefined
let log: number | undefined

async function start({
  environment,
  logPath,
  isWatched,
}: Extract<HostRequest, { tag: 'start' }>): Promise<void> {
  const file = openSync(logPath, 'a')
  log = file
  const write = (line: string) => void writeSync(file, line)
  if (isWatched) {
    const report = (fault: string) => write(`${CONTRACT_FAULT}${fault}\n`)
    watchContract(report)
    watchIdempotent(report)
  }
  stopping = new AbortController()
  running = startService({
    environment,
    cwd: '/',
    uid: process.getuid?.(),
    log: createLogger({ level: isWatched ? 'debug' : 'info', destination: { write } }),
    cloneMessages: isWatched,
    signal: stopping.signal,
  })
  try {
    await running
    reply({ tag: 'started' })
  } catch (error) {
    reply({ tag: 'failed', reason: String(error) })
  }
}

async function stop(): Promise<void> {
  stopping.abort()
  const service = await running?.catch(() => undefined)
  const clean = service !== undefined && (await service.stop())
  if (log !== undefined) closeSync(log)
  // The runner ends this process by SIGKILL.
  if (process.env['NODE_V8_COVERAGE'] !== undefined) takeCoverage()
  reply({ tag: 'stopped', clean })
}

process.on('message', (request: HostRequest) => {
  void (request.tag === 'start' ? start(request) : stop())
})
// The runner has ended.
process.once('disconnect', () => process.exit(1))
