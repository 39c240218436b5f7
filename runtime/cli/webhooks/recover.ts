/** `svc webhooks recover`: sends again what a receiver missed since a time (docs/guides/webhooks/webhooks.md). */
import type { Command } from 'commander'
import { type HttpClient, httpClient } from '../../clients/client/http.js'
import { tokenFrom, type TokenOptions } from '../../clients/client/token-source.js'
import { readEnvironment } from '../../kernel/config/environment.js'
import type { Clock } from '../../kernel/clock.js'
import { withTarget } from '../target.js'
import { checkAddress, serviceAccess } from '../service-access.js'

const UNIT_SECS: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400 }

export type RecoverOptions = TokenOptions & {
  readonly url: string
  readonly since: string
  readonly id?: string
  readonly json?: boolean
}

type Recovered = {
  readonly id: string
  readonly url: string
  replayed: number
  added: number
}

/** Adds the options of `recover`, which `recover()` below takes. */
export function recoverOptions(command: Command): Command {
  return serviceAccess(command, ' with webhooks:manage')
    .description('deliver again what failed or was missed since a time')
    .requiredOption('--since <time>', 'a time such as 2026-01-31T12:00:00Z, or an age: 30m, 6h, 2d')
    .option('--id <id>', 'a subscription; default: every active one of the tenant')
    .option('--json', 'as JSON')
}

/** Asks until nothing is left. @throws when the service refuses. */
export async function recover(
  options: RecoverOptions,
  { out, clock }: { out: (text: string) => void; clock: Clock },
): Promise<void> {
  checkAddress('--url', options.url)
  const since = timeOf(options.since, clock).toISOString()
  const token = await (await tokenFrom(options, readEnvironment()))()
  const client = httpClient(options.url)
  try {
    const call = (method: 'GET' | 'POST', path: string, json?: unknown) =>
      answered(client, { method, path, json, token })
    const rows: Recovered[] = []
    for (const { id, url } of await subscriptions(options.id, call)) {
      const row: Recovered = { id, url, replayed: 0, added: 0 }
      rows.push(row)
      for (let more = true; more; ) {
        const body = await call('POST', `/api/v1/webhooks/${encodeURIComponent(id)}/recover`, {
          since,
        })
        row.replayed += Number(body['replayed'])
        row.added += Number(body['added'])
        more = body['more'] === true
      }
    }
    if (options.json === true) {
      out(`${JSON.stringify(withTarget({ since, subscriptions: rows }), null, 2)}\n`)
      return
    }
    for (const { id, url, replayed, added } of rows)
      out(`${id} ${url}: ${replayed} replayed, ${added} added\n`)
  } finally {
    await client.close()
  }
}

type Body = Readonly<Record<string, unknown>>
type Call = (method: 'GET' | 'POST', path: string, json?: unknown) => Promise<Body>

async function subscriptions(
  id: string | undefined,
  call: Call,
): Promise<readonly { id: string; url: string }[]> {
  if (id !== undefined) {
    const { url } = await call('GET', `/api/v1/webhooks/${encodeURIComponent(id)}`)
    return [{ id, url: String(url) }]
  }
  // A tenant has fewer subscriptions than a page has rows, unless the deployment raised its limit.
  const rows = (await call('GET', '/api/v1/webhooks?limit=200')) as unknown as readonly Body[]
  return rows
    .filter(({ active }) => active === true)
    .map((row) => ({ id: String(row['id']), url: String(row['url']) }))
}

async function answered(
  client: HttpClient,
  request: Parameters<HttpClient['request']>[0],
): Promise<Body> {
  const { status, body } = await client.request(request)
  if (status < 400) return body as Body
  const { detail, title } = (body ?? {}) as Body
  throw new Error(`the service answered ${status}: ${String(detail ?? title ?? 'no reason given')}`)
}

/** @throws if it is neither a time nor an age. */
function timeOf(text: string, clock: Clock): Date {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  if (count !== undefined)
    return new Date(clock.now().getTime() - Number(count) * UNIT_SECS[unit]! * 1000)
  const time = /^\d{4}-\d{2}-\d{2}T/.test(text) ? new Date(text) : new Date(Number.NaN)
  if (Number.isNaN(time.getTime()))
    throw new Error(
      `--since must be a time such as 2026-01-31T12:00:00Z or an age such as 6h, not ${text}`,
    )
  return time
}
