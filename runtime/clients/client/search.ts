/**
 * The inner loop of the proof-of-work solver: SHA-256 over `{token}:{nonce}` for consecutive
 * nonces.
 *
 *  Three techniques make it several times faster than one `createHash` per nonce. Whole blocks of
 * the token are hashed once. The rounds over words before the first digit run once per token, and
 * the message schedule is computed only from the first changed word on. The nonce is incremented as
 * digits in place, never formatted.
 */

/** First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4). */
const K = Int32Array.from(primes(64), (prime) => fraction(Math.cbrt(prime)))
/** The same for the square roots of the first 8 primes. */
const INITIAL = Int32Array.from(primes(8), (prime) => fraction(Math.sqrt(prime)))

const BLOCK_BYTES = 64
const BLOCK_WORDS = 16
const ROUNDS = 64
/** One 0x80 byte and the length as 64 bits follow the message. */
const PADDING_BYTES_MIN = 9
/** Only the first word of the digest is checked. The service requires at most 28 bits. */
export const DIFFICULTY_BITS_MAX = 32

/** Searches ranges of nonces for one token. Not shared between threads: it owns its buffers. */
export class Search {
  readonly #prefix: Uint8Array
  /** The state after the whole blocks of the token. */
  readonly #midstate: Int32Array
  /** The part of the token in the block of the nonce. */
  readonly #tail: Uint8Array
  readonly #mask: number
  readonly #words = new Int32Array(ROUNDS)
  readonly #second = new Int32Array(ROUNDS)
  readonly #rounds = new Int32Array(8)
  readonly #state = new Int32Array(8)

