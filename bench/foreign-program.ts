/** Programs of other projects, as measured processes. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

/** Clock ticks per second in /proc/<pid>/stat, which Linux fixes for user space. */
const TICKS_PER_SECOND = 100
const PAGE_BYTES = 4096

export type Spent = { readonly cpuSeconds: number; readonly rssBytes: number }

/** Whether `program` is installed: runs it only to print its version. */
export function isInstalled(program: string, version = '-v'): boolean {
  return spawnSync(program, [version]).error === undefined
}

/** The CPU time of a process so far, over all of its threads, from /proc. */
export function spentBy(pid: number): Spent {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  const [user = '0', system = '0'] = stat.slice(11, 13)
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1])
  return {
    cpuSeconds: (Number(user) + Number(system)) / TICKS_PER_SECOND,
    rssBytes: pages * PAGE_BYTES,
  }
}

/** A port that was free a moment ago, for programs that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
