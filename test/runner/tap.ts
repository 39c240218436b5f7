/** Reads what AVA writes with --tap (Test Anything Protocol 13), a line at a time. */
import { memberOf } from './room-titles.js'

export type TestPoint = {
  readonly title: string
  readonly result: 'passed' | 'failed' | 'skipped'
  /** The reason of a failure, as AVA puts it. */
  readonly detail: readonly string[]
}

/** Members that say nothing of the test: where in the code of AVA an assertion threw. */
const NOISE = [/^name: AssertionError$/, /^message: ''$/, /^at: .*\/node_modules\/ava\//s]

/**
 * @param onPoint gets a failed test once its detail is complete.
 * @param onLog gets each line that a test has logged, after its result.
 * @returns a function that takes the next line.
 */
export function tapReader(
  onPoint: (point: TestPoint) => void,
  onLog?: (line: string) => void,
): (line: string) => void {
  let failed: { title: string; detail: string[] } | undefined
  let isDetail = false
  const flush = () => {
    if (failed !== undefined) onPoint({ result: 'failed', ...failed })
    failed = undefined
    isDetail = false
  }
  return (line) => {
    if (isDetail && line === '  ...') return flush()
    if (isDetail) return void failed?.detail.push(line.slice(4))
    if (failed !== undefined && line === '  ---') {
      isDetail = true
      return
    }
    const logged = /^# {3}(.*)$/.exec(line)
    if (logged !== null) return onLog?.(logged[1]!)
    const point = /^(not )?ok \d+ - (.*?)(?: # (SKIP|TODO).*)?$/.exec(line)
    if (point !== null || /^\d+\.\.\d+$/.test(line)) flush()
    if (point === null) return
    const [, not, title = '', directive] = point
    if (directive !== undefined) onPoint({ title, result: 'skipped', detail: [] })
    else if (not === undefined) onPoint({ title, result: 'passed', detail: [] })
    else failed = { title, detail: [] }
  }
}

/** The first and the last lines of a failure, without those that say nothing of the test: a traceback ends with its error. */
export function shortDetail(detail: readonly string[], linesMax: number): string[] {
  // A member begins at the margin; indented lines continue it.
  const members = detail.join('\n').split(/\n(?=\S)/)
  const lines = members
    .filter((member) => !NOISE.some((pattern) => pattern.test(member)))
    .flatMap((member) => member.split('\n'))
    // YAML doubles line feeds in some of its forms.
    .filter((line) => line.trim() !== '')
  if (lines.length <= linesMax) return lines
  const first = Math.ceil(linesMax / 2)
  const left = lines.length - linesMax
  return [...lines.slice(0, first), `... ${left} more lines`, ...lines.slice(first + left)]
}

/**
 * The file of a test, and its title without the path that AVA writes in front of it where several files run.
 * Undefined where no file fits, as for a crash of AVA itself.
 */
export function sourceOf(
  title: string,
  files: readonly string[],
): { readonly file: string; readonly title: string } | undefined {
  const member = memberOf(title)
  if (member !== undefined) return member
  if (files.length === 1) return { file: files[0]!, title }
  const crashed = files.find((file) => title.includes(file))
  if (crashed !== undefined) return { file: crashed, title }
  const paths = files.map((file) => file.replace(/\.test\.js$/, '').split('/'))
  let common = 0
  while (paths.every((parts) => parts.length > common + 1 && parts[common] === paths[0]![common])) {
    common += 1
  }
  const fits = paths
    .map((parts, index) => ({
      file: files[index]!,
      prefix: `${parts.slice(common).join(' › ')} › `,
    }))
    .filter(({ prefix }) => title.startsWith(prefix))
    .toSorted((a, b) => b.prefix.length - a.prefix.length)[0]
  return fits && { file: fits.file, title: title.slice(fits.prefix.length) }
}
