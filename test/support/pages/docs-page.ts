/**
 * The code of a page of docs/, run unchanged: `sh` blocks by bash, `js` blocks by Node, `ts` blocks
 * by Node once the compiler has accepted them. What a
 * page uses as `$BASE`, `$CLIENT_ID` and so on is set by the test's environment.
 *
 *     const page = docsPage(t, 'guides/oauth/device-flow')
 *     const running = page.begin('js', 0, { BASE: service.baseUrl, CLIENT_ID })
 *     const code = await running.line() // what it has printed so far
 *     await running.ended // all of it, once it has exited with 0
 */
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import test, { type ExecutionContext } from 'ava'
import { program } from '../service/programs.js'
import { notThroughHttp2 } from '../fleet/through.js'
import { trustOfPrograms } from '../service/trust.js'

const TSC = new URL('../../../../node_modules/typescript/bin/tsc', import.meta.url).pathname
/** What `sh` blocks may use. */
const COMMANDS = ['bash', 'curl', 'jq', 'openssl', 'basenc']

export type Language = 'sh' | 'js' | 'ts'

export interface RunningBlock {
  /** The next line of its output. Throws if it has ended without one. */
  line(): Promise<string>
  /** The whole output. Rejected with the output if it fails. */
  readonly ended: Promise<string>
}

export interface DocsPage {
  readonly text: string
  /** The working directory of the blocks. */
  readonly folder: string
  /** The blocks of a language in the order of the page. */
  blocks(language: Language): readonly string[]
  /** Starts a block, which is killed at the end of the test. Blocks of a page share a folder. */
  begin(language: Language, index: number, env: Readonly<Record<string, string>>): RunningBlock
  /** Runs a block to its end. */
  run(language: Language, index: number, env: Readonly<Record<string, string>>): Promise<string>
  /** Runs a file of docs/examples that the page shows. */
  runSource(
    language: Language,
    source: string,
    env: Readonly<Record<string, string>>,
  ): Promise<string>
  /** Runs all `sh` blocks one after another in one shell. */
  runCommands(env: Readonly<Record<string, string>>): Promise<string>
}

export function docsPage(t: ExecutionContext, name: string): DocsPage {
  const text = readFileSync(new URL(`../../../../docs/${name}.md`, import.meta.url), 'utf8')
  const folder = mkdtempSync(join(tmpdir(), 'svc-page-'))
  // Below the project, where its packages are found.
  const modules = new URL('../../../pages/', import.meta.url).pathname
  mkdirSync(modules, { recursive: true })
  t.teardown(() => rmSync(folder, { recursive: true }))

  const blocks = (language: Language) =>
    [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(
      ([, block]) => block!,
    )

  function command(language: Language, block: string): [string, string[]] {
    if (language === 'sh') return ['bash', ['-euo', 'pipefail', '-c', block]]
    const file = join(mkdtempSync(join(modules, `${basename(name)}-`)), 'page.mjs')
    t.teardown(() => rmSync(join(file, '..'), { recursive: true }))
    if (language === 'js') writeFileSync(file, block)
    else compile(file.replace(/mjs$/, 'mts'), block)
    return [process.execPath, [file]]
  }

  /** As strictly as the project itself. @throws with what the compiler says. */
  function compile(source: string, block: string): void {
    writeFileSync(source, block)
    const options = '--strict --target es2023 --module nodenext --types node --skipLibCheck'
    try {
      execFileSync(process.execPath, [TSC, '--ignoreConfig', ...options.split(' '), source], {
        cwd: modules,
        encoding: 'utf8',
      })
    } catch (error) {
      const { stdout = '' } = error as { stdout?: string }
      throw new Error(`${name}.md does not compile:\n${stdout}`, { cause: error })
    }
  }

  function start(
    language: Language,
    block: string,
    env: Readonly<Record<string, string>>,
  ): RunningBlock {
    if (language !== 'sh') notThroughHttp2()
    const { PATH = '' } = process.env
    const child = spawn(...command(language, block), {
      cwd: folder,
      env: { PATH, ...trustOfPrograms(), ...env },
    })
    t.teardown(() => child.kill('SIGKILL'))
    let faults = ''
    child.stderr.setEncoding('utf8').on('data', (words: string) => (faults += words))
    const seen: string[] = []
    const lines = createInterface({ input: child.stdout })
    lines.on('line', (line) => seen.push(line))
    const ended = new Promise<string>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code) => {
        if (code === 0) resolve(seen.join('\n'))
        else reject(new Error(`${name}.md, ${language}: exit ${code}\n${block}\n${faults}`))
      })
    })
    // The rejection is handled by the waiter. Without one it needs no handler.
    ended.catch(() => undefined)
    let read = 0
    return {
      ended,
      async line() {
        const come = async () => {
          while (seen.length <= read) await new Promise((resolve) => lines.once('line', resolve))
        }
        await Promise.race([come(), ended])
        const line = seen[read]
        read += 1
        if (line === undefined) throw new Error(`${name}.md ended without another line`)
        return line
      },
    }
  }

  const page: DocsPage = {
    text,
    folder,
    blocks,
    begin(language, index, env) {
      const block = blocks(language)[index]
      if (block === undefined) throw new Error(`${name}.md has no ${language} block ${index}`)
      return start(language, block, env)
    },
    run: (language, index, env) => page.begin(language, index, env).ended,
    runSource: (language, source, env) => start(language, source, env).ended,
    runCommands: (env) => start('sh', blocks('sh').join('\n'), env).ended,
  }
  return page
}

/**
 * A test of `sh` blocks; skipped, and saying so, where a command that they use is not installed. One after the other: each
 * starts a service with its own durable database.
 */
export function testCommands(title: string, body: (t: ExecutionContext) => Promise<void>): void {
  const absent = COMMANDS.filter((name) => program(name) === undefined)
  if (absent.length === 0) test.serial(title, body)
  else test.skip(`${title} (skipped: ${absent.join(', ')} not installed)`, () => undefined)
}
