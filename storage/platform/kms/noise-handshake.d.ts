/** Types of the used part of noise-handshake 4.2.0, which has none. */
declare module 'noise-handshake' {
  export type KeyPair = { publicKey: Uint8Array; secretKey: Uint8Array }

  export default class NoiseState {
    constructor(pattern: 'IK', initiator: boolean, staticKeyPair: KeyPair)
    readonly complete: boolean
    /** The peer's static key, after the message that contains it. */
    readonly rs: Uint8Array | null
    /** Transport keys, present when complete. */
    readonly tx: Uint8Array | null
    readonly rx: Uint8Array | null
    initialise(prologue: Uint8Array, remoteStatic?: Uint8Array): void
    send(payload?: Uint8Array): Uint8Array
    recv(message: Uint8Array): Uint8Array
  }
}

declare module 'noise-handshake/cipher.js' {
  export default class CipherState {
    constructor(key: Uint8Array)
    encrypt(plaintext: Uint8Array, associated?: Uint8Array): Uint8Array
    decrypt(ciphertext: Uint8Array, associated?: Uint8Array): Uint8Array
  }
}

declare module 'noise-handshake/dh.js' {
  import type { KeyPair } from 'noise-handshake'
  const curve: { generateKeyPair(secretKey?: Uint8Array): KeyPair }
  export default curve
}
