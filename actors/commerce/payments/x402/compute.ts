/** The pure function of the x402 pool: verifies who signed an authorization (EIP-712, EIP-3009). */
import { recoverAddress } from 'viem/utils'
import {
  hashTransfer,
  type TransferAuthorization,
} from '../../../platform/evm/transfer-authorization.js'

type SignedAuthorization = TransferAuthorization & {
  /** 65 bytes in hex. */
  readonly signature: string
}

/** True if the named payer signed it. */
export async function isSignedByPayer(signed: SignedAuthorization): Promise<boolean> {
  try {
    const signature = signed.signature as `0x${string}`
    const signer = await recoverAddress({ hash: hashTransfer(signed), signature })
    return signer.toLowerCase() === signed.authorization.from
  } catch {
    // The coordinates are not a point of the curve, so the signature is invalid.
    return false
  }
}
