/** Reads tables as CSV (RFC 4180), also those that `csvOf` of the gateway wrote. */

export type CsvRow = { readonly line: number; readonly cells: readonly string[] }

/** A cell that looks like a formula, which an export begins with an apostrophe. */
const GUARDED = /^'(?=[=+\-@\t\r＝＋－＠])/u
const BREAK = /[,\r\n]/g

/** The rows that are not empty, with their lines. Undefined: a quote has no end, or text follows it. */
export function csvRows(text: string): readonly CsvRow[] | undefined {
  const rows: CsvRow[] = []
  let cells: string[] = []
  let line = 1
  let first = 1
  let at = text.startsWith('\uFEFF') ? 1 : 0
  while (at < text.length) {
    const quoted = text[at] === '"' ? quotedAt(text, at) : null
    if (quoted === undefined) return undefined
    const from = quoted?.end ?? at
    BREAK.lastIndex = from
    const end = BREAK.exec(text)?.index ?? text.length
    if (quoted !== null && end !== from) return undefined
    cells.push((quoted?.cell ?? text.slice(from, end)).replace(GUARDED, ''))
    line += quoted?.lines ?? 0
    const isLast = text[end] !== ','
    at = end + (text.startsWith('\r\n', end) ? 2 : 1)
    if (!isLast && at < text.length) continue
    if (!isLast) cells.push('')
    if (cells.some((cell) => cell.trim() !== '')) rows.push({ line: first, cells })
    cells = []
    line += 1
    first = line
  }
  return rows
}

/** The cell that begins with a quote, where it ends, and how many lines it breaks. Undefined: it has no end. */
function quotedAt(text: string, start: number) {
  let cell = ''
  let at = start
  do {
    const close = text.indexOf('"', at + 1)
    if (close < 0) return undefined
    cell += (at === start ? '' : '"') + text.slice(at + 1, close)
    at = close + 1
  } while (text[at] === '"')
  return { cell, end: at, lines: cell.split('\n').length - 1 }
}
