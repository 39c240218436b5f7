/** `svc apply`: makes the resources of a tenant match a file. docs/guides/operations/apply.md. */
import type { Command } from 'commander'
import { httpClient } from '../../clients/client/http.js'
import { reasonOf } from '../../kernel/text/reasons.js'
import { tokenFrom, type TokenOptions } from '../../clients/client/token-source.js'
import { readEnvironment } from '../../kernel/config/environment.js'
import { withTarget } from '../target.js'
import { checkAddress, serviceAccess } from '../service-access.js'
import { InvalidFile, readDocument } from './document.js'
import { ApplyFailed, execute, keyOf } from './execute.js'
import { type Action, type Change, planOf } from './plan.js'
import { SecretStore } from './secrets.js'
import { output } from '../output.js'

const EXIT_FAILED = 1
/** The same as for terraform plan -detailed-exitcode. */
const EXIT_CHANGES = 2
const VALUE_CHARS_MAX = 120
const SECRET_MEMBERS: ReadonlySet<string> = new Set(['client_type', 'token_endpoint_auth_method'])

type ApplyOptions = TokenOptions & {
  readonly url: string
  readonly file: string
  readonly operatorTokenFile?: string
  readonly operatorTokenEnv?: string
  readonly plan?: boolean
  readonly dryRun?: boolean
  readonly prune?: boolean
  readonly detailedExitcode?: boolean
  readonly secretsTo?: string
  readonly json?: boolean
}

/** Adds `apply` to the program. */
export function applyCommand(program: Command): void {
  serviceAccess(program.command('apply'), ' of the tenant')
    .description('create, change and delete the resources of a tenant as a file describes them')
    .requiredOption('-f, --file <file>', 'the resources, in TOML or JSON; - is standard input')
    .option('--operator-token-file <file>', 'a file with a token for organization_policies')
    .option('--operator-token-env <name>', 'or the environment variable with it')
    .option('--plan', 'show what would change, and change nothing')
    .option('--dry-run', 'the same as --plan')
    .option(
      '--prune',
      'also delete resources that the file does not have, of the kinds in the file',
    )
    .option('--detailed-exitcode', `with --plan: exit with ${EXIT_CHANGES} if there are changes`)
    .option('--secrets-to <file>', 'a file of mode 0600 for the secrets of new resources')
    .option('--json', 'as JSON')
    .action(async (options: ApplyOptions) => {
      try {
        process.exitCode = await apply(options)
      } catch (error) {
        report(error, options.json === true)
        process.exitCode = EXIT_FAILED
      }
    })
}

async function apply(options: ApplyOptions): Promise<number> {
  const { url, file, prune = false, json = false, secretsTo } = options
  checkAddress('--url', url)
  const environment = readEnvironment()
  const document = readDocument(file, environment)
  const tenant = await (await tokenFrom(options, environment))()
  const { operatorTokenFile, operatorTokenEnv } = options
  const control =
    operatorTokenFile === undefined && operatorTokenEnv === undefined
      ? tenant
      : await (
          await tokenFrom(
            { tokenFile: operatorTokenFile, tokenEnv: operatorTokenEnv, url },
            environment,
          )
        )()
  const tokens = { tenant, control }
  const client = httpClient(url)
  try {
    const changes = await planOf(document, { client, tokens, prune })
    const isPlan = options.plan === true || options.dryRun === true
    const isChange = changes.some(({ action }) => action !== 'unchanged')
    if (isPlan) {
      print(json ? asJson('plan', changes) : asText(changes, 'Plan'))
      return isChange && options.detailedExitcode === true ? EXIT_CHANGES : 0
    }
    if (!json && secretsTo === undefined && changes.some(makesSecret))
      throw new Error(
        'a new resource has a secret, which is shown once: add --secrets-to FILE or --json',
      )
    const secrets = new SecretStore(changes.some(makesSecret) ? secretsTo : undefined)
    const ids = await execute(changes, { client, tokens, secrets })
    const done = changes.map((change) => ({
      ...change,
      id: change.id ?? ids.get(keyOf(change)) ?? null,
    }))
    const shown = secretsTo === undefined ? secrets.issued : []
    print(json ? asJson('apply', done, shown) : asText(done, 'Applied'))
    return 0
  } finally {
    await client.close()
  }
}

/** True if the service may return a secret for the change. */
function makesSecret({ kind, action, wanted, members }: Change): boolean {
  if (wanted === undefined || action === 'unchanged') return false
  if (kind.section === 'webhooks') return action === 'create' && wanted.secret === undefined
  if (kind.section !== 'applications') return false
  const { client_type: type, token_endpoint_auth_method: method } = wanted.members
  const hasNone = method === 'none' || method === 'private_key_jwt' || method === 'spiffe_jwt'
  if (type === 'public' || hasNone) return false
  // A client that had no secret gets one when it begins to authenticate with one.
  return action === 'create' || members.some(({ member }) => SECRET_MEMBERS.has(member))
}

const SIGNS: Readonly<Record<Action, string>> = {
  create: '+',
  update: '~',
  delete: '-',
  unchanged: ' ',
}
const PAST: Readonly<Record<Action, string>> = {
  create: 'created',
  update: 'updated',
  delete: 'deleted',
  unchanged: 'unchanged',
}

function asText(changes: readonly Change[], heading: 'Plan' | 'Applied'): string {
  const lines = changes.flatMap(({ action, kind, name, members }) => [
    `${SIGNS[action]} ${action.padEnd(9)}  ${kind.section}${name === '' ? '' : ` ${JSON.stringify(name)}`}`,
    ...(action === 'update'
      ? members.map(
          ({ member, before, after }) =>
            `    ${member}: ${valueText(before)} -> ${valueText(after)}`,
        )
      : []),
  ])
  const count = counts(changes)
  const words = (Object.keys(SIGNS) as Action[]).map((action) =>
    heading === 'Plan' && action !== 'unchanged'
      ? `${count[action]} to ${action}`
      : `${count[action]} ${PAST[action]}`,
  )
  return [...lines, `${heading}: ${words.join(', ')}.`].join('\n')
}

function asJson(
  mode: 'plan' | 'apply',
  changes: readonly Change[],
  secrets: SecretStore['issued'] = [],
): string {
  const rows = changes.map(({ action, kind, name, id, members }) => ({
    action,
    kind: kind.section,
    name,
    ...(id === null || id === '' ? {} : { id }),
    members: action === 'update' ? members : [],
  }))
  return JSON.stringify(
    withTarget({
      mode,
      changes: rows,
      summary: counts(changes),
      ...(mode === 'plan' ? {} : { secrets }),
    }),
    null,
    2,
  )
}

function counts(changes: readonly Change[]): Record<Action, number> {
  const count = { create: 0, update: 0, delete: 0, unchanged: 0 }
  for (const { action } of changes) count[action] += 1
  return count
}

function valueText(value: unknown): string {
  const text = JSON.stringify(value ?? null)
  return text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text
}

function report(error: unknown, json: boolean): void {
  const faults = error instanceof InvalidFile ? error.faults : [reasonOf(error)]
  const left = error instanceof ApplyFailed ? error.left : []
  if (json) {
    print(JSON.stringify(withTarget({ error: 'failed', faults, left }), null, 2))
    return
  }
  for (const fault of faults) process.stderr.write(`svc apply: ${fault}\n`)
  if (error instanceof ApplyFailed && left.length === 0)
    process.stderr.write('svc apply: nothing is changed\n')
  for (const each of left) process.stderr.write(`svc apply: ${each}\n`)
}

function print(text: string): void {
  output(`${text}\n`)
}
