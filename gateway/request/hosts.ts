/** Which Host values are served. decisions.md 14 (host check) and 23 (hosts). */

export type HostVerdict = 'served' | 'malformed' | 'misdirected'

export type HostPolicy = (host: string) => HostVerdict

const HOST = /^(?:[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?$/
const VERDICTS_KEPT_MAX = 1_024

/**
 * An empty list serves every well-formed host. Entries match without a port unless they name one;
 * `{slug}.{base_domain}` is served without being listed.
 */
export function hostPolicy(allowed: readonly string[], baseDomain: string): HostPolicy {
  const entries = new Set(allowed.map((host) => host.toLowerCase()))
  const kept = new Map<string, HostVerdict>()
  const judge = (host: string): HostVerdict => {
    if (host.length > 262 || !HOST.test(host)) return 'malformed'
    // No address has it: a port beyond 65535, a label that decodes to nothing, 1.2.3.4.5.
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
    const verdict = judge(host)
    if (kept.size >= VERDICTS_KEPT_MAX) kept.clear()
    kept.set(host, verdict)
    return verdict
  }
}

export function withoutPort(host: string): string {
  const colon = host.lastIndexOf(':')
  return colon > host.lastIndexOf(']') ? host.slice(0, colon) : host
}

/**
 * Whether a Host is that of an address. Proxies that write `$host:$server_port` name the port that browsers leave
 * out (RFC 9110 section 4.2.3).
 */
export function isHostOf(host: string, { protocol, host: expected }: URL): boolean {
  if (host === expected) return true
  const address = `${protocol}//${host}`
  return host.includes(':') && URL.canParse(address) && new URL(address).host === expected
}
