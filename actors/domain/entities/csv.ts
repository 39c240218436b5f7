/** Tables as CSV (RFC 4180) that spreadsheets open safely. */

/** What spreadsheets take for a formula: at the beginning of a cell, or behind a separator of some languages. */
const FORMULA = /(?:^|[;\t|])\s*[=+\-@\t\r＝＋－＠]/u

/** The rows as lines. A cell that looks like a formula begins with an apostrophe. */
export const csvOf = (rows: readonly (readonly string[])[]): string =>
  rows.map((cells) => `${cells.map(cellOf).join(',')}\r\n`).join('')

function cellOf(text: string): string {
  const safe = FORMULA.test(text) ? `'${text.replaceAll(/[;\t|]/g, ' ')}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
