/** Addresses of payees on EVM chains (EIP-55). */

const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const ZERO = /^0x0{40}$/
/** An address in one case has no checksum. */
const WITHOUT_CHECKSUM = /^0x(?:[0-9a-f]{40}|[0-9A-F]{40})$/

/**
 * The fault of a payee address, or undefined. The zero address is refused, because payments to it are lost, and so is a
 * mixed-case address with a wrong checksum, because it is mistyped.
 */
export async function payeeFault(address: string): Promise<string | undefined> {
  if (!ADDRESS.test(address)) return 'Must be an address: 0x and 40 hexadecimal digits.'
  if (ZERO.test(address)) return 'The zero address cannot receive payments.'
  if (WITHOUT_CHECKSUM.test(address)) return undefined
  // Loaded on demand, because the library is large and payees rarely change.
  const { isAddress } = await import('viem/utils')
  return isAddress(address) ? undefined : 'The checksum of the address (EIP-55) is wrong.'
}
