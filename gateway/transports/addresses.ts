/** `::ffff:192.0.2.1` is 192.0.2.1: one spelling for an IPv4 peer, whatever the socket family. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
