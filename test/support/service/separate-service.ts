/**
 * A service in a separate process, with its own database: for tests of its whole output and
 * memory, which must not contain the test.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { notThrough } from '../fleet/through.js'
import { type FreshDatabase, freshDatabase } from '../storage/database.js'
import { testKms } from '../storage/kms.js'
import { freePort, TEST_DEFAULTS } from '../service.js'
import { countStart } from './started.js'
import { ASK, type HeapsAnswer } from './thread-heaps.js'
import { METRICS_TOKEN, until } from './watch.js'

const MAIN = new URL('../../../runtime/main.js', import.meta.url).pathname
const THREAD_HEAPS = new URL('./thread-heaps.js', import.meta.url).pathname
const WITHIN_MS = 120_000

export interface SeparateService {
  readonly baseUrl: string
  readonly db: FreshDatabase
  /** Everything that it has printed. */
  output(): string
  /** The objects of its main thread: the text of a V8 heap snapshot, after a garbage collection. */
  heap(): Promise<string>
  /** The same for each of its other threads, by name. */
  threadHeaps(): Promise<readonly { readonly thread: string; readonly heap: string }[]>
  end(): Promise<void>
}

export async function separateService(
  environment: Readonly<Record<string, string>>,
): Promise<SeparateService> {
  notThrough('it reads the memory of its process')
  const db = await freshDatabase()
  const kms = await testKms()
  const folder = mkdtempSync(join(tmpdir(), 'svc-separate-'))
  const port = await freePort()
  const baseUrl = `http://localhost:${port}`
  countStart('service')
  const child: ChildProcess = spawn(
    process.execPath,
    [
      '--heapsnapshot-signal=SIGUSR2',
      '--heap-snapshot-string-limit=10000000',
      `--diagnostic-dir=${folder}`,
      `--import=${THREAD_HEAPS}`,
      MAIN,
      'serve',
      '--log-level',
      'debug',
    ],
    {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: {
        PATH: process.env['PATH'],
        HOME: folder,
        ...TEST_DEFAULTS,
        DATABASE_URL: db.url,
        SVC_SERVER__PORT: String(port),
        SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
        SVC_OIDC__ISSUER_URL: baseUrl,
        ...kms.environment,
        ...environment,
      },
    },
  )
  let text = ''
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
  }
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const end = async () => {
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), WITHIN_MS)
    await closed
    clearTimeout(late)
    await kms.end()
    await db.drop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await until('the start', async () => {
      if (child.exitCode !== null) throw new Error(`it ended:\n${text}`)
      const answer = await fetch(`${baseUrl}/health/ready`).catch(() => undefined)
      await answer?.body?.cancel()
      return answer?.status === 200
    })
  } catch (error) {
    await end()
    throw error
  }
  return {
    baseUrl,
    db,
    output: () => text,
    async heap() {
      const isSnapshot = (name: string) => name.endsWith('.heapsnapshot')
      const before = new Set(readdirSync(folder).filter(isSnapshot))
      child.kill('SIGUSR2')
      const fresh = () =>
        readdirSync(folder).filter((name) => isSnapshot(name) && !before.has(name))
      let whole = ''
      await until('the snapshot', () => {
        const [name] = fresh()
        if (name === undefined) return false
        whole = readFileSync(join(folder, name), 'utf8')
        // The snapshot ends with its strings.
        return whole.includes('"strings":[') && /\]\s*\}\s*$/.test(whole.slice(-100))
      })
      return whole
    },
    async threadHeaps() {
      const answered = new Promise<HeapsAnswer>((resolve, reject) => {
        const late = setTimeout(
          () => reject(new Error('the heaps of the threads did not come')),
          WITHIN_MS,
        )
        child.once('message', (message) => {
          clearTimeout(late)
          resolve(message as HeapsAnswer)
        })
      })
      child.send(ASK)
      const answer = await answered
      if ('failure' in answer) throw new Error(answer.failure)
      return answer.heaps.map(({ thread, file }) => {
        const path = join(folder, file)
        const heap = readFileSync(path, 'utf8')
        rmSync(path)
        return { thread, heap }
      })
    },
    end,
  }
}
