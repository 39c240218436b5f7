/**
 * Resolves names that callers choose, by DNS queries of our own (c-ares) and not by `getaddrinfo`: that one runs
 * on the few threads of libuv's pool, where a silent name server of one tenant holds up the look-ups of all, and
 * cannot be cancelled. A look-up ends after 2 s; each tenant has a bounded number at a time.
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
import type { Resolver } from './dialer.js'
import { hostsFile, type HostsFile } from './hosts-file.js'

const TIMEOUT_MS = 2_000
const TRIES = 1
/** c-ares asks one server after the other; a look-up takes no longer than two of them. */
const LOOKUP_MS_MAX = 2 * TIMEOUT_MS
/** Look-ups at a time in one thread, of all tenants. */
const LOOKUPS_MAX = 512
const LOOKUPS_PER_TENANT_MAX = 16
/** Look-ups of one tenant that wait for others of it. */
const WAITING_PER_TENANT_MAX = 64
/** A name without an address, or without an answer, is not asked for again so soon. */
const FAILURE_KEPT_MS = 5_000
const FAILURES_MAX = 2_048
const ADDRESSES_MAX = 32

/** `code` of the error where the share of a tenant, or all look-ups, are in use. */
export const LOOKUPS_IN_USE = 'SVC_LOOKUPS_IN_USE'

export type NameLookupOptions = {
  /** Name servers, as `dns.setServers` takes them. Default: those of the system. */
  readonly servers?: readonly string[] | undefined
  /** Look-ups of one tenant at a time. Default 16. */
  readonly perTenantMax?: number | undefined
  readonly counts?: ShareCounts | undefined
  /** Given by tests. */
  readonly hosts?: HostsFile | undefined
}

type Failure = { readonly code: string; readonly untilMs: number }

export function createNameLookup(options: NameLookupOptions = {}): Resolver {
  const { servers = [], perTenantMax = LOOKUPS_PER_TENANT_MAX, counts } = options
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
    const waiting = AbortSignal.timeout(LOOKUP_MS_MAX)
    const taken = await share.acquire([tenantId || domainOf(name)], 1, waiting).catch(() => null)
    if (taken === null || isRefused(taken)) throw errorOf(name, LOOKUPS_IN_USE)
    try {
      const answer = await ask(name, servers)
      if (typeof answer === 'string') throw failed(name, answer)
      return answer
    } finally {
      taken()
    }
  }

  const called = callbackify(lookUp)
  return (hostname, done, tenantId = '') => {
    called(hostname.toLowerCase(), tenantId, (error, addresses) => {
      done(error, error === null ? addresses : [])
    })
  }
}

/** All addresses of a name, or the code of what went wrong. */
async function ask(
  name: string,
  servers: readonly string[],
): Promise<readonly LookupAddress[] | string> {
  const resolver = new DnsResolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers.length > 0) resolver.setServers(servers)
  const timer = setTimeout(() => resolver.cancel(), LOOKUP_MS_MAX)
  try {
    // A name may have addresses of one kind only, so one failure is no failure of the name.
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const found = answers.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
    if (found.length > 0) return found.slice(0, ADDRESSES_MAX).map(withFamily)
    const codes = answers.map((each) =>
      each.status === 'rejected' ? String((each.reason as { code?: unknown }).code) : 'ENODATA',
    )
    // Where one kind is known not to be there, the other one decides.
    const code = codes.find((each) => each !== 'ENODATA') ?? 'ENOTFOUND'
    return CODES[code] ?? 'EAI_FAIL'
  } finally {
    clearTimeout(timer)
  }
}

/** Codes of c-ares in those of `getaddrinfo`, which failures.ts knows. */
const CODES: Readonly<Record<string, string>> = {
  ENOTFOUND: 'ENOTFOUND',
  ENODATA: 'ENOTFOUND',
  ETIMEOUT: 'EAI_AGAIN',
  ECANCELLED: 'EAI_AGAIN',
}

function errorOf(name: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${name} could not be resolved: ${code}`), { code })
}

/** The share of a name that is looked up for no tenant in particular: that of its domain. */
function domainOf(name: string): string {
  return `domain ${name.split('.').slice(-2).join('.')}`
}

function withFamily(address: string): LookupAddress {
  return { address, family: isIP(address) }
}
