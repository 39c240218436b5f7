/**
 * The channel between service and kms: Noise_IK_25519_ChaChaPoly_BLAKE2b.
 *
 * IK, because the client has pinned the server's key: a false server does not even learn the client's identity. The
 * server gets the client's key encrypted in the first message, and compares it with the admitted clients. (KK would
 * need to know the client's key before the first message.)
 * The first message can be replayed. It contains no request, and the attacker cannot read the response. The server
 * considers a client authenticated after its first transport frame.
 */
import Noise, { type KeyPair } from 'noise-handshake'
import Cipher from 'noise-handshake/cipher.js'
import curve from 'noise-handshake/dh.js'

export type { KeyPair }

/** Part of the handshake hash, so that another protocol or version fails. */
const PROLOGUE = Buffer.from('svc-kms-v1')
/** The library's nonces have 32 bits. The channel ends long before they repeat, and the client opens a new one. */
const MESSAGES_MAX = 2 ** 31

export const KEY_BYTES = 32

/** An encrypted channel. Nonces are counters, so replayed, lost or reordered frames fail. */
export interface Channel {
  seal(plaintext: Uint8Array): Uint8Array
  /** @throws if the frame is not the next one of the peer. The channel must not be used after that. */
  open(frame: Uint8Array): Uint8Array
}

interface Initiator {
  /** The first message, to be sent immediately. */
  readonly hello: Uint8Array
  /** @throws if the response is not from the holder of the pinned key. */
  finish(answer: Uint8Array): Channel
}

export function initiate(own: KeyPair, serverPublicKey: Uint8Array): Initiator {
  const noise = new Noise('IK', true, own)
  noise.initialise(PROLOGUE, serverPublicKey)
  return {
    hello: noise.send(),
    finish(answer) {
      noise.recv(answer)
      return channelOf(noise)
    },
  }
}

type Response = { readonly answer: Uint8Array; readonly channel: Channel }

/**
 * Responds to a client's first message.
 * @param admits checks the client's key before the response.
 * @throws if the message is invalid or for another server, or the client is not admitted.
 */
export function respond(
  own: KeyPair,
  hello: Uint8Array,
  admits: (clientPublicKey: Uint8Array) => boolean,
): Response {
  const noise = new Noise('IK', false, own)
  noise.initialise(PROLOGUE)
  noise.recv(hello)
  if (noise.rs === null || !admits(noise.rs)) throw new Error('this client is not admitted')
  const answer = noise.send()
  return { answer, channel: channelOf(noise) }
}

export function generateKeyPair(): KeyPair {
  return curve.generateKeyPair()
}

export function keyPairOf(privateKey: Uint8Array): KeyPair {
  return curve.generateKeyPair(Buffer.from(privateKey))
}

function channelOf(noise: Noise): Channel {
  if (!noise.complete || noise.tx === null || noise.rx === null) {
    throw new Error('the handshake is not complete')
  }
  const tx = new Cipher(noise.tx)
  const rx = new Cipher(noise.rx)
  let sent = 0
  let received = 0
  return {
    seal(plaintext) {
      if (sent === MESSAGES_MAX) throw new Error('the channel has reached its message limit')
      sent += 1
      return tx.encrypt(plaintext)
    },
    open(frame) {
      if (received === MESSAGES_MAX) throw new Error('the channel has reached its message limit')
      received += 1
      return rx.decrypt(frame)
    },
  }
}
