/**
 * `svc webhooks listen`: fetches the events of a tenant and posts each one, signed, to an address
 * that the service itself cannot reach. A subscription sends the same requests. The
 * secret stays the same between runs.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { matchesEvent } from '../../../actors/domain/webhooks/event-filters.js'
import { newWebhookSecret } from '../../../actors/webhooks/subscriptions/rules.js'
import { type HttpClient, httpClient } from '../../clients/client/http.js'
import { loginSource } from '../../clients/client/token-source.js'
import type { Clock } from '../../kernel/clock.js'
import { readEnvironment } from '../../kernel/config/environment.js'
import { systemRandom } from '../../kernel/random.js'
import { postSigned } from './post.js'
import { serviceOption } from '../service-access.js'
import { withTarget } from '../target.js'

const POLL_MS = 1_000
/** A token is renewed this long before it expires. */
const RENEW_SECS = 30
const SECRET_FILE = join(homedir(), '.svc', 'webhook-listen-secret')

export type ListenOptions = {
  readonly url: string
  readonly forwardTo: string
  readonly type: readonly string[]
  readonly after?: string
  readonly tokenFile?: string
  readonly clientId?: string
  readonly clientSecretFile?: string
  readonly secretFile: string
  readonly json?: boolean
}

type ListenNeeds = {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly clock: Clock
  /** Stops the command. */
  readonly signal: AbortSignal
}

type Fetched = {
  readonly items: readonly (Readonly<Record<string, unknown>> & {
    type: string
    sequence: number
  })[]
  readonly next_after: number
}

/** Adds the options of `listen`, which `listen()` below takes. */
export function listenOptions(command: Command): Command {
  return command
    .description('forward the events of a tenant, signed, to an address of this machine')
    .addOption(serviceOption())
    .requiredOption('--forward-to <url>', 'the receiver, http or https')
    .option('--type <type...>', 'names of events, `prefix.*` or `*`', ['*'])
    .option('--after <number>', 'also events after this sequence number; 0 for all stored events')
    .option(
      '--token-file <file>',
      'a file with an access token with webhooks:read; read again for every fetch',
    )
    .option('--client-id <id>', 'or an application with webhooks:read and client_credentials')
    .option('--client-secret-file <file>', 'its secret')
    .option(
      '--secret-file <file>',
      'file with the signing secret; created when missing',
      SECRET_FILE,
    )
    .option('--json', 'print one JSON object per line')
}

/**
 * Runs until the signal. @throws when the first fetch is refused, because later ones would be too.
 */
export async function listen(options: ListenOptions, needs: ListenNeeds): Promise<void> {
  const { out, err, clock, signal } = needs
  const client = httpClient(options.url)
  const tokens = await tokenSource(options, client, clock)
  const secret = stableSecret(options.secretFile, clock)
  const say = (object: Readonly<Record<string, unknown>>, text: string) =>
    out(options.json === true ? `${JSON.stringify(object)}\n` : `${text}\n`)
  try {
    let after = options.after === undefined ? null : Number(options.after)
    if (after !== null && !Number.isSafeInteger(after)) throw new Error('--after must be a number')
    let begun = false
    while (!signal.aborted) {
      try {
        const { items, next_after: next } = await fetchEvents(client, await tokens(), after)
        if (!begun) {
          begun = true
          say(
            withTarget({
              listening: options.forwardTo,
              after: next,
              secret_file: options.secretFile,
            }),
            `forwarding to ${options.forwardTo}; the signing secret is in ${options.secretFile}`,
          )
        }
        for (const { sequence, ...event } of items) {
          if (signal.aborted) return
          if (matchesEvent(options.type, event.type)) {
            const result = await forward(event, secret, options, clock)
            say({ sequence, type: event.type, ...result }, lineOf(sequence, event.type, result))
          }
          after = sequence
        }
        after = next
        if (items.length > 0) continue
      } catch (error) {
        // A running command waits for a service that restarts. A refused first fetch ends it.
        if (!begun) throw error
        err(`svc: ${error instanceof Error ? error.message : String(error)}\n`)
      }
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined)
    }
  } finally {
    await client.close()
  }
}

async function fetchEvents(
  client: HttpClient,
  token: string,
  after: number | null,
): Promise<Fetched> {
  const path = `/api/v1/events${after === null ? '' : `?after=${after}`}`
  const { status, body } = await client.request({ method: 'GET', path, token })
  if (status === 200) return body as Fetched
  const { detail, title } = (body ?? {}) as Readonly<Record<string, unknown>>
  throw new Error(`the service answered ${status}: ${String(detail ?? title ?? 'no reason given')}`)
}

type Forwarded = { readonly status: number | null; readonly error?: string }

async function forward(
  event: Readonly<Record<string, unknown>> & { type: string },
  secret: string,
  { forwardTo }: ListenOptions,
  clock: Clock,
): Promise<Forwarded> {
  try {
    const { status } = await postSigned(forwardTo, event.type, JSON.stringify(event), secret, clock)
    return { status }
  } catch (error) {
    return { status: null, error: error instanceof Error ? error.message : String(error) }
  }
}

function lineOf(sequence: number, type: string, { status, error }: Forwarded): string {
  return `${sequence} ${type} -> ${status ?? error}`
}

/** A token from its file, from the token endpoint, or of `svc login`, renewed before it expires. */
async function tokenSource(
  { url, tokenFile, clientId, clientSecretFile }: ListenOptions,
  client: HttpClient,
  clock: Clock,
): Promise<() => Promise<string>> {
  if (tokenFile !== undefined) return async () => readFileSync(tokenFile, 'utf8').trim()
  if (clientId === undefined || clientSecretFile === undefined) {
    const login = clientId === undefined ? await loginSource(url, readEnvironment()) : undefined
    if (login !== undefined) return login
    throw new Error('name --token-file, or --client-id and --client-secret-file, or run svc login')
  }
  let known: { token: string; untilSecs: number } | undefined
  return async () => {
    if (known !== undefined && clock.nowSecs() < known.untilSecs) return known.token
    const { status, body } = await client.request({
      method: 'POST',
      path: '/oauth/token',
      form: {
        grant_type: 'client_credentials',
        scope: 'webhooks:read',
        client_id: clientId,
        client_secret: readFileSync(clientSecretFile, 'utf8').trim(),
      },
    })
    const answer = (body ?? {}) as Readonly<Record<string, unknown>>
    if (status !== 200) {
      throw new Error(
        `no token: ${String(answer['error_description'] ?? answer['error'] ?? status)}`,
      )
    }
    const token = String(answer['access_token'])
    known = { token, untilSecs: clock.nowSecs() + Number(answer['expires_in']) - RENEW_SECS }
    return token
  }
}

/** The secret in the file. Without a file it is created, readable only by its owner. */
function stableSecret(path: string, clock: Clock): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const secret = newWebhookSecret(systemRandom(clock))
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, `${secret}\n`, { mode: 0o600, flag: 'wx' })
  return secret
}
