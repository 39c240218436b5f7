/**
 * Benchmarks that can be believed: every contender runs next to a reference in the same process run,
 * rounds are interleaved so that a noisy minute hits all of them, each gets one thrown-away warm-up,
 * and what is reported is the median of the rounds with its spread.
 *
 *     const report = await compare({
 *       name: 'sha256 of 64 bytes',
 *       reference: { name: 'createHash', run: (ms) => repeat(ms, () => hash(bytes)) },
 *       contenders: [{ name: 'ours', target: 0.6, run: (ms) => repeat(ms, () => ours(bytes)) }],
 *     })
 *     await publish(report)
 *
 * Run a bench by `node dist/bench/<path>.js [--rounds n] [--ms n] [--warm-up-ms n] [--json file] [--markdown file]`.
 */
import { appendFile, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus } from 'node:os'
import { parseArgs } from 'node:util'

/** The measurements of one round. */
export type Measured = {
  /** Completed operations. */
  readonly operations: number
  /** When the round measures its own time. Default: the duration of `run`. */
  readonly seconds?: number | undefined
  /** When another process did the work. Default: all threads of this process are measured. */
  readonly cpuSeconds?: number | undefined
  /** Other figures of the round, such as `p99Ms`. Reported as medians. */
  readonly figures?: Readonly<Record<string, number>> | undefined
}

export interface Contender {
  readonly name: string
  /** Works for about `ms` milliseconds. */
  readonly run: (ms: number) => Measured | Promise<Measured>
  /** The target, as a fraction of the reference's rate. */
  readonly target?: number | undefined
  /** The rate that the target is about. Default `wall`. */
  readonly by?: 'wall' | 'cpu' | undefined
  readonly setUp?: (() => Promise<void>) | undefined
  readonly tearDown?: (() => Promise<void>) | undefined
}

export interface Comparison {
  readonly name: string
  /** What the contenders are compared with. Without a reference, no ratios are reported. */
  readonly reference?: Contender | undefined
  readonly contenders: readonly Contender[]
  /** Measured rounds per contender. Default 5. */
  readonly rounds?: number | undefined
  /** Length of a round. Default 1000. */
  readonly ms?: number | undefined
  /** Length of the discarded warm-up of each contender. Default: the length of a round. */
  readonly warmUpMs?: number | undefined
}

export type Row = {
  readonly name: string
  readonly perSecond: number
  /** Operations per second of CPU time, all threads. */
  readonly perCpuSecond: number
  /** Fastest round over slowest. Above 1.3 the run is too noisy to count. */
  readonly spread: number
  readonly ratio: number | null
  readonly ratioPerCpu: number | null
  readonly target: number | null
  readonly reached: boolean | null
  readonly figures: Readonly<Record<string, number>>
}

export type Report = {
  readonly name: string
  readonly date: string
  readonly machine: string
  readonly rounds: number
  readonly ms: number
  readonly rows: readonly Row[]
}

const SPREAD_MAX = 1.3
/**
 * A server reaches its full speed when all of its code is compiled, which takes seconds under load.
 */
export const SERVER_WARM_UP_MS = 15_000

type Round = { perSecond: number; perCpuSecond: number; figures: Readonly<Record<string, number>> }

/** Runs all contenders in turn, round by round. */
export async function compare(comparison: Comparison): Promise<Report> {
  const { values } = options()
  const rounds = Number(values.rounds ?? comparison.rounds ?? 5)
  const ms = Number(values.ms ?? comparison.ms ?? 1000)
  const { reference } = comparison
  const all =
    reference === undefined ? comparison.contenders : [reference, ...comparison.contenders]
  const results = new Map<Contender, Round[]>(all.map((contender) => [contender, []]))
  for (const contender of all) await contender.setUp?.()
  try {
    const warmUpMs = Number(values['warm-up-ms'] ?? comparison.warmUpMs ?? ms)
    for (const contender of all) await measure(contender, warmUpMs)
    for (let round = 0; round < rounds; round += 1) {
      for (const contender of all) results.get(contender)!.push(await measure(contender, ms))
    }
  } finally {
    for (const contender of all) await contender.tearDown?.()
  }
  const baseline = reference && results.get(reference)
  return {
    name: comparison.name,
    date: new Date().toISOString(),
    machine: machine(),
    rounds,
    ms,
    rows: all.map((contender) => toRow(contender, results.get(contender)!, baseline)),
  }
}

async function measure(contender: Contender, ms: number): Promise<Round> {
  const cpuBefore = process.cpuUsage()
  const before = performance.now()
  const measured = await contender.run(ms)
  const seconds = measured.seconds ?? (performance.now() - before) / 1000
  const cpu = process.cpuUsage(cpuBefore)
  const cpuSeconds = measured.cpuSeconds ?? (cpu.user + cpu.system) / 1e6
  return {
    perSecond: measured.operations / seconds,
    perCpuSecond: measured.operations / cpuSeconds,
    figures: measured.figures ?? {},
  }
}

