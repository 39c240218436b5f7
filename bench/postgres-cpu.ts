/** CPU time of a PostgreSQL server on this machine, from /proc. */
import { readdirSync, readFileSync } from 'node:fs'

const TICKS_PER_SEC = 100

/** CPU seconds of the server and all its processes, living and ended. @param server the id of its first process. */
export function postgresCpu(server: number): number {
  let ticks = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const fields = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number)
      const isServer = Number(pid) === server
      if (!isServer && fields[1] !== server) continue
      ticks += fields[11]! + fields[12]!
      if (isServer) ticks += fields[13]! + fields[14]!
    } catch {
      // It ended.
    }
  }
  return ticks / TICKS_PER_SEC
}
