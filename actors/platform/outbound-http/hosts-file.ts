/** The names of /etc/hosts (hosts(5)), which a DNS resolver does not read. */
import { readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'

const HOSTS_PATH = '/etc/hosts'
const HOSTS_BYTES_MAX = 1024 * 1024
/** Interval between two checks of the file. */
const RELOAD_MS = 5_000

export interface HostsFile {
  /** The addresses of a name in the order of the file, possibly none. */
  addressesOf(hostname: string): readonly string[]
}

/** @param path a missing file has no names. */
export function hostsFile(path = HOSTS_PATH): HostsFile {
  let names: ReadonlyMap<string, readonly string[]> = new Map()
  let checkedMs = -Infinity
  let changedMs = NaN

  function reload(): void {
    const nowMs = performance.now()
    if (nowMs - checkedMs < RELOAD_MS) return
    checkedMs = nowMs
    try {
      const { mtimeMs, size } = statSync(path)
      if (mtimeMs === changedMs || size > HOSTS_BYTES_MAX) return
      changedMs = mtimeMs
      names = parse(readFileSync(path, 'utf8'))
    } catch {
      names = new Map()
      changedMs = NaN
    }
  }

  return {
    addressesOf(hostname) {
      reload()
      return names.get(hostname.toLowerCase()) ?? []
    },
  }
}

function parse(text: string): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...aliases] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const alias of aliases) {
      const name = alias.toLowerCase()
      names.set(name, [...(names.get(name) ?? []), address])
    }
  }
  return names
}
