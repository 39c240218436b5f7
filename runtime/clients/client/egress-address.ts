/** Where the egress proxy of a service is (docs/guides/vault/egress-proxy.md). */

/** The JSON of a URL. Rejects if the answer is not a success. */
export type ReadJson = (url: URL) => Promise<unknown>

const CAPABILITIES = '/api/v1/capabilities'
const PROBE = '/health/live'

/**
 * The base URL of the egress proxy. The capabilities of the service name it. Where it is not the issuer and answers, it is
 * used; otherwise the proxy is used at the address of the service that the caller knows. A token is never sent without TLS
 * to a proxy of a service with TLS. Undefined when the service is unavailable: the call itself reports that.
 */
export async function egressAddress(base: URL, read: ReadJson): Promise<URL | undefined> {
  let capabilities: {
    readonly issuer?: string
    readonly egress_url?: unknown
    readonly features?: Readonly<Record<string, { readonly url?: unknown }>>
  }
  try {
    capabilities = (await read(new URL(CAPABILITIES, base))) as typeof capabilities
  } catch {
    return undefined
  }
  const { issuer, egress_url: named, features } = capabilities
  // Services of earlier releases name it as a detail of the feature.
  const url = named ?? features?.['vault.egress']?.url
  if (typeof url !== 'string' || url === issuer || !URL.canParse(url)) return base
  const address = new URL(url)
  if (base.protocol === 'https:' && address.protocol !== 'https:') return base
  try {
    await read(new URL(PROBE, address))
    return address
  } catch {
    return base
  }
}
