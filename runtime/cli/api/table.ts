/** The body of an answer as text for people: a table of a list, the members of an object. */

type Row = Readonly<Record<string, unknown>>

type Shape = {
  /** Members of a row of a list. Those that no row has are left out. */
  readonly columns: readonly string[]
  /** Long cells are cut, for terminals. */
  readonly isCut: boolean
  /** What is said of an answer without a body. */
  readonly done: string
  /** The field Link of the answer: a list that goes on names its next page. */
  readonly link: string | undefined
}

const CELL_CHARS = 40

/** Without the final line feed. */
export function callText(body: unknown, { columns, isCut, done, link }: Shape): string {
  if (Array.isArray(body)) {
    const rows = body as readonly Row[]
    if (rows.length === 0) return 'None.'
    const shown = columns.filter((name) => rows.some((row) => row[name] !== undefined))
    // Lists of something else, such as the sessions of a user.
    const few = shown.length < 3
    const names = few ? Object.keys(rows[0]!).filter((name) => name !== 'tenant_id') : shown
    const lines = aligned([
      names.map((name) => name.replaceAll('_', ' ').toUpperCase()),
      ...rows.map((row) => names.map((name) => cell(row[name], name, isCut))),
    ])
    const next = /<[^>]*\?([^>]*)>; rel="next"/.exec(link ?? '')?.[1]
    const words = [...new URLSearchParams(next)].map(([name, value]) => `${name}=${value}`)
    return next === undefined ? lines : `${lines}\nMore: ${words.join(' ')}`
  }
  if (typeof body === 'object' && body !== null && Object.keys(body).length > 0)
    return aligned(Object.entries(body).map(([name, value]) => [name, cell(value, name)]))
  return typeof body === 'string' && body !== '' ? printable(body) : done
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, at) => Math.max(...rows.map((row) => row[at]!.length)))
  return rows
    .map((row) =>
      row
        .map((text, at) => text.padEnd(widths[at]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Ids are never cut: they are copied. */
function cell(value: unknown, name: string, isCut = false): string {
  const text = printable(wordsOf(value))
  const isLong = text.length > CELL_CHARS && !/(?:^|_)(?:id|did)$/.test(name)
  return isCut && isLong ? `${text.slice(0, CELL_CHARS - 1)}…` : text
}

function wordsOf(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'string')
    return /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/.test(value)
      ? `${value.slice(0, 16).replace('T', ' ')}Z`
      : value
  if (Array.isArray(value) && value.every((each) => typeof each !== 'object'))
    return value.length === 0 ? '-' : value.join(' ')
  return JSON.stringify(value)
}

/** A name that a user chose must not move the cursor or turn the line. */
function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
}
