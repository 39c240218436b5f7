/** Limit against decompression bombs. */

/** A response may decode to the allowance plus this many bytes per compressed byte. */
const RATIO_MAX = 200
const ALLOWANCE_BYTES = 8 * 1024 * 1024

/** True if the decoded size is implausible for the compressed size. */
export function exceedsDecompressionLimit(inputBytes: number, outputBytes: number): boolean {
  return outputBytes > ALLOWANCE_BYTES + inputBytes * RATIO_MAX
}
