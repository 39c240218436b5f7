/**
 * `svc run -- CMD`: runs a program whose calls to other APIs go through the service's egress proxy.
 * The program never sees the vault credentials that they use. The command itself only writes to
 * stderr.
 */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { normalizeHostname } from '../../actors/domain/hostnames.js'
import { httpClient } from '../clients/client/http.js'
import { reasonOf } from '../kernel/text/reasons.js'
import { tokenFrom } from '../clients/client/token-source.js'
import { systemClock } from '../kernel/clock.js'
import { type Environment, readEnvironment } from '../kernel/config/environment.js'
import { systemRandom } from '../kernel/random.js'
import { createAuthority } from '../clients/svc-run/authority.js'
import { type ChildEnd, codeOfSignal, runChild } from '../clients/svc-run/child.js'
import { childEnvironment } from '../clients/svc-run/child-environment.js'
import { chooseCredentials, parseNamed } from '../clients/svc-run/credential-choice.js'
import { startProgramProxy } from '../clients/svc-run/program-proxy.js'
import { createRunFolder } from '../clients/svc-run/run-folder.js'
import { serviceCalls } from '../clients/svc-run/service-calls.js'
import { checkAddress, collected, type ServiceAccess, serviceAccess } from './service-access.js'

const EXIT_REFUSED = 1
/** This user's folder for the files of a run. */
const RUNS_FOLDER = join(homedir(), '.svc', 'run')
const TAG_BYTES = 9

type RunOptions = ServiceAccess & {
  readonly credential: readonly string[]
  readonly passthrough: readonly string[]
  readonly approvalTimeout?: number
  readonly verbose?: boolean
}

/** Adds `run` to the program. */
export function runCommand(program: Command): void {
  serviceAccess(program.command('run'), ' with vault:read')
    .description('run an unchanged program with vault credentials in its API calls')
    .option('--credential <host=id[,scheme]>', 'the credential for a host', collected, [])
    .option('--passthrough <host>', "let a host through as it is; '*': all others", collected, [])
    .option(
      '--approval-timeout <secs>',
      'how long a call waits for a person to approve it',
      seconds,
    )
    .option('--verbose', 'every call on stderr')
    .argument('<command>', 'the program')
    .argument('[args...]', 'its arguments')
    .passThroughOptions()
    .action(async (command: string, args: string[], options: RunOptions) => {
      const say = (line: string) => void process.stderr.write(`svc run: ${line}\n`)
      try {
        leaveAs(await run(command, args, options, say), say)
      } catch (error) {
        say(reasonOf(error))
        process.exitCode = EXIT_REFUSED
      }
    })
}

async function run(
  command: string,
  args: readonly string[],
  options: RunOptions,
  say: (line: string) => void,
): Promise<ChildEnd> {
  checkAddress('--url', options.url)
  const environment = readEnvironment()
  const random = systemRandom(systemClock)
  const token = await tokenFrom(options, environment)
  const named = options.credential.map(parseNamed)
  const passthrough = options.passthrough.map(passedHost)
  const client = httpClient(options.url)
  const calls = serviceCalls(options.url, token)
  try {
    const choice = await chooseCredentials({ client, token, named, clock: systemClock })
    const authority = await createAuthority(systemClock, random)
    const tell = once(say)
    const trace = options.verbose === true ? say : () => {}
    const proxy = await startProgramProxy({
      authority,
      choice,
      calls,
      passthrough,
      random,
      ...(options.approvalTimeout !== undefined && {
        approvalTimeoutMs: options.approvalTimeout * 1000,
      }),
      warn: tell,
      trace,
    })
    const folder = createRunFolder(
      { parent: RUNS_FOLDER, pid: process.pid, tag: random.token(TAG_BYTES), isAlive },
      bundleOf(environment, authority.certificatePem),
      environment['SYSTEM_WGETRC'],
    )
    trace(`credentials for ${choice.hosts().join(', ') || 'no host'}`)
    try {
      return await runChild({
        command,
        args,
        environment: childEnvironment(environment, {
          proxyUrl: proxy.url,
          ...folder,
          preloadPath: fileURLToPath(
            new URL('../clients/svc-run/node-preload.cjs', import.meta.url),
          ),
          tokenEnv: options.tokenEnv,
        }),
        isInteractive: process.stdin.isTTY === true,
      })
    } finally {
      folder.remove()
      await proxy.close()
    }
  } finally {
    await Promise.all([client.close(), calls.close()])
  }
}

/** Ends with the program's exit code or signal. */
function leaveAs(end: ChildEnd, say: (line: string) => void): void {
  if (end.tag === 'not_started') say(end.detail)
  if (end.tag !== 'killed') {
    process.exitCode = end.code
    return
  }
  process.exitCode = codeOfSignal(end.signal)
  process.kill(process.pid, end.signal)
}

/** Prints each line once, however often a program repeats the call. */
function once(say: (line: string) => void): (line: string) => void {
  const said = new Set<string>()
  return (line) => {
    if (said.size > 1_000) said.clear()
    if (!said.has(line)) say(line)
    said.add(line)
  }
}

function seconds(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text)
  throw new Error(`--approval-timeout must be seconds, not ${text}`)
}

function passedHost(text: string): string {
  const host = text === '*' ? text : normalizeHostname(text)
  if (host === null) throw new Error(`--passthrough must be a host name or *, not ${text}`)
  return host
}

/** The CAs that are trusted already, for hosts that bypass the proxy, and the CA of this run. */
function bundleOf(environment: Environment, own: string): string {
  const { SSL_CERT_FILE: all, NODE_EXTRA_CA_CERTS: extra } = environment
  const known = all === undefined ? rootCertificates.join('\n') : readFileSync(all, 'utf8')
  return [known, extra === undefined ? '' : readFileSync(extra, 'utf8'), own].join('\n')
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
