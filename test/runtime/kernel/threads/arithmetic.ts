/** Compute functions for the kernel's own tests. */
import { Secret } from '../../../../runtime/kernel/secret.js'

/** A result that must not leave a thread. */
export function secret({ text }: { text: string }): Secret {
  return Secret.ofText(text)
}

export function square(input: { value: number }): { squared: number } {
  return { squared: input.value ** 2 }
}

export function explode(input: { text: string }): never {
  throw new TypeError(input.text)
}

/** Takes its thread down with it. */
export function die(_input: { code: number }): { squared: number } {
  process.exit(_input.code)
}

export function spin(_input: { forMs: number }): { spunMs: number } {
  const start = performance.now()
  while (performance.now() - start < _input.forMs);
  return { spunMs: performance.now() - start }
}

let kept: Uint8Array = new Uint8Array()

/** Gives the bytes back in reverse order, and keeps what it was given. */
export function reverse({ bytes, at }: { bytes: Uint8Array; at: Date | bigint | undefined }) {
  kept = bytes
  return { bytes: bytes.toReversed(), at, isBytes: bytes.constructor === Uint8Array }
}

/** The bytes of the last call of `reverse`. */
export function keptBytes({ from }: { from: number }): number[] {
  return [...kept.subarray(from)]
}

export function length({ bytes }: { bytes: Uint8Array }): number {
  return bytes.byteLength
}
