/**
 * `svc webhooks`: for whoever writes a receiver. `trigger` sends it a signed example of an event,
 * `verify` says what is wrong with a delivery it got. Neither needs a running service.
 */
import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { request } from 'undici'
import { receive } from '../../actors/deliveries/receive.js'
import { USER_AGENT } from '../../actors/deliveries/sender.js'
import { createSigner } from '../../actors/deliveries/signer.js'
import { EVENT_TYPES, type EventType } from '../../actors/domain/events.js'
import { eventDocument } from '../../gateway/event-documents.js'
import { type Clock, systemClock } from '../kernel/clock.js'
import { systemRandom } from '../kernel/random.js'

const TIMEOUT_MS = 15_000
const MAX_AGE_SECS = 300
const EXIT_REFUSED = 1

export type WebhooksCommandNeeds = {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly exitWith: (code: number) => void
  readonly clock: Clock
}

const DEFAULT_NEEDS: WebhooksCommandNeeds = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  exitWith: (code) => {
    process.exitCode = code
  },
  clock: systemClock,
}

type TriggerOptions = { to: string; type: EventType; secretFile: string }
type VerifyOptions = { header: string[]; body: string; secretFile: string; now?: string }

export function webhooksCommand(program: Command, needs = DEFAULT_NEEDS): void {
  const { out, err, exitWith } = needs
  const guarded = async (work: () => Promise<boolean> | boolean) => {
    try {
      exitWith((await work()) ? 0 : EXIT_REFUSED)
    } catch (error) {
      err(`svc: ${error instanceof Error ? error.message : String(error)}\n`)
      exitWith(EXIT_REFUSED)
    }
  }
  const secret = () =>
    new Option('--secret-file <file>', 'a file with the secret, in one line').makeOptionMandatory()
  const webhooks = program.command('webhooks').description('help for writing a webhook receiver')

  webhooks
    .command('trigger')
    .description('send a receiver a signed example of an event')
    .requiredOption('--to <url>', 'the receiver, http or https')
    .addOption(new Option('--type <type>').choices(EVENT_TYPES).default('webhook.test'))
    .addOption(secret())
    .action((options: TriggerOptions) => guarded(() => trigger(options, needs)))

  webhooks
    .command('verify')
    .description('judge a delivery as a receiver should')
    .requiredOption('--body <file>', 'the body, byte for byte')
    .option('--header <header...>', 'the headers as received, as "name: value"', [])
    .option('--now <seconds>', 'Unix time to judge its age by; default now')
    .addOption(secret())
    .action((options: VerifyOptions) =>
      guarded(() => {
        const verdict = verify(options, needs.clock)
        out(`${JSON.stringify(verdict)}\n`)
        return verdict.tag === 'genuine'
      }),
    )
}

async function trigger(
  { to, type, secretFile }: TriggerOptions,
  { out, clock }: WebhooksCommandNeeds,
): Promise<boolean> {
  const random = systemRandom(clock)
  const now = clock.now()
  const fresh = { event_id: random.uuid(), timestamp: now.toISOString() }
  const body = JSON.stringify({ ...eventDocument(type).example, ...fresh })
  const deliveryId = random.uuid()
  const signed = createSigner().sign({
    secret: secretOf(secretFile),
    previousSecret: null,
    timestampSecs: Math.floor(now.getTime() / 1000),
    maxAgeSecs: MAX_AGE_SECS,
    deliveryId,
    eventType: type,
    payload: Buffer.from(body, 'utf8'),
  })
  if (signed.tag === 'refused') throw new Error(`the ${signed.field} cannot be used for signing`)
  const answer = await request(to, {
    method: 'POST',
    headers: { ...signed.headers, 'content-type': 'application/json', 'user-agent': USER_AGENT },
    body,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  })
  await answer.body.dump()
  out(`${answer.statusCode} to ${type}, delivery ${deliveryId}\n`)
  return answer.statusCode >= 200 && answer.statusCode < 300
}

function verify({ header, body, secretFile, now }: VerifyOptions, clock: Clock) {
  const headers = Object.fromEntries(
    header.map((line) => {
      const at = line.indexOf(':')
      if (at < 1) throw new Error(`a header is "name: value", not ${JSON.stringify(line)}`)
      return [line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()]
    }),
  )
  const nowSecs = now === undefined ? clock.nowSecs() : Number(now)
  if (!Number.isSafeInteger(nowSecs)) throw new Error('--now is a Unix time in seconds')
  return receive(headers, readFileSync(body), { secrets: [secretOf(secretFile)], nowSecs })
}

/** A file, because arguments are seen by everybody on the machine. */
function secretOf(path: string): string {
  return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
}
