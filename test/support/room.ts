/**
 * Runs test files one after another in one process: a room (test/runner/rooms.ts). Each has a runner of AVA, as in a
 * separate process, and what it declares goes there.
 */
import { appendFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { ExecutionContext } from 'ava'
import { ROOM_TITLE, ROOMS, titleIn } from '../runner/room-titles.js'
import { endAll } from './endings.js'

type Metadata = {
  readonly type: 'test' | 'before' | 'after' | 'beforeEach' | 'afterEach'
  readonly serial: boolean
  readonly exclusive: boolean
  readonly skipped: boolean
  readonly todo: boolean
  readonly failing: boolean
  readonly always: boolean
}
type Chain = ((...args: unknown[]) => void) & {
  readonly [word: string]: Chain
} & { readonly meta: { readonly file: string } }
type CreateChain = (
  call: (metadata: Metadata, args: unknown[]) => void,
  defaults: Omit<Metadata, 'type'>,
  meta: object,
) => Chain
type State = { readonly type: string; readonly title?: string }
interface Runner {
  readonly chain: Chain
  on(event: 'stateChange', listener: (state: State) => void): void
  on(event: 'error', listener: (error: Error) => void): void
  once(event: 'finish'): Promise<void>
}

const root = fileURLToPath(new URL('../../..', import.meta.url))
const library = join(dirname(fileURLToPath(import.meta.resolve('ava'))), '..', 'lib')
const require = createRequire(import.meta.url)
const load = async <Value>(name: string) =>
  ((await import(pathToFileURL(join(library, name)).href)) as { default: Value }).default
const { refs } = require(join(library, 'worker', 'state.cjs')) as { refs: { runnerChain: Chain } }
const channel = require(join(library, 'worker', 'channel.cjs')) as { send(state: State): void }
const options = require(join(library, 'worker', 'options.cjs')) as { get(): object }
const { runnerChain: ofProcess } = refs

/** Where the runner wants to know how long a file took. */
const timesPath = process.env['TEST_TIMES']

let file = fileURLToPath(ofProcess.meta.file)
/** True in the process of a room. */
export const isRoom = file.startsWith(join(root, ROOMS))
/** Where the member that runs declares its tests. */
let chain = ofProcess
let isDeclared = false

/** The whole path of the test file that runs. */
export const currentFile = (): string => file

const createChain = await load<CreateChain>('create-chain.js')
const RunnerOfAva = await load<new (options: object) => Runner>('runner.js')
const plain = {
  serial: false,
  exclusive: false,
  skipped: false,
  todo: false,
  failing: false,
  always: false,
}
// Before the first module imports AVA.
refs.runnerChain = createChain(
  (metadata, args) => {
    // With the first declaration: AVA starts after it.
    if (!isDeclared && !isRoom) ofProcess['after']!['always']!(endAll)
    isDeclared = true
    declarationOf(metadata)(...args)
  },
  plain,
  ofProcess.meta,
)

/** What AVA calls the declaration, such as `test.serial.skip`. */
function declarationOf(metadata: Metadata): Chain {
  const { type, serial, exclusive, skipped, todo, failing, always } = metadata
  const words = [
    serial && 'serial',
    type !== 'test' && type,
    always && 'always',
    todo && 'todo',
    failing && 'failing',
    exclusive && 'only',
    skipped && 'skip',
  ]
  return words.reduce<Chain>((at, word) => (word === false ? at : at[word]!), chain)
}

/** @param members compiled test files, from the root. */
export function runRoom(members: readonly string[]): void {
  ofProcess(ROOM_TITLE, async (t: ExecutionContext) => {
    const broken: string[] = []
    for (const member of members) {
      const started = { cpu: process.cpuUsage(), ms: performance.now() }
      try {
        await runMember(member)
      } catch (error) {
        broken.push(`${member}: ${String(error)}`)
      }
      if (timesPath === undefined) continue
      const { user, system } = process.cpuUsage(started.cpu)
      const seconds = (performance.now() - started.ms) / 1000
      const time = { file, seconds, cpuSeconds: (user + system) / 1e6 }
      appendFileSync(timesPath, `${JSON.stringify(time)}\n`)
    }
    // What a member opened before it broke would keep the process.
    if (broken.length > 0) (await import('ava')).registerCompletionHandler(() => process.exit())
    t.deepEqual(broken, [])
  })
}

/** @throws when it cannot be loaded, or the runner of AVA fails. */
async function runMember(member: string): Promise<void> {
  file = join(root, member)
  process.env['TEST_FILE'] = file
  const runner = new RunnerOfAva({ ...options.get(), file })
  runner.on('stateChange', ({ title, ...state }) => {
    channel.send(title === undefined ? state : { ...state, title: titleIn(member, title) })
  })
  const failed = new Promise<never>((_, reject) => runner.on('error', reject))
  const finished = Promise.race([runner.once('finish'), failed])
  chain = runner.chain
  isDeclared = false
  try {
    await import(pathToFileURL(file).href)
    if (isDeclared) await finished
  } finally {
    await endAll()
  }
}
