/** Writes an IPv4-mapped address as IPv4, so that a peer has one spelling in both socket families. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
