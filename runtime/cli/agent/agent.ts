/**
 * `svc agent`: an agent's registration, login and tokens from the command line, with the client of
 * runtime/clients/client. A file stores the identity. Only the result is printed on stdout, as text or
 * JSON.
 */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { reasonOf } from '../../kernel/text/reasons.js'
import { ServiceRefusal } from '../../clients/client/refusal.js'
import { readEnvironment } from '../../kernel/config/environment.js'
import { systemClock } from '../../kernel/clock.js'
import { delegate } from './delegate.js'
import { type NewAgentWishes, register, type WorkspaceWishes, workspace } from './register.js'
import type { AgentCommandHost, Run } from './run.js'
import { logInAgain, printToken, type TokenWishes, whoAmI } from './tokens.js'
import { formerly } from '../service-access.js'
import { withTarget } from '../target.js'
import { host } from '../output.js'

type SharedOptions = { agentFile?: string; json?: boolean }

const interrupted = new AbortController()

export function agentCommand(program: Command, host: AgentCommandHost = processHost()): void {
  const agent = program
    .command('agent')
    .description('act as an agent: register, log in, request delegations, get tokens for scripts')

  const add = <Options extends SharedOptions>(
    parent: Command,
    name: string,
    description: string,
    run: (options: Options, given: Run) => Promise<void>,
  ) =>
    formerly(parent.command(name), 'file', 'agent-file')
      .configureOutput({
        writeErr: (text) => (asksForJson(program) ? undefined : host.err(text)),
        outputError: (text, write) =>
          asksForJson(program) ? host.err(failureJson(new Error(usageFault(text)))) : write(text),
      })
      .description(description)
      .option('--agent-file <path>', `the identity file (default:  ${host.file})`)
      .option('--json', 'print JSON, also for errors')
      .action(async (options: Options) => {
        const { agentFile: file = host.file, json = false } = options
        try {
          await run(options, { ...host, file: resolve(file), json })
        } catch (error) {
          host.err(json ? failureJson(error) : failureText(error))
          host.exitWith(1)
        }
      })

  newAgent(
    add<NewAgentWishes & SharedOptions>(agent, 'register', 'register in a tenant', (wishes, run) =>
      register(run, wishes),
    ),
  )
    .option('--tenant-id <uuid>', 'the home tenant; default: the control plane')
    .option('--direct', 'without proof of work, where the tenant allows it')

  const workspaces = agent.command('workspace').description('manage workspaces')
  newAgent(
    add<WorkspaceWishes & SharedOptions>(
      workspaces,
      'create',
      'register, with an organization, a sandbox, an application and a test user',
      (wishes, run) => workspace(run, wishes),
    ),
  )
    .requiredOption('--organization <name>', 'name of the organization')
    .option('--redirect-uri <uri...>', 'of the application', [])
    .option('--framework <name>', 'the framework of the sample', 'generic')
    .option('--operator-invite', 'also print a link that makes a user the owner')

  tenantAndScope(
    add<TokenWishes & SharedOptions>(
      agent,
      'login',
      'log in with a signed challenge',
      (wishes, run) => logInAgain(run, wishes),
    ),
  )
  add(agent, 'whoami', "show the agent's record at the service", (_, run) => whoAmI(run))
  tenantAndScope(
    add<TokenWishes & SharedOptions>(agent, 'token', 'print an access token', (wishes, run) =>
      printToken(run, wishes),
    ),
  ).option('--delegation [id]', 'a delegated token, of the latest or of the named delegation')
  add<{ scope: string; audience?: string; tenantId?: string } & SharedOptions>(
    agent,
    'delegate',
    'request a delegation from a user and wait for the decision',
    (wishes, run) => {
      endOnInterrupt()
      return delegate(run, wishes)
    },
  )
    .requiredOption('--scope <scopes>', 'requested scope, separated by spaces')
    .option('--audience <audience>', 'audience: an application of the tenant; default: the service')
    .option('--purpose <text>', 'what the agent wants to do, shown to the user')
    .option('--tenant-id <uuid>', "the user's tenant; default: the workspace or the home tenant")
}

function newAgent(command: Command): Command {
  return formerly(command, 'base-url', 'url')
    .option('--name <name>', 'display name of the agent', 'svc agent')
    .option('--url <url>', 'address of the service; default: from the configuration')
    .addOption(
      new Option('--algorithm <algorithm>', 'algorithm of the key')
        .choices(['ed25519', 'es256'])
        .default('ed25519'),
    )
}

function tenantAndScope(command: Command): Command {
  return command
    .option('--tenant-id <uuid>', 'tenant of the token; default: the workspace or the home tenant')
    .option('--scope <scopes>', 'separated by spaces; default: all that the agent may have')
}

/** Whether JSON output was requested, also when the rest of the line is invalid. */
function asksForJson(program: Command): boolean {
  const { rawArgs = [] } = program as Command & { readonly rawArgs?: readonly string[] }
  return rawArgs.includes('--json')
}

function usageFault(text: string): string {
  return text.trim().replace(/^error: /, '')
}

function failureText(error: unknown): string {
  const lines = [`svc agent: ${wordsOf(error)}\n`]
  if (error instanceof ServiceRefusal) {
    if (error.hint !== null) lines.push(`  ${error.hint}\n`)
    if (error.retryAfterSecs !== null) lines.push(`  Wait ${error.retryAfterSecs} s.\n`)
    if (error.requestId !== null) lines.push(`  request ${error.requestId}\n`)
  }
  return lines.join('')
}

function failureJson(error: unknown): string {
  const about =
    error instanceof ServiceRefusal
      ? {
          error: error.code,
          status: error.status,
          detail: error.detail,
          hint: error.hint,
          retry_after: error.retryAfterSecs,
          request_id: error.requestId,
        }
      : { error: 'failed', detail: wordsOf(error) }
  return `${JSON.stringify(withTarget(about))}\n`
}

function wordsOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ECONNREFUSED') return 'the service does not answer at its address'
  return error instanceof Error && error.name === 'AbortError' ? 'interrupted' : reasonOf(error)
}

function processHost(): AgentCommandHost {
  return {
    baseUrl: configuredBaseUrl,
    file: join(homedir(), '.svc', 'agent.json'),
    ...host,
    terminal: process.stderr.isTTY === true,
    clock: systemClock,
    signal: interrupted.signal,
  }
}

async function configuredBaseUrl(): Promise<string> {
  // Loads every setting of the service, which takes longer than the rest of the command.
  const { loadSettings } = await import('../../process/configuration/load-settings.js')
  const input = { environment: readEnvironment(), cwd: process.cwd(), servesPlane: false }
  const loaded = loadSettings(input)
  if (loaded.tag === 'refused') {
    throw new Error('the local configuration is invalid: name the service with --url')
  }
  return loaded.settings.oidc.issuer_url
}

/** The first Ctrl-C cancels waiting, so that locks and drafts are removed. */
function endOnInterrupt(): void {
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort())
}
