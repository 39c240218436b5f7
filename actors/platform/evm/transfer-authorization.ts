/** The hash that a payer signs to authorize a transfer (EIP-712, EIP-3009). */
import { hashTypedData } from 'viem/utils'

type Hex = `0x${string}`

/** The EIP-3009 type that a payer signs. */
export const TRANSFER_WITH_AUTHORIZATION = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

/** EIP-3009 `TransferWithAuthorization`. Hex is in lower case, numbers are decimal. */
export type Authorization = {
  readonly from: string
  readonly to: string
  /** Atomic units of the asset. */
  readonly value: string
  /** Unix seconds, exclusive. */
  readonly validAfter: string
  /** Unix seconds, exclusive. */
  readonly validBefore: string
  /** 32 bytes. */
  readonly nonce: string
}

/** An authorization and the EIP-712 domain of its token. */
export type TransferAuthorization = {
  readonly domain: {
    readonly name: string
    readonly version: string
    readonly chainId: number
    /** Contract address of the token. */
    readonly verifyingContract: string
  }
  readonly authorization: Authorization
}

/** @throws for an address or number that EIP-712 cannot encode. */
export function hashTransfer({ domain, authorization }: TransferAuthorization): Hex {
  return hashTypedData({
    // Lower case: viem checks the checksum of mixed-case addresses.
    domain: { ...domain, verifyingContract: domain.verifyingContract.toLowerCase() as Hex },
    types: TRANSFER_WITH_AUTHORIZATION,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: authorization.from as Hex,
      to: authorization.to as Hex,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
      nonce: authorization.nonce as Hex,
    },
  })
}
