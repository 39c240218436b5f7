/**
 * `node dist/test/seeded-faults.js [NAME ...]`: proves that tests catch faults. It seeds each fault of
 * test/runner/seeded-faults.ts, alone, into a copy of the compiled program, and runs the tests that should catch it.
 */
import { spawn } from 'node:child_process'
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compiled, SEEDED_FAULTS, wrongIn } from './runner/seeded-faults.js'
import type { SeededFault } from './runner/seeded/fault.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
/** What a fault can change. The rest of a tree are links. */
const COPIED = new Set(['dist', 'migrations'])
/** Two thirds of the compiled files, which no test of a fault reads. */
const NOT_RUN = /\.(?:map|d\.ts|tsbuildinfo)$/
const LEFT_OUT = new Set(['.git', 'coverage'])
/** What the runner prints of a failed test, and of a file that failed as a whole. */
const FAILED_TEST = /^failed: npm test -- (\S+) --match '(.*)'$/
const FAILED = /^failed: (?:npm test -- )?(.*)$/

type Outcome = { readonly code: number | null; readonly tests: string[]; readonly failed: string[] }

let isInterrupted = false

process.exitCode = await main(process.argv.slice(2))

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.filter((name) => !SEEDED_FAULTS.some((fault) => fault.name === name))
  const faults = SEEDED_FAULTS.filter(({ name }) => names.length === 0 || names.includes(name))
  const wrong = [
    ...unknown.map((name) => `no fault '${name}'`),
    ...faults.flatMap((fault) => wrongIn(fault, root)),
  ]
  for (const line of wrong) say(line)
  if (wrong.length > 0) return 2
  const files = [...new Set(faults.flatMap(({ tests }) => tests))]
  const clean = await runIn(undefined, files)
  if (isInterrupted) return 1
  for (const line of clean.failed) say(`fails without a fault: ${line}`)
  const broken = files.filter((file) =>
    clean.failed.some((line) => line.startsWith(compiled(file))),
  )
  if (clean.code !== 0 && broken.length === 0) {
    say('the tests must pass without a fault')
    return 1
  }
  say(`${files.length - broken.length} of ${files.length} files pass without a fault`)
  let missed = 0
  for (const fault of faults) {
    if (fault.tests.some((test) => broken.includes(test))) {
      missed += 1
      say(`NOT SEEDED  ${fault.name} (its test fails without it)`)
      continue
    }
    const { code, tests, failed } = await runIn(fault, fault.tests)
    if (isInterrupted) return 1
    const isCaught = code === 1 && tests.length > 0
    if (!isCaught) missed += 1
    const why = failed.length > 0 ? failed.join(', ') : `the runner ended with ${code}`
    say(isCaught ? `caught      ${fault.name}` : `NOT CAUGHT  ${fault.name} (${why})`)
    for (const test of tests) say(`            by ${test}`)
  }
  say(`${faults.length} faults: ${faults.length - missed} caught, ${missed} not`)
  return missed === 0 ? 0 : 1
}
/** Runs test files in a tree with one fault, or with none. */
async function runIn(fault: SeededFault | undefined, tests: readonly string[]): Promise<Outcome> {
  const tree = mkdtempSync(join(tmpdir(), 'svc-seeded-'))
  try {
    for (const entry of readdirSync(root).filter((name) => !LEFT_OUT.has(name))) {
      const [from, to] = [join(root, entry), join(tree, entry)]
      if (COPIED.has(entry))
        cpSync(from, to, { recursive: true, filter: (path) => !NOT_RUN.test(path) })
      else symlinkSync(from, to)
    }
    for (const { source, find, replace } of fault?.edits ?? []) {
      const path = join(tree, compiled(source))
      const text = readFileSync(path, 'utf8')
      writeFileSync(path, text.split(find).join(replace))
    }
    return await runTests(tree, tests.map(compiled))
  } finally {
    rmSync(tree, { recursive: true, force: true })
  }
}

async function runTests(tree: string, files: readonly string[]): Promise<Outcome> {
  const child = spawn(process.execPath, [join('dist', 'test', 'run.js'), ...files], {
    cwd: tree,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  // The runner ends its tests first. The tree goes after it.
  const interrupt = () => {
    isInterrupted = true
    child.kill('SIGINT')
  }
  process.once('SIGINT', interrupt)
  process.once('SIGTERM', interrupt)
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  process.off('SIGINT', interrupt)
  process.off('SIGTERM', interrupt)
  const lines = output.split('\n')
  const named = lines.flatMap((line) => [FAILED_TEST.exec(line)].filter((found) => found !== null))
  return {
    code,
    tests: named.map(([, file, title]) => `${file}: ${title}`),
    failed: lines.flatMap((line) => FAILED.exec(line)?.[1] ?? []),
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
