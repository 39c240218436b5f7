/** Tenants with webhook subscriptions at a receiver, and the receiver's verification. */
import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { receive } from '../../../actors/domain/webhooks/receive.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Received, Receiver } from './receiver.js'
import { sharedService, type TestService } from '../service.js'
import { type Json, tenantAgent } from '../identity/tenant-agent.js'

const random = systemRandom(systemClock)

/** A shared service, the one of `egressHouse()`, that delivers to receivers of `startReceiver()`. It gives up after four attempts. */
export const deliveringService = () => sharedService('egress', { isPair: true })

let paths = 0

/** A new tenant, so that events of other tests do not reach its receivers. */
export async function subscriber({ baseUrl, db }: TestService, receiver: Receiver) {
  const agent = await tenantAgent(baseUrl)
  const { ask, tenantId } = agent

  async function subscribe(change: Json = {}) {
    paths += 1
    const path = `/hook-${paths}`
    const { status, body, text, headers } = await ask('POST', '/api/v1/webhooks', {
      url: receiver.origin + path,
      event_types: ['security.suspicious_activity'],
      ...change,
    })
    if (status !== 201) throw new Error(text)
    const id = String(body['id'])
    const secret = String(change['secret'] ?? body['secret'])
    return { id, path, secret, at: `/api/v1/webhooks/${id}`, body, headers }
  }

  /** Commits an event of the tenant. */
  async function emit(data: Json = {}, type = 'security.suspicious_activity') {
    const event = { id: random.uuid(), tenantId, type, data, occurredAt: new Date() }
    await db.database.tenant(tenantId, (tx) => appendEvents(tx, [event]))
    return event
  }

  async function deliveriesOf(at: string, query = ''): Promise<Json[]> {
    const { body, text } = await ask('GET', `${at}/deliveries${query}`)
    if (!Array.isArray(body)) throw new Error(text)
    return body as Json[]
  }

  async function settled(at: string, count = 1): Promise<Json[]> {
    for (let turn = 0; turn < 600; turn += 1) {
      const found = await deliveriesOf(at)
      const open = found.filter(({ status }) => status === 'pending' || status === 'retrying')
      if (found.length >= count && open.length === 0) return found
      await sleep(50)
    }
    throw new Error('the deliveries do not settle')
  }
  return { ...agent, subscribe, emit, deliveriesOf, settled }
}

const headersOf = ({ headers }: Received) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))

export function judge(request: Received, secret: string) {
  const options = { secrets: [secret], nowSecs: Math.floor(Date.now() / 1000) }
  return receive(headersOf(request), request.body, options)
}

/** Verification as in the Standard Webhooks specification. */
export function standardVerifies({ headers, body }: Received, secret: string) {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signed = Buffer.concat([
    Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`),
    body,
  ])
  const expected = createHmac('sha256', key).update(signed).digest('base64')
  return String(headers['webhook-signature']).split(' ').includes(`v1,${expected}`)
}
