/**
 * `svc webhooks`: the subscriptions of a tenant, and tools for developers of a receiver. `listen` forwards a tenant's
 * events to it, `recover` sends again what it missed, `trigger` sends it a signed example, and `verify` checks a delivery
 * that it received.
 */
import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { SECRET_BYTES_MIN } from '../../../actors/domain/webhooks/signature.js'
import { EVENT_TYPES, type EventType } from '../../../actors/domain/events.js'
import { eventDocument } from '../../../gateway/event-documents.js'
import { type Clock, systemClock } from '../../kernel/clock.js'
import { systemRandom } from '../../kernel/random.js'
import { resourceCommands } from '../api/resources.js'
import { localSigner, UNSEALED } from './local-signer.js'
import { listen, type ListenOptions, listenOptions } from './listen.js'
import { postSigned } from './post.js'
import { recover, type RecoverOptions, recoverOptions } from './recover.js'
import { resultText, withTarget } from '../target.js'
import { type CommandHost, host } from '../output.js'

const EXIT_REFUSED = 1

type WebhooksCommandNeeds = CommandHost & {
  readonly clock: Clock
  /** Stops a command that runs until it is stopped. */
  readonly signal: AbortSignal
}

const interrupted = new AbortController()

const DEFAULT_NEEDS: WebhooksCommandNeeds = {
  ...host,
  clock: systemClock,
  signal: interrupted.signal,
}

type TriggerOptions = { to: string; type: EventType; secretFile: string; json?: boolean }
type VerifyOptions = { header: string[]; body: string; secretFile: string; now?: string }

export function webhooksCommand(program: Command, needs = DEFAULT_NEEDS): void {
  const { out, err, exitWith } = needs
  const guarded = async (work: () => Promise<boolean>) => {
    try {
      exitWith((await work()) ? 0 : EXIT_REFUSED)
    } catch (error) {
      err(`svc: ${error instanceof Error ? error.message : String(error)}\n`)
      exitWith(EXIT_REFUSED)
    }
  }
  const secret = () =>
    new Option('--secret-file <file>', 'a file with the secret, in one line').makeOptionMandatory()
  const webhooks = resourceCommands(program, 'webhooks')

  listenOptions(webhooks.command('listen')).action((options: ListenOptions) =>
    guarded(async () => {
      for (const name of ['SIGINT', 'SIGTERM'] as const)
        process.once(name, () => interrupted.abort())
      await listen(options, needs)
      return true
    }),
  )

  recoverOptions(webhooks.command('recover')).action((options: RecoverOptions) =>
    guarded(async () => {
      await recover(options, needs)
      return true
    }),
  )

  webhooks
    .command('trigger')
    .description('send a receiver a signed example of an event')
    .requiredOption('--to <url>', 'the receiver, http or https')
    .addOption(new Option('--type <type>').choices(EVENT_TYPES).default('webhook.test'))
    .addOption(secret())
    .option('--json', 'as JSON')
    .action((options: TriggerOptions) => guarded(() => trigger(options, needs)))

  webhooks
    .command('verify')
    .description('verify a delivery like a receiver')
    .requiredOption('--body <file>', 'the body, byte for byte')
    .option('--header <header...>', 'the headers as received, as "name: value"', [])
    .option('--now <seconds>', 'Unix time for the check of its age; default: now')
    .addOption(secret())
    .option('--json', 'as JSON, as without it')
    .action((options: VerifyOptions) =>
      guarded(async () => {
        const verdict = await verify(options, needs.clock)
        out(`${JSON.stringify(withTarget(verdict))}\n`)
        return verdict.tag === 'genuine'
      }),
    )
}

async function trigger(
  { to, type, secretFile, json = false }: TriggerOptions,
  { out, clock }: WebhooksCommandNeeds,
): Promise<boolean> {
  const fresh = { event_id: systemRandom(clock).uuid(), timestamp: clock.now().toISOString() }
  const body = JSON.stringify({ ...eventDocument(type).example, ...fresh })
  const { status, deliveryId } = await postSigned(to, type, body, secretOf(secretFile), clock)
  const sent = { status, type, delivery_id: deliveryId }
  out(`${resultText(json, sent, `${status} to ${type}, delivery ${deliveryId}`)}\n`)
  return status >= 200 && status < 300
}

function verify({ header, body, secretFile, now }: VerifyOptions, clock: Clock) {
  const headers = Object.fromEntries(
    header.map((line) => {
      const at = line.indexOf(':')
      if (at < 1) throw new Error(`a header must be "name: value", not ${JSON.stringify(line)}`)
      return [line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()]
    }),
  )
  const nowSecs = now === undefined ? clock.nowSecs() : Number(now)
  if (!Number.isSafeInteger(nowSecs)) throw new Error('--now must be a Unix time in seconds')
  const secrets = [Buffer.from(secretOf(secretFile), 'utf8')]
  const received = { headers, body: readFileSync(body), secrets, nowSecs }
  return localSigner().verifyDelivery({ ...UNSEALED, ...received })
}

/** A file, because every user of the machine can see command-line arguments. */
function secretOf(path: string): string {
  const secret = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  if (Buffer.byteLength(secret) >= SECRET_BYTES_MIN) return secret
  throw new Error(`the secret in ${path} has fewer than ${SECRET_BYTES_MIN} bytes`)
}
