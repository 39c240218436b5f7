/** `svc login` and `svc logout`: the sign-in of a person for the commands that take a token (docs/reference/commands.md). */
import type { Command } from 'commander'
import { httpClient } from '../clients/client/http.js'
import {
  askForLogin,
  awaitLogin,
  endLogin,
  loginFile,
  type StoredLogin,
  storedLogin,
} from '../clients/client/person-login.js'
import { reasonOf } from '../kernel/text/reasons.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { output } from './output.js'
import { resultText } from './target.js'
import { checkAddress, serviceOption } from './service-access.js'

const EXIT_FAILED = 1

type LoginOptions = {
  readonly url: string
  readonly clientId?: string
  readonly scope?: string
  readonly json?: boolean
}

/** Adds `login` to the program. */
export function loginCommand(program: Command): void {
  program
    .command('login')
    .description('sign in with a browser, for the commands that take a token')
    .requiredOption('--url <url>', 'the service')
    .option(
      '--client-id <id>',
      'a public application with the device grant; default: the application of the previous login',
    )
    .option('--scope <scopes>', 'separated by spaces; default: all of the application')
    .option('--json', 'as JSON')
    .action((options: LoginOptions) => guarded('login', () => logIn(options)))
}

/** Adds `logout` to the program. */
export function logoutCommand(program: Command): void {
  program
    .command('logout')
    .description('revoke and forget the tokens of svc login')
    .addOption(serviceOption())
    .option('--json', 'as JSON')
    .action((options: LoginOptions) => guarded('logout', () => logOut(options)))
}

async function logIn({ url, clientId, scope, json = false }: LoginOptions): Promise<void> {
  checkAddress('--url', url)
  const file = loginFile(readEnvironment())
  const before = await storedLogin(file, url)
  const id = clientId ?? before?.client_id
  if (id === undefined) throw new Error('name --client-id: an application with the device grant')
  const interrupted = new AbortController()
  process.once('SIGINT', () => interrupted.abort(new Error('interrupted')))
  const http = httpClient(url)
  try {
    const request = await askForLogin(http, id, scope)
    // The result alone is on standard output.
    process.stderr.write(
      `Open ${request.verificationUri} and enter the code ${request.userCode}\n` +
        `or open ${request.verificationUriComplete}\n`,
    )
    const login = await awaitLogin({ http, clientId: id, request, file }, interrupted.signal)
    const text = `Signed in at ${login.origin}: ${login.scope}`
    output(`${resultText(json, about(login, file), text)}\n`)
    if (login.refresh_token === null)
      process.stderr.write(
        'svc login: it ends with the access token. Allow offline_access to renew it\n',
      )
  } finally {
    await http.close()
  }
}

const about = (
  { origin, client_id, scope, expires_at, refresh_token }: StoredLogin,
  file: string,
) => ({
  origin,
  client_id,
  scope,
  expires_at: new Date(expires_at * 1000).toISOString(),
  renewed: refresh_token !== null,
  file,
})

async function logOut({ url, json = false }: LoginOptions): Promise<void> {
  checkAddress('--url', url)
  const { origin } = new URL(url)
  const ended = await endLogin(loginFile(readEnvironment()), url)
  if (ended === undefined) throw new Error(`there is no login at ${origin}`)
  output(`${resultText(json, { origin, ...ended }, `Signed out at ${origin}`)}\n`)
  if (!ended.revoked) {
    process.stderr.write(
      'svc logout: the service did not revoke the tokens. They end when they expire\n',
    )
    process.exitCode = EXIT_FAILED
  }
}

async function guarded(name: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    process.stderr.write(`svc ${name}: ${reasonOf(error)}\n`)
    process.exitCode = EXIT_FAILED
  }
}
