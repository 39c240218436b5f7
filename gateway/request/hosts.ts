/** The Host values that the service accepts (docs/reference/http.md, Hosts and proxies). */

type HostVerdict = 'served' | 'malformed' | 'misdirected'

export type HostPolicy = (host: string) => HostVerdict

const HOST = /^(?:[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?$/
const VERDICTS_KEPT_MAX = 1_024

/**
 * An empty list accepts all well-formed hosts. An entry without a port matches all ports. Hosts of tenants,
 * `{slug}.{base_domain}`, need no entry.
 */
export function hostPolicy(allowed: readonly string[], baseDomain: string): HostPolicy {
  const entries = new Set(allowed.map((host) => host.toLowerCase()))
  const kept = new Map<string, HostVerdict>()
  const verdictOf = (host: string): HostVerdict => {
    if (host.length > 262 || !HOST.test(host)) return 'malformed'
    // Invalid in a URL: a port above 65535, a label that decodes to nothing, 1.2.3.4.5.
    if (!URL.canParse(`http://${host}`)) return 'malformed'
    if (entries.size === 0) return 'served'
    const name = withoutPort(host)
    if (entries.has(host) || entries.has(name)) return 'served'
    const [label = '', ...parent] = name.split('.')
    const above = parent.join('.')
    return label !== '' && above === baseDomain.toLowerCase() ? 'served' : 'misdirected'
  }
  return (host) => {
    const known = kept.get(host)
    if (known !== undefined) return known
    const verdict = verdictOf(host)
    if (kept.size >= VERDICTS_KEPT_MAX) kept.clear()
    kept.set(host, verdict)
    return verdict
  }
}

/** Whether a Host, with or without a port, has the form `{slug}.{base_domain}`. */
export function tenantHostTest(baseDomain: string): (host: string) => boolean {
  const suffix = `.${baseDomain.toLowerCase()}`
  return (host) => {
    const name = withoutPort(host)
    return name.endsWith(suffix) && !name.slice(0, -suffix.length).includes('.')
  }
}

export function withoutPort(host: string): string {
  const colon = host.lastIndexOf(':')
  return colon > host.lastIndexOf(']') ? host.slice(0, colon) : host
}

/**
 * True if a Host names the host of the URL. Proxies that write `$host:$server_port` include the default port
 * (RFC 9110 section 4.2.3).
 */
export function isHostOf(host: string, { protocol, host: expected }: URL): boolean {
  if (host === expected) return true
  const address = `${protocol}//${host}`
  return host.includes(':') && URL.canParse(address) && new URL(address).host === expected
}