  /** @throws RangeError when `difficultyBits` is not within 0..32. */
  constructor(challengeToken: string, difficultyBits: number) {
    if (!(difficultyBits >= 0 && difficultyBits <= DIFFICULTY_BITS_MAX)) {
      throw new RangeError(`difficulty must be 0..${DIFFICULTY_BITS_MAX} bits`)
    }
    this.#prefix = new TextEncoder().encode(`${challengeToken}:`)
    this.#mask = difficultyBits === 0 ? 0 : -1 << (32 - difficultyBits)
    this.#midstate = Int32Array.from(INITIAL)
    const whole = this.#prefix.length - (this.#prefix.length % BLOCK_BYTES)
    for (let at = 0; at < whole; at += BLOCK_BYTES) {
      putBytes(this.#words, this.#prefix.subarray(at, at + BLOCK_BYTES), 0)
      compress(this.#midstate, this.#words)
    }
    this.#tail = this.#prefix.subarray(whole)
  }

  /**
   * The first nonce with `from <= nonce < from + count` that proves the work, or -1. Nonces are safe integers, which is
   * far more than the largest difficulty needs.
   */
  first(from: number, count: number): number {
    const end = from + count
    let nonce = from
    while (nonce < end) {
      const stop = Math.min(end, nextPowerOfTen(nonce))
      const found = this.#sameLength(nonce, stop)
      if (found >= 0) return found
      nonce = stop
    }
    return -1
  }

  /** Nonces with the same number of digits, so that the layout of the block stays. */
  #sameLength(from: number, end: number): number {
    const digits = new TextEncoder().encode(String(from))
    const length = this.#tail.length + digits.length
    const oneBlock = length + PADDING_BYTES_MIN <= BLOCK_BYTES
    const message = new Uint8Array(oneBlock ? BLOCK_BYTES : 2 * BLOCK_BYTES)
    message.set(this.#tail)
    message.set(digits, this.#tail.length)
    message[length] = 0x80
    const bits = (this.#prefix.length + digits.length) * 8
    new DataView(message.buffer).setUint32(message.length - 4, bits)
    return oneBlock
      ? this.#inOneBlock(message, from, end, length)
      : this.#inTwoBlocks(message, from, end, length)
  }

  #inOneBlock(message: Uint8Array, from: number, end: number, length: number): number {
    const words = this.#words
    const rounds = this.#rounds
    const mask = this.#mask
    const initial = this.#midstate[0]!
    putBytes(words, message, 0)
    const fixed = this.#tail.length >> 2
    runRounds(this.#midstate, words, 0, fixed, rounds)
    const last = length - 1
    const lastWord = last >> 2
    const lastShift = 24 - 8 * (last & 3)
    const step = 1 << lastShift
    let digit = message[last]! - 0x30
    for (let nonce = from; nonce < end; nonce++) {
      if ((digestWord(rounds, words, fixed, initial) & mask) === 0) return nonce
      if (++digit < 10) {
        words[lastWord] = words[lastWord]! + step
      } else {
        digit = 0
        words[lastWord] = words[lastWord]! - 9 * step
        carry(words, last - 1)
      }
    }
    return -1
  }

  /** For a token so long that nonce and padding do not fit into one block. */
  #inTwoBlocks(message: Uint8Array, from: number, end: number, length: number): number {
    for (let nonce = from; nonce < end; nonce++) {
      this.#state.set(this.#midstate)
      putBytes(this.#words, message, 0)
      compress(this.#state, this.#words)
      putBytes(this.#second, message, BLOCK_BYTES)
      compress(this.#state, this.#second)
      if ((this.#state[0]! & this.#mask) === 0) return nonce
      countUp(message, length - 1)
    }
    return -1
  }
}

/** Carries into the digit at byte `at` and further to the left. */
function carry(words: Int32Array, at: number): void {
  for (let byte = at; byte >= 0; byte--) {
    const shift = 24 - 8 * (byte & 3)
    const index = byte >> 2
    const digit = ((words[index]! >>> shift) & 0xff) - 0x30
    if (digit < 9) {
      words[index] = words[index]! + (1 << shift)
      return
    }
    words[index] = words[index]! - (9 << shift)
  }
}

function countUp(message: Uint8Array, last: number): void {
  for (let at = last; at >= 0; at--) {
    if (message[at]! < 0x39) {
      message[at]! += 1
      return
    }
    message[at] = 0x30
  }
}

function putBytes(words: Int32Array, bytes: Uint8Array, from: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset + from, BLOCK_BYTES)
  for (let index = 0; index < BLOCK_WORDS; index++) words[index] = view.getInt32(index * 4)
}

function extend(w: Int32Array): void {
  for (let i = BLOCK_WORDS; i < ROUNDS; i++) {
    const x = w[i - 15]!
    const y = w[i - 2]!
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10)
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0
  }
}

/**
 * Runs rounds `from..to` of the compression, from `state` into `out`. The words must be computed.
 */
function runRounds(
  state: Int32Array,
  w: Int32Array,
  from: number,
  to: number,
  out: Int32Array,
): void {
  let a = state[0]!
  let b = state[1]!
  let c = state[2]!
  let d = state[3]!
  let e = state[4]!
  let f = state[5]!
  let g = state[6]!
  let h = state[7]!
  for (let i = from; i < to; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
    const t1 = (h + s1 + (g ^ (e & (f ^ g))) + K[i]! + w[i]!) | 0
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
    const t2 = (s0 + ((a & b) ^ (c & (a ^ b)))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  out[0] = a
  out[1] = b
  out[2] = c
  out[3] = d
  out[4] = e
  out[5] = f
  out[6] = g
  out[7] = h
}

/** The first word of the digest: the schedule, the remaining rounds, and the feed-forward. */
function digestWord(rounds: Int32Array, w: Int32Array, from: number, initial: number): number {
  extend(w)
  let a = rounds[0]!
  let b = rounds[1]!
  let c = rounds[2]!
  let d = rounds[3]!
  let e = rounds[4]!
  let f = rounds[5]!
  let g = rounds[6]!
  let h = rounds[7]!
  for (let i = from; i < ROUNDS; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
    const t1 = (h + s1 + (g ^ (e & (f ^ g))) + K[i]! + w[i]!) | 0
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
    const t2 = (s0 + ((a & b) ^ (c & (a ^ b)))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  return (initial + a) | 0
}

function compress(state: Int32Array, w: Int32Array): void {
  extend(w)
  const out = new Int32Array(8)
  runRounds(state, w, 0, ROUNDS, out)
  for (let index = 0; index < 8; index++) state[index] = (state[index]! + out[index]!) | 0
}

function nextPowerOfTen(nonce: number): number {
  return 10 ** String(nonce).length
}

function primes(count: number): number[] {
  const found: number[] = []
  for (let n = 2; found.length < count; n++) {
    if (found.every((prime) => n % prime !== 0)) found.push(n)
  }
  return found
}

function fraction(root: number): number {
  return ((root - Math.floor(root)) * 2 ** 32) | 0
}
