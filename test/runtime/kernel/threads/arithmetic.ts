/** Compute functions for the kernel's own tests. */
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

export function length({ bytes }: { bytes: Uint8Array }): number {
  return bytes.byteLength
}
