/** Which audiences a tenant may have for its applications and API resources. */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import { LOOPBACK_HOSTS } from '../../../runtime/kernel/text/urls.js'
import { ownsDomain } from '../../../storage/identity/verified-domains.js'
import type { Database } from '../../../storage/platform/sql.js'
import { slugAllowed } from '../../domain/tenants/slugs.js'
import type { TenantsProtocol } from '../../identity/users/tenants/protocol.js'
import type { AudienceRefused } from '../../oauth/resources/api-resources/protocol.js'

/** Schemes whose host says who owns the audience. */
const HOSTED = new Set(['https:', 'http:', 'wss:', 'ws:', 'ftp:'])
/** Names that no one can own (RFC 6761 section 6). */
const RESERVED = /\.(?:test|example|localhost)$/
const DEFAULT_PORTS = new Map([
  ['https:', '443'],
  ['wss:', '443'],
  ['http:', '80'],
  ['ws:', '80'],
])

export type OwnAddresses = {
  readonly issuer: string
  /** Other addresses of this service and its apps: URLs, and empty texts. */
  readonly others: readonly string[]
  /** Tenants are served at `{slug}.{baseDomain}`. */
  readonly baseDomain: string
}

/** Tests whether a URI is at an address of this service: the issuer, a tenant's host, the egress proxy, an app. */
export function ownAddressTest({
  issuer,
  others,
  baseDomain,
}: OwnAddresses): (uri: string) => boolean {
  const own = new Set([issuer, ...others].filter((url) => url !== '').map(placeOf))
  const port = portOf(new URL(issuer))
  const suffix = `.${baseDomain.toLowerCase()}`
  return (uri) => {
    if (!URL.canParse(uri)) return false
    if (own.has(placeOf(uri))) return true
    const url = new URL(uri)
    const host = hostOf(url)
    return (
      portOf(url) === port && host.endsWith(suffix) && slugAllowed(host.slice(0, -suffix.length))
    )
  }
}

/** Host and port. The scheme does not count, and loopback hosts are one host. */
function placeOf(uri: string): string {
  const url = new URL(uri)
  return `${LOOPBACK_HOSTS.has(hostOf(url)) ? 'localhost' : hostOf(url)}:${portOf(url)}`
}

const hostOf = ({ hostname }: URL) => hostname.toLowerCase().replace(/\.$/, '')
const portOf = ({ port, protocol }: URL) => (port === '' ? DEFAULT_PORTS.get(protocol) : port)

type OwnershipNeeds = {
  readonly database: Database
  readonly tenants: ActorRef<TenantsProtocol>
  readonly isOwnAddress: (uri: string) => boolean
}

/** Why the tenant may not have the audience, an absolute URI. Undefined if it may. */
export async function ownershipFault(
  { database, tenants, isOwnAddress }: OwnershipNeeds,
  audience: string,
  tenantId: string,
  context: MessageContext,
): Promise<AudienceRefused | undefined> {
  if (isOwnAddress(audience)) return { tag: 'conflict' }
  if (!HOSTED.has(new URL(audience).protocol)) return undefined
  const resolved = await tenants.resolve({ tenantId }, context)
  if (resolved.tag !== 'resolved') throw new Error('the tenant of the token does not exist')
  const host = hostToVerify(audience, resolved.tenant.environment === 'sandbox')
  if (host === null) return undefined
  // The owners of domains are global, so the look-up crosses tenants.
  const owned = await database.system((tx) => ownsDomain(tx, tenantId, domainsAbove(host)), context)
  return owned ? undefined : { tag: 'domain_not_verified', host }
}

/** Whether a resource needs a verified domain: the host, or null for a local one. */
function hostToVerify(resource: string, isSandbox: boolean): string | null {
  const { hostname } = new URL(resource)
  const host = hostname.replace(/\.$/, '')
  if (LOOPBACK_HOSTS.has(host)) return null
  return isSandbox && RESERVED.test(host) ? null : host
}

/** The host and every domain above it, the longest first. */
function domainsAbove(host: string): readonly string[] {
  const labels = host.split('.')
  return labels.map((_, index) => labels.slice(index).join('.'))
}
