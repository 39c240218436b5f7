/**
 * Resolves host names that callers choose. Uses DNS queries (c-ares), not `getaddrinfo`, which cannot be
 * cancelled and runs on the few threads of the libuv pool: the silent name server of one tenant would
 * block the look-ups of all. A query times out after 2 s, and look-ups are limited per tenant.
 */
import type { LookupAddress } from 'node:dns'
import { Resolver as DnsResolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { callbackify } from 'node:util'
import {
  FairShare,
  isRefused,
  type ShareCounts,
} from '../../../runtime/kernel/fairness/fair-share.js'
import type { TenantGroups } from '../tenant-groups.js'
import type { Resolver } from './dialer.js'
import { readFileSync, statSync } from 'node:fs'

const TIMEOUT_MS = 2_000
const TRIES = 1
/** c-ares tries one server after the other; the limit is two of them. */
const LOOKUP_MS_MAX = 2 * TIMEOUT_MS
/** Concurrent look-ups of all tenants in one thread. */
const LOOKUPS_MAX = 512
const LOOKUPS_PER_TENANT_MAX = 16
/** Waiting look-ups per tenant. */
const WAITING_PER_TENANT_MAX = 64
/** Failed look-ups are cached for this long. */
const FAILURE_KEPT_MS = 5_000
const FAILURES_MAX = 2_048
const ADDRESSES_MAX = 32

/** Error code when the share of a tenant, or the total, is exhausted. */
export const LOOKUPS_IN_USE = 'SVC_LOOKUPS_IN_USE'

export type NameLookupOptions = {
  /** Name servers, as `dns.setServers` takes them. Default: the name servers of the system. */
  readonly servers?: readonly string[] | undefined
  /** Concurrent look-ups per tenant. Default 16. */
  readonly perTenantMax?: number | undefined
  readonly counts?: ShareCounts | undefined
  /** Default: tenants are in no group. */
  readonly groups?: Pick<TenantGroups, 'of'> | undefined
  /** For tests. */
  readonly hosts?: HostsFile | undefined
}

type Failure = { readonly code: string; readonly untilMs: number }

export function createNameLookup(options: NameLookupOptions = {}): Resolver {
  const { servers = [], perTenantMax = LOOKUPS_PER_TENANT_MAX, counts, groups } = options
  const hosts = options.hosts ?? hostsFile()
  const share = new FairShare({
    resource: 'lookups',
    total: LOOKUPS_MAX,
    levels: [{ name: 'tenant', max: perTenantMax }],
    waitingPerKeyMax: WAITING_PER_TENANT_MAX,
    counts,
  })
  const failures = new Map<string, Failure>()

  function failed(name: string, code: string): NodeJS.ErrnoException {
    failures.delete(name)
    if (failures.size >= FAILURES_MAX) failures.delete(failures.keys().next().value!)
    failures.set(name, { code, untilMs: performance.now() + FAILURE_KEPT_MS })
    return errorOf(name, code)
  }

  async function lookUp(name: string, tenantId: string): Promise<readonly LookupAddress[]> {
    const listed = hosts.addressesOf(name)
    if (listed.length > 0) return listed.map(withFamily)
    const known = failures.get(name)
    if (known !== undefined && known.untilMs > performance.now()) throw errorOf(name, known.code)
    const timeout = AbortSignal.timeout(LOOKUP_MS_MAX)
    const key = [tenantId || domainOf(name)]
    const within = tenantId === '' ? undefined : { groups: await groups?.of(tenantId) }
    const release = await share.acquire(key, 1, timeout, within).catch(() => null)
    if (release === null || isRefused(release)) throw errorOf(name, LOOKUPS_IN_USE)
    try {
      const answer = await query(name, servers)
      if (typeof answer === 'string') throw failed(name, answer)
      return answer
    } finally {
      release()
    }
  }

  const called = callbackify(lookUp)
  return (hostname, done, tenantId = '') => {
    called(hostname.toLowerCase(), tenantId, (error, addresses) => {
      done(error, error === null ? addresses : [])
    })
  }
}

/** All addresses of a name, or an error code. */
async function query(
  name: string,
  servers: readonly string[],
): Promise<readonly LookupAddress[] | string> {
  const resolver = new DnsResolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers.length > 0) resolver.setServers(servers)
  const timer = setTimeout(() => resolver.cancel(), LOOKUP_MS_MAX)
  try {
    // A name may have only IPv4 or only IPv6 addresses, so one query may fail.
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const found = answers.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
    if (found.length > 0) return found.slice(0, ADDRESSES_MAX).map(withFamily)
    const codes = answers.map((each) =>
      each.status === 'rejected' ? String((each.reason as { code?: unknown }).code) : 'ENODATA',
    )
    // ENODATA of one query says nothing about the other.
    const code = codes.find((each) => each !== 'ENODATA') ?? 'ENOTFOUND'
    return CODES[code] ?? 'EAI_FAIL'
  } finally {
    clearTimeout(timer)
  }
}

/** Maps codes of c-ares to codes of `getaddrinfo`, for failures.ts. */
const CODES: Readonly<Record<string, string>> = {
  ENOTFOUND: 'ENOTFOUND',
  ENODATA: 'ENOTFOUND',
  ETIMEOUT: 'EAI_AGAIN',
  ECANCELLED: 'EAI_AGAIN',
}

function errorOf(name: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${name} could not be resolved: ${code}`), { code })
}

/** Without a tenant, the share is counted per domain. */
function domainOf(name: string): string {
  return `domain ${name.split('.').slice(-2).join('.')}`
}

function withFamily(address: string): LookupAddress {
  return { address, family: isIP(address) }
}

const HOSTS_PATH = '/etc/hosts'
const HOSTS_BYTES_MAX = 1024 * 1024
/** Interval between two checks of the file. */
const RELOAD_MS = 5_000

/** The names of /etc/hosts (hosts(5)), which a DNS resolver does not read. */
interface HostsFile {
  /** The addresses of a name in the order of the file, possibly none. */
  addressesOf(hostname: string): readonly string[]
}

/** @param path a missing file has no names. */
function hostsFile(path = HOSTS_PATH): HostsFile {
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
