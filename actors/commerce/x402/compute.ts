/** The pure function of the x402 pool: verifies who signed an authorization (EIP-712, EIP-3009). */
import { hashTypedData, recoverAddress } from 'viem/utils'
import type { Authorization } from './proof.js'

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

export type SignedAuthorization = {
  readonly domain: {
    readonly name: string
    readonly version: string
    readonly chainId: number
    /** Contract address of the token. */
    readonly verifyingContract: string
  }
  readonly authorization: Authorization
  /** 65 bytes in hex. */
  readonly signature: string
}

/** True if the named payer signed it. */
export async function isSignedByPayer(signed: SignedAuthorization): Promise<boolean> {
  const { domain, authorization, signature } = signed
  try {
    const hash = hashTypedData({
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
    const signer = await recoverAddress({ hash, signature: signature as Hex })
    return signer.toLowerCase() === authorization.from
  } catch {
    // The coordinates are not a point of the curve, so the signature is invalid.
    return false
  }
}
