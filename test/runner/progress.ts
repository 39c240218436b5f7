/** How far a test run is: one line that is rewritten on a terminal, and a line every 30 seconds elsewhere. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs'

const TERMINAL_MS = 500
const PIPE_MS = 30_000

export type FileTime = {
  readonly file: string
  readonly seconds: number
  /** Much less than `seconds`: the file waits. */
  readonly cpuSeconds: number
}

export interface Progress {
  readonly fileTimes: readonly FileTime[]
  passed(): void
  failed(): void
  /** Writes a line above the progress. */
  say(line: string): void
  stop(): void
}

/** @param timesPath where each test process writes how long its file took (test/support/seed.ts). */
export function openProgress(filesTotal: number, timesPath: string): Progress {
  const { stdout } = process
  const startedMs = performance.now()
  const count = { passed: 0, failed: 0 }
  const fileTimes: FileTime[] = []
  let offset = 0
  let partial = ''

  const readTimes = () => {
    const text = partial + readFrom(timesPath, offset)
    offset += Buffer.byteLength(text) - Buffer.byteLength(partial)
    const lines = text.split('\n')
    partial = lines.pop() ?? ''
    fileTimes.push(...lines.map((line) => JSON.parse(line) as FileTime))
  }
  const line = () => {
    readTimes()
    const done = Math.min(fileTimes.length, filesTotal)
    const elapsed = clockOf((performance.now() - startedMs) / 1000)
    return `${done}/${filesTotal} files, ${count.passed} passed, ${count.failed} failed, ${elapsed}`
  }
  const clear = () => void (stdout.isTTY && stdout.write('\r\u001b[K'))
  const show = () => {
    clear()
    stdout.write(stdout.isTTY ? line() : `${line()}\n`)
  }
  const timer = setInterval(show, stdout.isTTY ? TERMINAL_MS : PIPE_MS)

  return {
    fileTimes,
    passed: () => void (count.passed += 1),
    failed: () => void (count.failed += 1),
    say(text) {
      clear()
      stdout.write(`${text}\n`)
    },
    stop() {
      clearInterval(timer)
      readTimes()
      clear()
    },
  }
}

/** The slowest first, as lines. */
export function slowest(times: readonly FileTime[], count: number): string[] {
  return times
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, count)
    .map(({ file, seconds, cpuSeconds }) => {
      const cpu = `(${cpuSeconds.toFixed(1)} s CPU)`
      return `${seconds.toFixed(1).padStart(7)} s ${cpu.padStart(13)}  ${file}`
    })
}

function readFrom(path: string, offset: number): string {
  if (!existsSync(path)) return ''
  const file = openSync(path, 'r')
  try {
    const chunk = Buffer.alloc(1024 * 1024)
    return chunk.toString('utf8', 0, readSync(file, chunk, 0, chunk.length, offset))
  } finally {
    closeSync(file)
  }
}

/** `mm:ss`. */
function clockOf(seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  return [minutes, Math.floor(seconds % 60)].map((part) => String(part).padStart(2, '0')).join(':')
}
