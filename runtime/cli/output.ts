/**
 * The result of a command: on standard output, or with `--output FILE` in a file. A shell empties the file of a
 * redirection before the command begins; `--output` replaces it only when the command has succeeded.
 */
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { replaceFile } from '../clients/client/replace-file.js'
import { pathOf } from './target.js'

/** Commands whose output does not end before they do. `egress` has its own `--output`. */
const STREAMS: ReadonlySet<string> = new Set([
  'serve',
  'kms serve',
  'webhooks listen',
  'run',
  'egress',
  'tour',
])

const PERMISSIONS = 0o777

/** The output of this process for a file. Undefined: standard output. */
let kept: string[] | undefined

/** Prints a part of the result. */
export function output(text: string): void {
  if (kept === undefined) process.stdout.write(text)
  else kept.push(text)
}

/** What a command needs of its process. */
export interface CommandHost {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly exitWith: (code: number) => void
}

/** This process. */
export const host: CommandHost = {
  out: output,
  err: (text) => void process.stderr.write(text),
  exitWith: (code) => {
    process.exitCode = code
  },
}

/** The same for a command that writes whole lines, without their ends. */
export const lineHost: CommandHost = {
  ...host,
  out: (text) => output(`${text}\n`),
  err: (text) => void process.stderr.write(`${text}\n`),
}

/** Adds `--output` to every command that prints a result. */
export function offerOutput(command: Command): void {
  for (const each of command.commands) offerOutput(each)
  if (command.commands.length > 0 || STREAMS.has(pathOf(command))) return
  command.option('-o, --output <file>', 'write the result to this file, if the command succeeds')
}

/** Call it before the command runs. Ends the process if the file cannot be written, so that nothing has happened. */
export function beginOutput(command: Command): void {
  const path = pathOfOutput(command)
  if (path === undefined) return
  const fault = outputFault(path)
  if (fault !== undefined) command.error(`error: option '--output': ${fault}`)
  kept = []
}

/** Call it after the command. The result of a failed command is on standard output, since some values are shown only once. */
export async function endOutput(command: Command): Promise<void> {
  const path = pathOfOutput(command)
  if (kept === undefined || path === undefined) return
  const text = kept.join('')
  kept = undefined
  try {
    if ((process.exitCode ?? 0) === 0) return await writeOutput(path, text)
  } catch (error) {
    process.stderr.write(`svc: ${path} was not written: ${(error as Error).message}\n`)
    process.exitCode = 1
  }
  process.stdout.write(text)
}

/** Writes a result that is complete or fails: files are replaced as a whole, devices and pipes are written to. */
export async function writeOutput(
  path: string,
  data: string | AsyncIterable<Uint8Array>,
): Promise<void> {
  const known = statSync(path, { throwIfNoEntry: false })
  if (known === undefined) return replaceFile(path, data)
  if (!known.isFile()) return writeFile(path, data)
  return replaceFile(realpathSync(path), data, known.mode & PERMISSIONS)
}

/** Why a file cannot be written. Undefined if it can. */
export function outputFault(path: string): string | undefined {
  try {
    const known = statSync(path, { throwIfNoEntry: false })
    if (known?.isDirectory() === true) return `${path} is a folder`
    accessSync(known?.isFile() === false ? path : dirname(path), constants.W_OK)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

function pathOfOutput(command: Command): string | undefined {
  if (STREAMS.has(pathOf(command))) return undefined
  const { output: path } = command.opts<{ output?: string }>()
  return path === undefined ? undefined : resolve(path)
}
