/**
 * The deployment that a command speaks to, and where the command read that. `announceTarget` prints it once, for every
 * command, as one line on standard error. Commands with JSON output add it as `target` (docs/reference/commands.md).
 */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { onlyOrigin } from '../clients/client/person-login.js'
import { readEnvironment } from '../kernel/config/environment.js'
import type { LoadedSettings } from '../process/configuration/load-settings.js'

interface Target {
  /** The address of the service. Null for a command that speaks to no deployment. */
  readonly deployment: string | null
  /** The option, variable, file or default that names it. */
  readonly from: string
  /** The address of the database, or the data directory of the embedded one. For commands that open it. */
  readonly database?: string | undefined
  readonly database_from?: string | undefined
}

/** Commands that read named files only, and commands of the kms. They speak to no deployment. */
const WITHOUT_DEPLOYMENT: ReadonlySet<string> = new Set([
  'audit verify',
  'completion',
  'config example',
  'config reference',
  'kms serve',
  'kms keygen',
  'kms rotate',
  'webhooks trigger',
  'webhooks verify',
])
/** Commands that act as the agent of an identity file, whose file names the service. */
const OF_IDENTITY: ReadonlySet<string> = new Set([
  'agent login',
  'agent whoami',
  'agent token',
  'agent delegate',
])
/** Commands that need `--url` only for what they fetch. */
const OF_HOST: ReadonlySet<string> = new Set(['ssh host-setup'])
const NO_DEPLOYMENT: Target = { deployment: null, from: 'the command uses named files only' }

let announced: Target | undefined

/** Finds the target of a command and prints it. Call it before the command runs. */
export async function announceTarget(
  command: Command,
  err: (text: string) => void = (text) => void process.stderr.write(text),
): Promise<void> {
  announced = await targetOf(command)
  if (announced === undefined) return
  // Agents read standard error as JSON too: a failure has the target as a member.
  if (pathOf(command).startsWith('agent ') && command.opts()['json'] === true) return
  err(`svc: ${targetLine(announced)}\n`)
}

/** The value of a command's JSON output, with the line of this process as `target`. */
export function withTarget<T extends object>(value: T): T | (T & { readonly target: string }) {
  return announced === undefined ? value : { target: targetLine(announced), ...value }
}

/** The result of a command: a text, or with `--json` a document with its target. */
export function resultText(json: boolean, value: object, text: string): string {
  return json ? JSON.stringify(withTarget(value), null, 2) : text
}

export function targetLine({ deployment, from, database, database_from }: Target): string {
  if (deployment === null) return `no deployment: ${from}`
  const data = database === undefined ? '' : `, ${database} (from ${database_from})`
  return `deployment ${deployment} (from ${from})${data}`
}

/** Undefined when the configuration is refused: the command reports that itself. */
async function targetOf(command: Command): Promise<Target | undefined> {
  const path = pathOf(command)
  if (WITHOUT_DEPLOYMENT.has(path)) return NO_DEPLOYMENT
  const options = command.opts<Readonly<Record<string, unknown>>>()
  const { url } = options
  if (typeof url === 'string') {
    const isDefault = command.getOptionValueSource('url') === 'default'
    const origin = isDefault ? onlyOrigin(readEnvironment()) : undefined
    const byDefault = url === origin ? 'svc login' : 'default'
    return { deployment: withoutUser(url), from: isDefault ? byDefault : '--url' }
  }
  if (OF_HOST.has(path)) return NO_DEPLOYMENT
  if (OF_IDENTITY.has(path)) return targetOfIdentity(options['agentFile'])
  // Loads every setting of the service, which the commands above do not need.
  const { loadSettings } = await import('../process/configuration/load-settings.js')
  const loaded = loadSettings({
    environment: readEnvironment(),
    cwd: process.cwd(),
    uid: process.getuid?.(),
    servesPlane: false,
  })
  return loaded.tag === 'loaded' ? targetOfSettings(loaded) : undefined
}

/** The target of commands that use the configuration of this machine. */
export async function targetOfSettings({
  settings,
  sources,
  dataDir,
}: Pick<LoadedSettings, 'settings' | 'sources' | 'dataDir'>): Promise<Target> {
  const { printedSource } = await import('../kernel/config/print.js')
  const { databaseAddress } = await import('../../storage/platform/unavailable.js')
  // The line says `from` itself.
  const from = (key: string) =>
    printedSource(sources.get(key) ?? { kind: 'default' }).replace(/^from /, '')
  const { url } = settings.database
  const isNamed = readEnvironment()['SVC_DATA_DIR'] !== undefined
  return {
    deployment: settings.oidc.issuer_url,
    from: from('oidc.issuer_url'),
    ...(url === undefined
      ? {
          database: `data directory ${dataDir}`,
          database_from: isNamed ? 'SVC_DATA_DIR' : 'default',
        }
      : { database: `database ${databaseAddress(url)}`, database_from: from('database.url') }),
  }
}

function targetOfIdentity(file: unknown): Target {
  const path = typeof file === 'string' ? resolve(file) : join(homedir(), '.svc', 'agent.json')
  try {
    const { base_url: url } = JSON.parse(readFileSync(path, 'utf8')) as { base_url?: unknown }
    if (typeof url === 'string') return { deployment: withoutUser(url), from: path }
  } catch {
    // The command reports a missing or invalid file.
  }
  return { deployment: null, from: `${path} names none` }
}

/** The names of a command and its parents, without the program: `agent token`. */
export function pathOf(command: Command): string {
  const names: string[] = []
  for (let at: Command | null = command; at?.parent != null; at = at.parent)
    names.unshift(at.name())
  return names.join(' ')
}

/** Hides a user name and a password in a URL. */
function withoutUser(text: string): string {
  if (!URL.canParse(text)) return text
  const url = new URL(text)
  if (url.username === '' && url.password === '') return text
  url.username = ''
  url.password = ''
  return url.href
}
