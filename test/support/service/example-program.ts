/** A program of docs/examples as a separate process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { ExecutionContext } from 'ava'
import { notThroughHttp2 } from '../fleet/through.js'
import { trustOfPrograms } from './trust.js'

export type ProgramOptions = {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

export interface ExampleProgram {
  /** The next line of its output that begins with this text. Throws if the program ends without one. */
  line(beginning: string): Promise<string>
  /** The whole output, once the program has ended with 0. */
  readonly ended: Promise<string>
}

/** Starts a program, which is killed at the end of the test. */
export function startProgram(
  t: ExecutionContext,
  command: string,
  args: readonly string[],
  { cwd, env }: ProgramOptions,
): ExampleProgram {
  notThroughHttp2()
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...trustOfPrograms(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    // The group: `go run` starts the program as its child.
    process.kill(-child.pid!, 'SIGKILL')
    await once(child, 'exit')
  })
  const errors: string[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()))
  const lines: string[] = []
  const waiting: (() => void)[] = []
  let isEnded = false
  const wake = () => {
    for (const one of waiting.splice(0)) one()
  }
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    wake()
  })
  const ended = new Promise<string>((resolve, reject) => {
    child.once('close', (code) => {
      isEnded = true
      wake()
      if (code === 0) resolve(lines.join('\n'))
      else reject(new Error(`${command} ended with ${code}: ${errors.join('')}`))
    })
  })
  ended.catch(() => undefined)
  let at = 0
  return {
    ended,
    async line(beginning) {
      for (;;) {
        while (at < lines.length) {
          const line = lines[at++]!
          if (line.startsWith(beginning)) return line
        }
        if (isEnded) throw new Error(`${command} ended: ${errors.join('')}`)
        await new Promise<void>((resolve) => waiting.push(resolve))
      }
    },
  }
}
