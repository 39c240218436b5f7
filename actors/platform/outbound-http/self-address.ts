/**
 * What this service is reached by: calls of its own must not come back to it, or one request becomes
 * a chain of them, with our own address as the caller.
 */
import { networkInterfaces } from 'node:os'

/**
 * Whether an address, as the resolver or the socket gave it, belongs to this machine. Asked for each
 * connection: addresses come and go with their interfaces.
 */
export function isOwnAddress(address: string): boolean {
  const asked = plain(address)
  return Object.values(networkInterfaces()).some((each) =>
    each?.some((own) => plain(own.address) === asked),
  )
}

/** Whether a host is one of ours, or below one of ours, as the hosts of tenants are. */
export function isOwnName(hostname: string, ownNames: readonly string[]): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  return ownNames.some((own) => name === own || name.endsWith(`.${own}`))
}

/** An IPv4 address mapped into IPv6 is the IPv4 address. */
function plain(address: string): string {
  return address.toLowerCase().replace(/^::ffff:(?=[0-9.]+$)/, '')
}
