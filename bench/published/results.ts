/** The measurements that are published: the file bench/results.json, and the table that is made from it. */
import { existsSync, readFileSync } from 'node:fs'
import type { Report, Row } from '../harness.js'
import type { RowDefinition } from './rows.js'

export type Side = {
  /** As the bench names it. */
  readonly name: string
  readonly version: string
  /** A rate, or the value of a figure. */
  readonly value: number
  /** Fastest round over slowest. */
  readonly spread: number
}

export type Result = {
  readonly id: string
  /** Day of the measurement. */
  readonly date: string
  readonly machine: string
  /** What else ran on the machine, in a few words. */
  readonly note: string
  readonly rounds: number
  /** Length of a round. */
  readonly ms: number
  readonly reference: Side | null
  readonly ours: Side
  /** Ours divided by the reference. Null for a figure with a limit. */
  readonly ratio: number | null
  /** Why the row was not measured again later. */
  readonly notRepeated?: string
}

export type Results = { readonly rows: readonly Result[] }

/** Above it a run is too noisy to count. */
const SPREAD_MAX = 1.3

export function readResults(path: string): Results {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Results) : { rows: [] }
}

export function writtenResults(results: Results): string {
  return `${JSON.stringify(results, null, 2)}\n`
}

export type Versions = { readonly reference: string; readonly ours: string }

/** The result of a row from the reports of its bench. @throws if a report or a row of it is missing. */
export function resultOf(
  definition: RowDefinition,
  reports: readonly Report[],
  versions: Versions,
  note: string,
): Result {
  const report = reports.find(({ name }) => name.startsWith(definition.report))
  if (report === undefined) {
    throw new Error(`${definition.bench} has no report that begins with "${definition.report}"`)
  }
  const find = (name: string): Row => {
    const row = report.rows.find((each) => each.name === name)
    if (row === undefined) throw new Error(`the report "${report.name}" has no row "${name}"`)
    return row
  }
  const side = (row: Row, version: string): Side => ({
    name: row.name,
    version,
    value: Number(valueOf(definition, row).toPrecision(4)),
    spread: Number(row.spread.toFixed(2)),
  })
  const ours = find(definition.ours)
  const reference = definition.reference === undefined ? null : find(definition.reference)
  const ratio =
    reference === null ? null : valueOf(definition, ours) / valueOf(definition, reference)
  return {
    id: definition.id,
    date: report.date.slice(0, 10),
    machine: report.machine,
    note,
    rounds: report.rounds,
    ms: report.ms,
    reference: reference === null ? null : side(reference, versions.reference),
    ours: side(ours, versions.ours),
    ratio: ratio === null ? null : Number(ratio.toPrecision(4)),
  }
}

function valueOf({ per }: RowDefinition, row: Row): number {
  if (per === 'second') return row.perSecond
  if (per === 'CPU second') return row.perCpuSecond
  const value = row.figures[per.figure]
  if (value === undefined) throw new Error(`"${row.name}" has no figure ${per.figure}`)
  return value
}

/** True if the reference was steady enough for the ratio to count. */
export function isSteady({ reference, ours }: Result): boolean {
  return (reference ?? ours).spread <= SPREAD_MAX
}

/** The results with a row replaced or added. */
export function withResult({ rows }: Results, result: Result): Results {
  return { rows: [...rows.filter(({ id }) => id !== result.id), result] }
}

/** The results with the reason why a row keeps its last value. */
export function withReason({ rows }: Results, id: string, notRepeated: string): Results {
  return { rows: rows.map((row) => (row.id === id ? { ...row, notRepeated } : row)) }
}

/** The table of docs/reference/performance.md: one line per row definition, in that order. */
export function tableOf(definitions: readonly RowDefinition[], { rows }: Results): string {
  const lines = definitions.map((definition) => {
    const result = rows.find(({ id }) => id === definition.id)
    return [`${definition.what} (\`${definition.bench}\`)`, ...cellsOf(definition, result)]
  })
  const head = ['what', 'reference', 'svc', 'ratio', 'target', 'stretch', 'measured']
  return [head, head.map(() => '---'), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}

function cellsOf(definition: RowDefinition, result: Result | undefined): string[] {
  const { target, stretch, per } = definition
  const limits = [target, stretch].map((limit) =>
    typeof per === 'string' ? String(limit) : `at most ${figure(limit)} ${per.unit}`,
  )
  if (result === undefined) {
    const needs = definition.needs?.join(', ')
    return ['', '', '', ...limits, needs === undefined ? 'not yet' : `not yet, needs ${needs}`]
  }
  const unit = typeof per === 'string' ? `per ${per}` : per.unit
  const shown = ({ name, version, value }: Side) => `${figure(value)} ${unit}: ${name} (${version})`
  const { reference, ours, ratio, date, notRepeated } = result
  return [
    reference === null ? '' : shown(reference),
    shown(ours),
    ratio === null
      ? ''
      : `${ratio.toFixed(ratio < 10 ? 2 : 1)}${isSteady(result) ? '' : ' (noisy)'}`,
    judged(definition, result, target, limits[0]!),
    judged(definition, result, stretch, limits[1]!),
    [date, result.note, ...(notRepeated === undefined ? [] : [`since then: ${notRepeated}`])]
      .filter((word) => word !== '')
      .join('; '),
  ]
}

function judged({ per }: RowDefinition, result: Result, limit: number, text: string): string {
  // Compares what the table shows.
  const ratio = Number(result.ratio?.toFixed(2))
  const isReached = typeof per === 'string' ? ratio >= limit : result.ours.value <= limit
  return `${text}${isReached ? ' reached' : ' missed'}`
}

function figure(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US')
}

const BEGIN = '<!-- results:begin -->'
const END = '<!-- results:end -->'

/** The page with the table between its markers. @throws if the page has no markers. */
export function withTable(page: string, table: string): string {
  const from = page.indexOf(BEGIN)
  const to = page.indexOf(END)
  if (from < 0 || to < from) throw new Error(`the page has no ${BEGIN} and ${END}`)
  return `${page.slice(0, from + BEGIN.length)}\n\n${table}\n\n${page.slice(to)}`
}
