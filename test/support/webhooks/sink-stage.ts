/** A process of the async plane that sends events to a broker, and the events that it sends. */
import type { ExecutionContext } from 'ava'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { appendEvents, eventsAfter } from '../../../storage/platform/outbox.js'
import { sinkBacklog } from '../../../storage/webhooks/event-sinks.js'
import { svc } from '../../flows/vault/command.js'
import { sql } from '../storage/sql.js'
import { freePort, TEST_DEFAULTS } from '../service.js'
import { METRICS_TOKEN, metric } from '../service/watch.js'
import { freshDatabase } from '../storage/database.js'
import { testKms } from '../storage/kms.js'

/** The type of the events that `write` writes. */
export const TYPE = 'security.suspicious_activity'
const TENANTS = 3
const random = systemRandom(systemClock)

/** @param sink its name, and the settings of the process as environment variables. */
export async function sinkStage(
  t: ExecutionContext,
  sink: { readonly name: string; readonly environment: Readonly<Record<string, string>> },
) {
  const { url, database } = await freshDatabase(t)
  const kms = await testKms()
  t.teardown(() => kms.end())
  const tenants = Array.from({ length: TENANTS }, () => random.uuid())
  let written = 0
  let at = ''
  let worker: ReturnType<typeof svc> | undefined
  const call = async (path: string, init: RequestInit) => {
    const answer = await fetch(`${at}${path}`, init)
    return { status: answer.status, text: await answer.text() }
  }
  const backlog = async () => (await database.system((tx) => sinkBacklog(tx, sink.name))).events
  return {
    database,
    tenants,
    backlog,
    call,
    /** Starts the process, after `kill` another one. */
    async start() {
      const port = await freePort()
      at = `http://127.0.0.1:${port}`
      worker = svc(t, {
        environment: {
          ...TEST_DEFAULTS,
          ...kms.environment,
          DATABASE_URL: url,
          SVC_RUNTIME_PLANE: 'async',
          SVC_SERVER__PORT: String(port),
          SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
          ...sink.environment,
        },
      })
      await worker.ready()
    },
    async kill() {
      worker!.child.kill('SIGKILL')
      await worker!.ended()
    },
    registered: async () =>
      (await sql(database)`select from event_sinks where name = ${sink.name}`).length === 1,
    /** Writes events of the tenants in turn. */
    async write(count: number) {
      for (const end = written + count; written < end; written += 1) {
        const tenantId = tenants[written % TENANTS]!
        const event = { id: random.uuid(), tenantId, occurredAt: new Date() }
        await database.tenant(tenantId, (tx) => {
          appendEvents(tx, [{ ...event, type: TYPE, data: { at: written, resource: null } }])
        })
      }
    },
    async caughtUp() {
      for (const tenantId of tenants)
        await database.tenant(tenantId, (tx) => eventsAfter(tx, tenantId, 0, 1))
      return (await backlog()) === 0
    },
    lag: () => metric({ call } as never, 'svc_event_sink_lag_seconds', { sink: sink.name }),
  }
}
