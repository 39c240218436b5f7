/** Allowed return URLs of checkouts. */
import { LOOPBACK_HOSTS } from '../../runtime/kernel/text/urls.js'
import { httpsUrl, PAGE } from './entities/https-url.js'
import type { Environment } from './tenants/tenancy.js'

/** A host name or address in URL form, with or without a port. */
const ENTRY = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/

type RedirectRules = {
  readonly environment: Environment
  /** Lower-case hosts. An entry with a port allows only that port. */
  readonly hosts: ReadonlySet<string>
}

/** Rules from `commerce.redirect_hosts` and the tenant's settings. */
export function redirectRules(
  environment: Environment,
  ...lists: readonly (readonly string[])[]
): RedirectRules {
  const hosts = new Set(lists.flat().map((host) => host.toLowerCase()))
  return { environment, hosts }
}

/** Valid entries of `checkout_redirect_hosts` in a tenant's settings. */
export function redirectHostsIn(settings: Readonly<Record<string, unknown>>): readonly string[] {
  const listed = settings['checkout_redirect_hosts']
  return Array.isArray(listed)
    ? listed.filter((host): host is string => typeof host === 'string' && ENTRY.test(host))
    : []
}

type RedirectFault = { readonly allowed: boolean; readonly detail: string }

/** The fault of a return URL, or undefined. `allowed` is false if only the host is not allowed. */
export function redirectFault(url: string, rules: RedirectRules): RedirectFault | undefined {
  const isSandbox = rules.environment === 'sandbox'
  const target = httpsUrl(url, { ...PAGE, http: isSandbox ? 'of loopback hosts' : undefined })
  if (target === null)
    return { allowed: true, detail: 'Must be an absolute https URL without credentials.' }
  const { hostname, host, port } = target
  if (isSandbox && LOOPBACK_HOSTS.has(hostname)) return undefined
  const named = port === '' ? `${hostname}:443` : host
  const known = rules.hosts.has(hostname) || rules.hosts.has(named)
  return known
    ? undefined
    : { allowed: false, detail: 'The host is not an allowed redirect host of checkouts.' }
}

/** True if a text is a valid entry of `checkout_redirect_hosts`. */
export function isRedirectHost(text: string): boolean {
  return ENTRY.test(text)
}
