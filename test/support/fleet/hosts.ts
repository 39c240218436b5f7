/** Processes of fleets that serve again: each runs the service of one fleet after another (host.ts). */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { countStart } from '../service/started.js'
import { until } from '../service/watch.js'
import type { HostReply, HostRequest } from './host.js'
import { type FleetProcess, type ProcessOptions, statusOf } from './process.js'

const HOST = fileURLToPath(new URL('./host.js', import.meta.url))
/** Of 170 MB each. */
const IDLE_MAX = 48

export interface Hosts {
  /** In a process that has no service now, or in a new one. */
  launch(options: ProcessOptions): FleetProcess
  /** Ends all processes. Their services have ended before. */
  end(): Promise<void>
}

export function openHosts(): Hosts {
  const all = new Set<ChildProcess>()
  const idle: ChildProcess[] = []
  const begin = (): ChildProcess => {
    const child = fork(HOST, {
      cwd: '/',
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: {
        PATH: process.env['PATH'],
        HOME: '/nonexistent',
        TEST_DESCRIPTION: process.env['TEST_DESCRIPTION'],
      },
    })
    all.add(child)
    child.once('exit', () => {
      all.delete(child)
      const at = idle.indexOf(child)
      if (at >= 0) idle.splice(at, 1)
    })
    return child
  }
  const launch = (options: ProcessOptions): FleetProcess => {
    const { name, by, port, ca, environment, logPath, isWatched = false } = options
    if (logPath === undefined) throw new Error('a process that serves again has a log file')
    countStart('service', by)
    const child = idle.pop() ?? begin()
    const output = () => readFileSync(logPath, 'utf8')
    const status = () => statusOf(port, ca)
    const started = ask(child, { tag: 'start', environment, logPath, isWatched })
    let ended: Promise<number> | undefined
    const end = async (): Promise<number> => {
      await started
      const last = await ask(child, { tag: 'stop' })
      const isClean = last?.tag === 'stopped' && last.clean
      if (isClean && idle.length < IDLE_MAX) idle.push(child)
      else child.kill('SIGKILL')
      return isClean ? 0 : 1
    }
    return {
      name,
      port,
      pid: child.pid!,
      logPath,
      output,
      status,
      async ready() {
        const first = await started
        if (first?.tag !== 'started') {
          const reason = first?.tag === 'failed' ? first.reason : 'its process has ended'
          throw new Error(`${name} has not started: ${reason}\n${output()}`)
        }
        await until(`the start of ${name}`, async () => (await status()) === 200)
      },
      terminate: () => (ended ??= end()),
      async kill() {
        child.kill('SIGKILL')
        if (all.has(child)) await once(child, 'exit')
      },
    }
  }
  return {
    launch,
    async end() {
      const exits = [...all].map((child) => once(child, 'exit'))
      for (const child of all) child.kill('SIGKILL')
      await Promise.all(exits)
    },
  }
}

/** Undefined where the process ends instead. */
function ask(child: ChildProcess, request: HostRequest): Promise<HostReply | undefined> {
  return new Promise((resolve) => {
    const over = (what?: HostReply) => {
      child.off('message', answered)
      child.off('exit', gone)
      resolve(what)
    }
    const answered = (what: HostReply) => over(what)
    const gone = () => over()
    child.on('message', answered)
    child.on('exit', gone)
    if (!child.connected) return over()
    child.send(request, (error) => {
      if (error !== null) over()
    })
  })
}
