/** The names of /etc/hosts, which a resolver that speaks DNS does not read (hosts(5)). */
import { readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'

const HOSTS_PATH = '/etc/hosts'
const HOSTS_BYTES_MAX = 1024 * 1024
/** The file is looked at again after this long. */
const LOOK_AGAIN_MS = 5_000

export interface HostsFile {
  /** The addresses of a name, in the order of the file; empty where the file has none. */
  addressesOf(hostname: string): readonly string[]
}

/** @param path the file; one that is not there has no names. */
export function hostsFile(path = HOSTS_PATH): HostsFile {
  let names: ReadonlyMap<string, readonly string[]> = new Map()
  let lookedMs = -Infinity
  let changedMs = NaN

  function look(): void {
    const nowMs = performance.now()
    if (nowMs - lookedMs < LOOK_AGAIN_MS) return
    lookedMs = nowMs
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
      look()
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
