/**
 * The channel between service and kms: Noise_IK_25519_ChaChaPoly_BLAKE2b.
 *
 * IK because both sides know what they need beforehand: the client has the server's key pinned,
 * so a false server learns nothing, not even who called; the server gets the client's key in the
 * first message, encrypted, and compares it with its list of admitted clients. (KK would fit one
 * client only: the server would have to know which key to expect before the first byte.)
 * A first message can be replayed. It carries no request, so all that a replay wins is an answer
 * that it cannot read; the server counts a client as present with its first transport frame.
 */
import Noise, { type KeyPair } from 'noise-handshake'
import Cipher from 'noise-handshake/cipher.js'
import curve from 'noise-handshake/dh.js'

export type { KeyPair }

/** Both sides hash it in, so that a channel of another protocol or version never agrees. */
const PROLOGUE = Buffer.from('svc-kms-v1')
/**
 * The library counts nonces in 32 bits. Long before they would start again the channel refuses;
 * the client then makes a new one, with new keys.
 */
const MESSAGES_MAX = 2 ** 31

export const KEY_BYTES = 32

/** A finished handshake. Each direction counts: a frame replayed, lost or reordered does not open. */
export interface Channel {
  seal(plaintext: Uint8Array): Uint8Array
  /** @throws when the frame is not the next one of the peer. The channel is of no use after that. */
  open(frame: Uint8Array): Uint8Array
}

export interface Initiator {
  /** The first message, to be sent at once. */
  readonly hello: Uint8Array
  /** @throws when the answer does not come from the holder of the pinned key. */
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

export type Response = { readonly answer: Uint8Array; readonly channel: Channel }

/**
 * Answers a client's first message.
 * @param admits decides about the client's key before anything is answered.
 * @throws when the message is broken, meant for another server, or the client is not admitted.
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
      if (sent === MESSAGES_MAX) throw new Error('the channel has carried all it may')
      sent += 1
      return tx.encrypt(plaintext)
    },
    open(frame) {
      if (received === MESSAGES_MAX) throw new Error('the channel has carried all it may')
      received += 1
      return rx.decrypt(frame)
    },
  }
}
