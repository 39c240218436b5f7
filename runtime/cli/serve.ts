/** `svc serve`: starts the service, prints its address, and stops it on a signal. */
import { type Command, Option } from 'commander'
import { readEnvironment } from '../kernel/config/environment.js'
import { printedFailures } from '../kernel/config/print.js'
import { createLogger, type LogLevel } from '../kernel/log.js'
import { beginYoung } from '../kernel/v8-flags.js'
import { EXIT_CONFIGURATION } from '../process/configuration/load-settings.js'
import type { Settings } from '../process/configuration/settings.js'
import { withEgressBeside } from '../process/egress-address.js'
import { type Service, StartRefused, startService } from '../process/startup.js'
import type { TerminalLog } from './terminal-log.js'

const EXIT_START = 1
/** The address of a service without settings (svc.example.toml). */
const DEFAULT_BASE_URL = 'http://localhost:8080'
/** The terminal sends SIGHUP when it closes. With TLS it is the sign for renewed certificates instead. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const LOG_LEVELS: readonly LogLevel[] = [
  'trace',
  'debug',
  'info',
  'warn',
  'error',
  'fatal',
  'silent',
]

export function serveCommand(program: Command): void {
  program
    .command('serve')
    .description('start the service; stop it with Ctrl-C or SIGTERM')
    .addOption(new Option('--log-level <level>', 'log level').choices(LOG_LEVELS).default('info'))
    .option(
      '--egress-beside',
      'in a local run, serve the egress proxy at the next port too, if it is free (npm start)',
    )
    .action(async ({ logLevel, egressBeside = false }: ServeOptions) => {
      process.exitCode = await serve(logLevel, egressBeside)
    })
}

type ServeOptions = { readonly logLevel: LogLevel; readonly egressBeside?: boolean }

/** Runs until a signal. Returns the exit code. */
async function serve(level: LogLevel, egressBeside: boolean): Promise<number> {
  beginYoung()
  const terminal = process.stdout.isTTY ? await openTerminalLog() : undefined
  const log = createLogger({ level, destination: terminal })
  const stopping = new AbortController()
  let hasCertificate = false
  const told = new Promise<void>((resolve) => {
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        // Every listener looks at its files within this time anyway.
        if (signal === 'SIGHUP' && hasCertificate)
          return log.info('SIGHUP: a renewed certificate is used within 5 s')
        if (signal === 'SIGHUP') process.once('exit', endOfHangUp)
        stopping.abort()
        resolve()
      })
    }
  })
  let service: Service
  let off: readonly string[] = []
  try {
    const place = { environment: readEnvironment(), cwd: process.cwd(), uid: process.getuid?.() }
    service = await startService({
      ...place,
      ...(egressBeside ? { environment: await withEgressBeside(place, log) } : {}),
      log,
      onSettings: (settings) => {
        off = featuresOff(settings)
        hasCertificate = settings.server.transport !== 'plain_http'
        if (settings.security.production) terminal?.keepJson()
      },
      signal: stopping.signal,
      isWarm: true,
    })
  } catch (error) {
    if (stopping.signal.aborted) return 0
    if (error instanceof StartRefused) {
      const { failures } = error
      process.stderr.write(failures ? `${printedFailures(failures)}\n` : `svc: ${error.message}\n`)
      return failures ? EXIT_CONFIGURATION : EXIT_START
    }
    log.fatal({ err: error }, 'the start failed')
    process.stderr.write(`svc: the start failed: ${messageOf(error)}\n`)
    return EXIT_START
  }
  process.stdout.write(banner(service, off))
  await told
  return (await service.stop()) ? 0 : EXIT_START
}

/** Loads the formatter only where it is used. */
async function openTerminalLog(): Promise<TerminalLog> {
  const { terminalLog } = await import('./terminal-log.js')
  // A terminal that was closed fails every write; the stop that follows must not fail with it.
  process.stdout.on('error', () => undefined)
  return terminalLog(process.stdout)
}

/**
 * Ends the process as the signal would. At an ordinary exit Node resets the terminal, and aborts
 * when the terminal is gone.
 */
function endOfHangUp(): void {
  process.removeAllListeners('SIGHUP')
  process.kill(process.pid, 'SIGHUP')
}

/** The sections with `enabled` that are off. */
function featuresOff(settings: Settings): readonly string[] {
  return Object.entries(settings).flatMap(([name, section]) => {
    const { enabled } = (section ?? {}) as { readonly enabled?: unknown }
    return enabled === false ? [name] : []
  })
}

function banner(
  { baseUrl, egressUrl, docsUrl, mailUrl, controlPlaneTenantId, plane, dataDir, isLocal }: Service,
  off: readonly string[],
): string {
  const words = `${off.length} features, each on with SVC_NAME__ENABLED=true: ${off.join(', ')}`
  const rows: [string, string | undefined][] = [
    ['svc is ready', plane === 'all' ? undefined : `(plane ${plane})`],
    ['  base URL', baseUrl],
    ['  egress', egressUrl === baseUrl ? undefined : egressUrl],
    ['  docs', docsUrl],
    ['  discovery', `${baseUrl}/.well-known/openid-configuration`],
    ['  mail', mailUrl],
    ['  control-plane tenant', controlPlaneTenantId],
    ['  data', dataDir],
    ['  off', isLocal && off.length > 0 ? words : undefined],
    ['  next', isLocal ? 'in a second terminal, in this folder:' : undefined],
  ]
  const lines = rows
    .filter(([title, value], index) => index === 0 || (title !== '' && value !== undefined))
    .map(([title, value]) => (value === undefined ? title : `${title.padEnd(24)}${value}`))
  return `\n${[...lines, ...(isLocal ? nextSteps(baseUrl) : [])].join('\n')}\n\n`
}

/** Commands that work as they are printed, at any address. Tests run them. */
function nextSteps(baseUrl: string): string[] {
  const isDefault = baseUrl === DEFAULT_BASE_URL
  const tour = isDefault ? 'npm run tour' : `npm run tour -- --url ${baseUrl}`
  const at = isDefault ? '' : ` --url ${baseUrl}`
  const steps: [string, string][] = [
    ['what this deployment can do', `curl ${baseUrl}/api/v1/capabilities`],
    ['a tenant with a client and a test login', `npm run --silent svc -- init${at}`],
    ['a tour as an agent and as a user', tour],
  ]
  return steps.flatMap(([words, command]) => [`    # ${words}`, `    ${command}`])
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