function toRow(contender: Contender, rounds: readonly Round[], baseline?: readonly Round[]): Row {
  const rates = rounds.map(({ perSecond }) => perSecond)
  const perSecond = median(rates)
  const perCpuSecond = median(rounds.map((round) => round.perCpuSecond))
  const ratio = baseline ? perSecond / median(baseline.map((round) => round.perSecond)) : null
  const ratioPerCpu = baseline
    ? perCpuSecond / median(baseline.map((round) => round.perCpuSecond))
    : null
  const target = contender.target ?? null
  const judged = contender.by === 'cpu' ? ratioPerCpu : ratio
  const names = Object.keys(rounds[0]?.figures ?? {})
  return {
    name: contender.name,
    perSecond,
    perCpuSecond,
    spread: Math.max(...rates) / Math.min(...rates),
    ratio,
    ratioPerCpu,
    target,
    reached: target === null || judged === null ? null : judged >= target,
    figures: Object.fromEntries(
      names.map((name) => [name, median(rounds.map(({ figures }) => figures[name]!))]),
    ),
  }
}

/** Prints the report, and writes it where `--json` and `--markdown` say. */
export async function publish(report: Report): Promise<void> {
  await publishTable(toMarkdown(report), report)
}

/** What this run has published so far. */
const published: unknown[] = []

/** The same for a bench with another kind of table. `--json` writes a list of everything that the run publishes. */
export async function publishTable(table: string, json: unknown): Promise<void> {
  const { values } = options()
  console.log(table)
  published.push(json)
  if (values.markdown !== undefined) await appendFile(values.markdown, `${table}\n`)
  if (values.json !== undefined) {
    await writeFile(values.json, `${JSON.stringify(published, null, 2)}\n`)
  }
}

/** The report as a Markdown section with one table. */
export function toMarkdown(report: Report): string {
  const figures = [...new Set(report.rows.flatMap((row) => Object.keys(row.figures)))]
  const head = ['', 'per second', 'per CPU second', 'spread', 'ratio', 'ratio per CPU', 'target']
  const rows = report.rows.map((row) => [
    row.name,
    round(row.perSecond),
    round(row.perCpuSecond),
    `${row.spread.toFixed(2)}${row.spread > SPREAD_MAX ? ' (noisy)' : ''}`,
    row.ratio === null ? '' : row.ratio.toFixed(2),
    row.ratioPerCpu === null ? '' : row.ratioPerCpu.toFixed(2),
    row.target === null ? '' : `${row.target} ${row.reached === true ? 'reached' : 'missed'}`,
    ...figures.map((name) => row.figures[name]?.toPrecision(3) ?? ''),
  ])
  const lines = [[...head, ...figures], head.concat(figures).map(() => '---'), ...rows]
  return [
    `### ${report.name}`,
    '',
    `${report.machine}; ${report.date.slice(0, 10)}; median of ${report.rounds} rounds of ${report.ms} ms.`,
    '',
    ...lines.map((cells) => `| ${cells.join(' | ')} |`),
    '',
  ].join('\n')
}

/** Calls a synchronous function repeatedly, and reads the clock every `batch` calls. */
export function repeat(ms: number, call: () => unknown, batch = 100): Measured {
  const end = performance.now() + ms
  let operations = 0
  while (performance.now() < end) {
    for (let index = 0; index < batch; index += 1) call()
    operations += batch
  }
  return { operations }
}

/** Keeps `inflight` calls of an asynchronous function going: a closed loop, for rates. */
export async function saturate(
  ms: number,
  inflight: number,
  call: () => Promise<unknown>,
): Promise<Measured> {
  const end = performance.now() + ms
  let operations = 0
  const worker = async () => {
    while (performance.now() < end) {
      await call()
      operations += 1
    }
  }
  await Promise.all(Array.from({ length: inflight }, worker))
  return { operations }
}

/**
 * Starts calls at a fixed rate, whether or not earlier ones have finished: an open loop, as latency
 * measurements need. A call's latency counts from the time at which it should have started.
 */
export async function pace(
  ms: number,
  perSecond: number,
  call: () => Promise<unknown>,
): Promise<Measured> {
  const start = performance.now()
  const total = Math.max(1, Math.floor((ms * perSecond) / 1000))
  const latencies: number[] = []
  const running: Promise<unknown>[] = []
  for (let index = 0; index < total; index += 1) {
    const dueMs = start + (index * 1000) / perSecond
    const waitMs = dueMs - performance.now()
    if (waitMs > 1) await new Promise((resolve) => setTimeout(resolve, waitMs))
    running.push(call().then(() => latencies.push(performance.now() - dueMs)))
  }
  await Promise.all(running)
  return { operations: total, figures: percentiles(latencies) }
}

/** The usual percentiles of a list of milliseconds, ready to be `figures`. */
export function percentiles(milliseconds: readonly number[]): Record<string, number> {
  const sorted = milliseconds.toSorted((a, b) => a - b)
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  return { p50Ms: at(0.5) ?? 0, p99Ms: at(0.99) ?? 0, maxMs: sorted.at(-1) ?? 0 }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  if (sorted.length % 2 === 1) return sorted[middle]!
  return ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}

/** Processors, platform and Node, in one line. */
export function machine(): string {
  const model = cpus()[0]?.model.trim() ?? process.arch
  return `${availableParallelism()} x ${model}, ${process.platform}, Node ${process.versions.node}`
}

function round(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US')
}

type Option = 'rounds' | 'ms' | 'warm-up-ms' | 'json' | 'markdown'

function options() {
  return parseArgs({
    strict: false,
    options: {
      rounds: { type: 'string' },
      ms: { type: 'string' },
      'warm-up-ms': { type: 'string' },
      json: { type: 'string' },
      markdown: { type: 'string' },
    },
  }) as { values: Partial<Record<Option, string>> }
}
