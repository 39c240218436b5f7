/** Addresses of accounts on EVM chains to which money goes. EIP-55. */

const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const ZERO = /^0x0{40}$/
/** Letters of one case carry no checksum. */
const WITHOUT_CHECKSUM = /^0x(?:[0-9a-f]{40}|[0-9A-F]{40})$/

/**
 * Null for an address that can be paid. The zero address is refused, as what goes there is lost, and
 * so is an address in mixed case whose checksum does not fit: it was mistyped.
 */
export async function payeeFault(address: string): Promise<string | null> {
  if (!ADDRESS.test(address)) return 'Not an address: 0x and 40 digits of hex.'
  if (ZERO.test(address)) return 'The zero address cannot be paid.'
  if (WITHOUT_CHECKSUM.test(address)) return null
  // Loaded when it is needed: few change a payee, and the library is large.
  const { isAddress } = await import('viem/utils')
  return isAddress(address) ? null : 'The checksum of the address (EIP-55) does not fit.'
}
