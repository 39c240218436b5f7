/** `svc init`: from a running service to a tenant with a client, a test login and an invite of its owner. */
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { type HttpClient, httpClient } from '../clients/client/http.js'
import { reasonOf } from '../kernel/text/reasons.js'
import { createWorkspace } from '../clients/client/registration.js'
import { systemClock } from '../kernel/clock.js'
import { withTarget } from './target.js'
import { enrolling, progressOf } from './agent/register.js'
import type { Run } from './agent/run.js'
import { checkAddress } from './service-access.js'
import { host, output, outputFault } from './output.js'

const OWNER_ONLY = 0o600
const DEFAULT_URL = 'http://localhost:8080'
const VALUE = /^([A-Z][A-Z0-9_]*)=(.*)$/gm

type InitOptions = {
  readonly url: string
  readonly organization: string
  readonly redirectUri: readonly string[]
  readonly writeEnv: string
  readonly agentFile?: string
  readonly json?: boolean
}

type Values = Readonly<Record<string, string>>

/** Adds `init` to the program. */
export function initCommand(program: Command): void {
  program
    .command('init')
    .description('create a tenant with a client and a test login, and print what to use')
    .option('--url <url>', 'the running service', DEFAULT_URL)
    .option('--organization <name>', 'name of the organization', 'Acme')
    .option('--redirect-uri <uri...>', 'of the application', ['http://localhost:3000/callback'])
    // Node 20 takes --env-file for itself, also after the name of the script.
    .option('--write-env <file>', 'where the values are kept, with mode 0600', '.env.svc')
    .option(
      '--agent-file <file>',
      'the agent that owns the tenant until a person does (default: next to --write-env)',
    )
    .option('--json', 'as JSON')
    .action(async (options: InitOptions) => {
      try {
        await init(options)
      } catch (error) {
        process.stderr.write(`svc init: ${reasonOf(error)}\n`)
        process.exitCode = 1
      }
    })
}

/** A second run finds the file, checks its client, and creates nothing. */
async function init(options: InitOptions): Promise<void> {
  checkAddress('--url', options.url)
  const client = httpClient(options.url)
  try {
    const known = valuesOf(options.writeEnv)
    const values = known ?? (await created(options))
    await checkClient(client, values, options.writeEnv)
    print(options, values, known === undefined)
  } finally {
    await client.close()
  }
}

async function created(options: InitOptions): Promise<Values> {
  const { url, organization, redirectUri } = options
  const run = runOf(options)
  const fault = outputFault(resolve(options.writeEnv))
  if (fault !== undefined) throw new Error(`--write-env: ${fault}`)
  let text = ''
  const wishes = { name: 'svc init', url, algorithm: 'ed25519' } as const
  await enrolling(run, wishes, async (http, key, keep, issuer) => {
    const progress = progressOf(run)
    const made = await createWorkspace({
      http,
      key,
      name: wishes.name,
      organizationName: organization,
      redirectUris: redirectUri,
      issueOperatorInvite: true,
      ...progress,
    })
    progress.done()
    const fixture = made.body['fixture_end_user'] as Readonly<Record<string, unknown>>
    const invite = made.body['operator_invite'] as Readonly<Record<string, unknown>>
    text = [
      String(made.body['env_block']).trimEnd(),
      `SVC_SIGN_IN_URL=${issuer}/auth/login?tenant_slug=${made.tenantSlug}`,
      `SVC_TEST_USER=${String(fixture['email'])}`,
      `SVC_TEST_PASSWORD=${String(fixture['password'])}`,
      `SVC_OWNER_INVITE=${String(invite['url'])}`,
      '',
    ].join('\n')
    // Before anything else can fail, because the response shows some values only once.
    writeFileSync(options.writeEnv, text, { mode: OWNER_ONLY, flag: 'wx' })
    await keep({
      agent_id: made.agentId,
      home_tenant_id: made.homeTenantId,
      tenant_id: made.tenantId,
    })
  })
  return parsed(text)
}

/** The client gets a token with the values. @throws if it does not. */
async function checkClient(client: HttpClient, values: Values, file: string): Promise<void> {
  const { SVC_CLIENT_ID: id = '', SVC_CLIENT_SECRET: secret = '' } = values
  const { status } = await client.request({
    method: 'POST',
    path: '/oauth/token',
    form: { grant_type: 'client_credentials', client_id: id, client_secret: secret },
  })
  if (status === 200) return
  throw new Error(
    `${file} is of another deployment or outdated: the client got ${status}. Remove it, or choose another --write-env`,
  )
}

function print(options: InitOptions, values: Values, isNew: boolean) {
  const issuer = values['SVC_ISSUER'] ?? ''
  const id = values['SVC_CLIENT_ID'] ?? ''
  const secret = values['SVC_CLIENT_SECRET'] ?? ''
  const curl = `curl -u ${id}:${secret} -d grant_type=client_credentials ${issuer}/oauth/token`
  const found = {
    created: isNew,
    issuer,
    console_url: `${issuer}/console?tenant_id=${values['SVC_TENANT_ID'] ?? ''}`,
    owner_invite_url: values['SVC_OWNER_INVITE'],
    sign_in_url: values['SVC_SIGN_IN_URL'],
    test_user: { email: values['SVC_TEST_USER'], password: values['SVC_TEST_PASSWORD'] },
    client_id: id,
    client_secret: secret,
    curl,
    env_file: resolve(options.writeEnv),
    agent_file: agentFileOf(options),
  }
  if (options.json === true) {
    output(`${JSON.stringify(withTarget(found), null, 2)}\n`)
    return
  }
  const lines: readonly (readonly [string, string | undefined])[] = [
    ['URL', issuer],
    ['administrator', `${found.owner_invite_url} (works once: choose an address and a password)`],
    ['console', found.console_url],
    ['test login', `${found.test_user.email} ${found.test_user.password}`],
    ['sign in at', found.sign_in_url],
    ['client id', id],
    ['client secret', secret],
    ['a token', curl],
    ['kept in', `${found.env_file}, agent in ${found.agent_file}`],
  ]
  output(`${lines.map(([name, value]) => `${name.padEnd(15)}${value}`).join('\n')}\n`)
}

/** A tenant and its agent lie side by side, so that two tenants of one folder do not meet in one agent file. */
function agentFileOf({ writeEnv, agentFile = `${writeEnv}.agent.json` }: InitOptions): string {
  return resolve(agentFile)
}

function runOf(options: InitOptions): Run {
  return {
    baseUrl: () => DEFAULT_URL,
    file: agentFileOf(options),
    json: options.json === true,
    ...host,
    terminal: process.stderr.isTTY === true,
    clock: systemClock,
    signal: new AbortController().signal,
  }
}

function valuesOf(file: string): Values | undefined {
  try {
    return parsed(readFileSync(file, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function parsed(text: string): Values {
  return Object.fromEntries([...text.matchAll(VALUE)].map(([, name, value]) => [name!, value!]))
}
