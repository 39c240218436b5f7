/** Tables as CSV (RFC 4180) that spreadsheets open safely. */

/** Text at the beginning of a cell that spreadsheets take for a formula. */
const FORMULA = /^[=+\-@\t\r]/

/** The rows as lines. A cell that looks like a formula begins with an apostrophe. */
export const csvOf = (rows: readonly (readonly string[])[]): string =>
  rows.map((cells) => `${cells.map(cellOf).join(',')}\r\n`).join('')

function cellOf(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
