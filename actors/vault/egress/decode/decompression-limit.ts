/** When an answer that decodes to very much is a trap. */

/** What is decoded per input byte and on top of it: beyond, it is a bomb. */
const RATIO_MAX = 200
const ALLOWANCE_BYTES = 8 * 1024 * 1024

/** Whether so much output of so much input can be honest. */
export function isBomb(inputBytes: number, outputBytes: number): boolean {
  return outputBytes > ALLOWANCE_BYTES + inputBytes * RATIO_MAX
}
