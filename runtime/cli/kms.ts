/** `svc kms`: the key management process, its keys, and their rotation. docs/guides/oauth/signing-keys.md. */
import type { Command } from 'commander'
import { systemClock } from '../kernel/clock.js'
import { createLogger, type LogLevel } from '../kernel/log.js'
import { systemRandom } from '../kernel/random.js'
import {
  generateKeyDirectory,
  readKeyDirectory,
  rotateMasterKey,
} from '../../storage/platform/kms/key-directory.js'
import { keyPaths } from '../../storage/platform/kms/key-files.js'
import { serveKms } from '../../storage/platform/kms/server.js'
import { type CommandHost, lineHost } from './output.js'
import { resultText } from './target.js'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

interface KmsCommandHost extends CommandHost {
  /**
   * Resolves when the process receives a stop signal; with `withStdin` also when standard input
   * closes.
   */
  readonly stopped: (withStdin: boolean) => Promise<void>
}

type ServeOptions = {
  socket: string
  keys: string
  replace: boolean
  exitWithStdin: boolean
  group?: string
  logLevel: string
}

/** Adds `kms` with its sub-commands to the program. */
export function kmsCommand(program: Command, host: KmsCommandHost = processHost()): void {
  const kms = program
    .command('kms')
    .description('the key management process: holds master keys, wraps data keys')
  const random = systemRandom(systemClock)
  const attempt = async (work: () => Promise<void>) => {
    try {
      await work()
    } catch (error) {
      host.err(`svc kms: ${error instanceof Error ? error.message : String(error)}`)
      host.exitWith(1)
    }
  }
  kms
    .command('serve')
    .description('serve on a unix socket until a stop signal')
    .requiredOption('--socket <path>', 'unix socket, closed to other users')
    .requiredOption('--keys <dir>', 'key directory created by svc kms keygen')
    .option('--group <gid>', 'id of a group whose members may connect too')
    .option('--replace', 'take over the socket even if another process serves it', false)
    .option(
      '--exit-with-stdin',
      'stop when standard input closes, so with the parent process',
      false,
    )
    .option('--log-level <level>', LOG_LEVELS.join(', '), 'info')
    .action((options: ServeOptions) => attempt(() => serve(options, host)))
  kms
    .command('keygen')
    .description('create the keys of a new kms and of its client, the service')
    .requiredOption('--dir <dir>', 'an empty or new directory')
    .option('--json', 'as JSON')
    .action(({ dir, json = false }: { dir: string; json?: boolean }) =>
      attempt(async () => {
        await generateKeyDirectory(dir, random)
        const paths = keyPaths(dir)
        const made = {
          directory: dir,
          server_public_key_path: paths.serverPublic,
          client_private_key_path: paths.clientPrivate,
          master_key_path: paths.master(1),
        }
        host.out(
          resultText(
            json,
            made,
            [
              `Keys are in ${dir}. Start the kms with`,
              `  svc kms serve --socket PATH --keys ${dir}`,
              'and configure the service (move the two files when it runs as another user):',
              '  [kms]',
              '  socket_path = "PATH"',
              `  server_public_key_path = ${JSON.stringify(paths.serverPublic)}`,
              `  client_private_key_path = ${JSON.stringify(paths.clientPrivate)}`,
              `Back up ${paths.master(1)}: without it sealed data is lost.`,
            ].join('\n'),
          ),
        )
      }),
    )
  kms
    .command('rotate')
    .description('add a master key that wraps from now on; older ones remain for unwrapping')
    .requiredOption('--keys <dir>', 'key directory')
    .option('--json', 'as JSON')
    .action(({ keys, json = false }: { keys: string; json?: boolean }) =>
      attempt(async () => {
        const version = await rotateMasterKey(keys, random)
        const { master } = await readKeyDirectory(keys, random)
        const id = master.ids.at(-1)
        const text =
          `Master key ${id} (version ${version}) wraps from now on; a running kms ` +
          'uses it within seconds. Run `svc keys rewrap` to wrap the data keys with it.'
        host.out(resultText(json, { master_key_id: id, version }, text))
      }),
    )
}

async function serve(options: ServeOptions, host: KmsCommandHost): Promise<void> {
  const level = LOG_LEVELS.find((each): each is LogLevel => each === options.logLevel)
  if (level === undefined) throw new Error(`unknown log level ${options.logLevel}`)
  const { group } = options
  if (group !== undefined && !/^\d{1,9}$/.test(group)) throw new Error('--group must be a number')
  const write = process.stderr.isTTY
    ? await onTerminal()
    : (line: string) => process.stderr.write(line)
  const server = await serveKms({
    groupId: group === undefined ? undefined : Number(group),
    socketPath: options.socket,
    keysDirectory: options.keys,
    random: systemRandom(systemClock),
    log: createLogger({ level, destination: { write } }),
    replace: options.replace,
  })
  // The parent process waits for this line.
  host.out('serving')
  await host.stopped(options.exitWithStdin)
  await server.close()
}

/** Lines for people, as the service writes them on a terminal. Loads the formatter only where it is used. */
async function onTerminal(): Promise<(line: string) => void> {
  const { terminalLog } = await import('./terminal-log.js')
  process.stderr.on('error', () => undefined)
  const terminal = terminalLog(process.stderr)
  return (line) => terminal.write(line)
}

function processHost(): KmsCommandHost {
  return {
    ...lineHost,
    stopped: (withStdin) =>
      new Promise((resolve) => {
        const stop = () => {
          process.stdin.destroy()
          resolve()
        }
        process.once('SIGTERM', stop)
        process.once('SIGINT', stop)
        if (!withStdin) return
        // Only the parent holds the other end: it closes when the parent ends, however it ends.
        process.stdin.once('end', stop)
        process.stdin.once('error', stop)
        process.stdin.resume()
      }),
  }
}
