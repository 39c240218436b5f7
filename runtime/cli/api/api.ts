/** `svc api`: every operation of a service by its name, from the OpenAPI document of the service itself. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { httpClient, type HttpClient } from '../../clients/client/http.js'
import { reasonOf } from '../../kernel/text/reasons.js'
import { loginSource, tokenFrom, type TokenOptions } from '../../clients/client/token-source.js'
import { readEnvironment } from '../../kernel/config/environment.js'
import { withTarget } from '../target.js'
import { checkAddress, collected, serviceAccess, serviceOption } from '../service-access.js'
import { bodyOfFields, callOf, operationNamed, operationsOf, type Operation } from './operations.js'
import { output } from '../output.js'

/** The request was not sent, or the service did not answer. */
const EXIT_FAILED = 1
/** The service answered with a status from 400. The same as for curl --fail. */
const EXIT_REFUSED = 22
const DOCUMENT = '/openapi.json'

/** Options of every command that calls an operation. */
export type CallAccess = TokenOptions & { readonly url: string; readonly json?: boolean }
type ListOptions = CallAccess & { readonly tag?: string }
type CallOptions = CallAccess & {
  readonly param: readonly string[]
  readonly field: readonly string[]
  readonly body?: string
}
type Asked = CallOptions & {
  /** The operation. */
  readonly name: string
  /** Values of the parameters of the path, in its order. */
  readonly ids?: readonly string[]
  /** Parameters if the operation has one of that name, members of the body otherwise. */
  readonly pairs?: readonly string[]
}
type Answer = Awaited<ReturnType<HttpClient['request']>>

/** Adds `api` with its sub-commands to the program. */
export function apiCommand(program: Command): void {
  const api = program.command('api').description('call any operation of the HTTP API by its name')
  api
    .command('list')
    .description('list the operations that the OpenAPI document of the service describes')
    .addOption(serviceOption())
    .option('--tag <tag>', 'only operations with this tag')
    .option('--json', 'as JSON')
    .action((options: ListOptions) => guarded('api', () => list(options)))
  serviceAccess(api.command('call'))
    .argument('<operation>', 'an operationId, for example listApplications')
    .description('call an operation and print its answer')
    .option('--param <name=value>', 'a path, query or header parameter, repeatable', collected, [])
    .option('--field <name=value>', 'a member of the body: a.b=c, repeatable', collected, [])
    .option('--body <json>', 'the body; @file reads it from a file, @- from stdin')
    .option('-i, --include', 'print the status and the header fields first')
    .option('--json', 'print status, headers and body as one JSON document')
    .action((name: string, options: CallOptions & { readonly include?: boolean }) =>
      guarded('api', () => call({ ...options, name }, answerText(options.include === true))),
    )
}

/** Runs a command that ends with an exit code. */
export async function guarded(name: string, work: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await work()
  } catch (error) {
    process.stderr.write(`svc ${name}: ${reasonOf(error)}\n`)
    process.exitCode = EXIT_FAILED
  }
}

async function list({ url, tag, json = false }: ListOptions): Promise<number> {
  return withService(url, async (client) => {
    const all = await operations(client)
    const shown = all.filter(({ tags }) => tag === undefined || tags.includes(tag))
    if (json) {
      const rows = shown.map(({ id, method, path, summary, tags }) => ({
        operation_id: id,
        method,
        path,
        summary,
        tags,
      }))
      print(JSON.stringify(withTarget({ operations: rows }), null, 2))
      return 0
    }
    const width = Math.max(0, ...shown.map(({ id }) => id.length))
    for (const { id, method, path, summary } of shown)
      print(`${id.padEnd(width)}  ${method.padEnd(6)} ${path}  ${summary}`)
    return 0
  })
}

/**
 * Calls an operation and prints its answer: with `--json` as a document, otherwise as `text` writes it.
 * @returns the exit code. @throws if nothing was sent, or nothing came back.
 */
export async function call(
  { url, json = false, tokenFile, tokenEnv, name, ids = [], pairs = [], ...given }: Asked,
  text: (answer: Answer, operation: Operation) => string,
): Promise<number> {
  checkAddress('--url', url)
  const environment = readEnvironment()
  // Public operations need no token.
  const source =
    tokenFile === undefined && tokenEnv === undefined
      ? await loginSource(url, environment)
      : await tokenFrom({ tokenFile, tokenEnv, url }, environment)
  const token = await source?.()
  const whole = given.body === undefined ? undefined : jsonOf(given.body)
  return withService(url, async (client) => {
    const operation = operationNamed(await operations(client), name)
    const isParameter = (pair: string) =>
      operation.parameters.some((each) => pair.startsWith(`${each.name}=`))
    const body = bodyOfFields(
      [...given.field, ...pairs.filter((pair) => !isParameter(pair))],
      // An operation whose members are all optional takes an empty document.
      whole ?? (operation.bodyTypes[0] === 'application/json' ? {} : undefined),
    )
    const values = parametersOf([
      ...pathValues(operation, ids),
      ...given.param,
      ...pairs.filter(isParameter),
    ])
    const { path, headers, ...content } = callOf(operation, values, body)
    const { method } = operation
    const answer = await client.request({ method, path, headers, token, ...content })
    const { status, headers: fields, body: answered } = answer
    if (json)
      print(JSON.stringify(withTarget({ status, headers: fields, body: answered }), null, 2))
    else {
      const shown = text(answer, operation)
      if (shown !== '') print(shown)
    }
    if (answer.status < 400) return 0
    process.stderr.write(`svc api: ${operation.id} answered ${answer.status}\n`)
    return EXIT_REFUSED
  })
}

/** The values of the path by the names of its parameters. @throws if there are more. */
function pathValues({ id, path }: Operation, ids: readonly string[]): readonly string[] {
  const names = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name!)
  if (ids.length > names.length)
    throw new Error(`${id} takes ${names.join(', ') || 'no ids'}, not ${ids.join(' ')}`)
  return ids.map((value, at) => `${names[at]}=${value}`)
}

const answerText = (isWhole: boolean) => (answer: Answer) => {
  const { status, headers, body } = answer
  const head = Object.entries(headers).map(([field, value]) => `${field}: ${value}`)
  const text = typeof body === 'string' ? body : JSON.stringify(body, null, 2)
  return isWhole ? [status, ...head, '', ...(text === '' ? [] : [text])].join('\n') : text
}

async function withService(url: string, work: (client: HttpClient) => Promise<number>) {
  checkAddress('--url', url)
  const client = httpClient(url)
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

async function operations(client: HttpClient): Promise<readonly Operation[]> {
  const { status, body } = await client.request({ method: 'GET', path: DOCUMENT })
  if (status !== 200) throw new Error(`GET ${DOCUMENT} answered ${status}`)
  return operationsOf(body)
}

function parametersOf(options: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const values = new Map<string, string[]>()
  for (const option of options) {
    const at = option.indexOf('=')
    if (at < 1) throw new Error(`--param must be NAME=VALUE, not ${option}`)
    const name = option.slice(0, at)
    values.set(name, [...(values.get(name) ?? []), option.slice(at + 1)])
  }
  return values
}

/** @throws if it is not JSON. */
function jsonOf(text: string): unknown {
  const source = text === '@-' ? 0 : text.startsWith('@') ? text.slice(1) : null
  const body = source === null ? text : readFileSync(source, 'utf8')
  try {
    return JSON.parse(body) as unknown
  } catch (error) {
    throw new Error(`the body is not JSON: ${(error as Error).message}`, { cause: error })
  }
}

function print(line: string): void {
  output(`${line}\n`)
}
