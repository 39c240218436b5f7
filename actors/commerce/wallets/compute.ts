/**
 * The functions of the wallet pool: addresses and signatures, off the request thread. Only this code uses a private
 * key, and it wipes the bytes afterwards (EIP-712, EIP-1559, EIP-3009, EIP-55).
 */
import { secp256k1 } from '@noble/curves/secp256k1'
import {
  bytesToHex,
  getAddress,
  hexToBytes,
  keccak256,
  publicKeyToAddress,
  serializeTransaction,
} from 'viem/utils'
import {
  hashTransfer,
  type TransferAuthorization,
} from '../../platform/evm/transfer-authorization.js'

type Hex = `0x${string}`

/** The address of a private key, in EIP-55 form. */
export function addressOf({ key }: { readonly key: Uint8Array }): string {
  try {
    return publicKeyToAddress(bytesToHex(secp256k1.getPublicKey(key, false)))
  } finally {
    key.fill(0)
  }
}

/** The EIP-55 forms of addresses. */
export function checksums({ addresses }: { readonly addresses: readonly string[] }): string[] {
  return addresses.map((address) => getAddress(address.toLowerCase()))
}

type PaymentInput = TransferAuthorization & {
  /** 32 bytes, wiped after use. */
  readonly key: Uint8Array
}
type Signed = {
  /** The hash that is signed. */
  readonly hash: string
  /** 65 bytes in hex, `v` 27 or 28. */
  readonly signature: string
}

/** Signs an EIP-3009 TransferWithAuthorization. */
export function payment({ key, ...transfer }: PaymentInput): Signed {
  try {
    const hash = hashTransfer(transfer)
    const { r, s, recovery } = signHash(hash, key)
    return { hash, signature: `${r}${s.slice(2)}${(27 + recovery).toString(16)}` }
  } finally {
    key.fill(0)
  }
}

type TransactionInput = {
  /** 32 bytes, wiped after use. */
  readonly key: Uint8Array
  readonly chainId: number
  readonly nonce: number
  readonly to: string
  readonly value: string
  readonly data: string
  readonly gas: string
  readonly maxFeePerGas: string
  readonly maxPriorityFeePerGas: string
}
type SignedRaw = {
  /** The signed transaction, for eth_sendRawTransaction. */
  readonly raw: string
  /** The hash of the signed transaction. */
  readonly hash: string
}

/** Signs an EIP-1559 transaction. */
export function transaction(input: TransactionInput): SignedRaw {
  try {
    const unsigned = {
      type: 'eip1559',
      chainId: input.chainId,
      nonce: input.nonce,
      to: input.to as Hex,
      value: BigInt(input.value),
      data: input.data as Hex,
      gas: BigInt(input.gas),
      maxFeePerGas: BigInt(input.maxFeePerGas),
      maxPriorityFeePerGas: BigInt(input.maxPriorityFeePerGas),
    } as const
    const { r, s, recovery } = signHash(keccak256(serializeTransaction(unsigned)), input.key)
    const raw = serializeTransaction(unsigned, { r, s, yParity: recovery })
    return { raw, hash: keccak256(raw) }
  } finally {
    input.key.fill(0)
  }
}

/** The smaller `s`, which tokens require (EIP-2). */
function signHash(hash: Hex, key: Uint8Array): { r: Hex; s: Hex; recovery: number } {
  const { r, s, recovery } = secp256k1.sign(hexToBytes(hash), key, { lowS: true })
  return { r: word(r), s: word(s), recovery }
}

function word(value: bigint): Hex {
  return `0x${value.toString(16).padStart(64, '0')}`
}
