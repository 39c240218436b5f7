/**
 * Writes the events of streams from the audit log, and pushes them (RFC 8935): one event of a stream at a time, so that they
 * arrive in order.
 */
import type { Registry } from 'prom-client'
import type { ActorRef } from '../../../runtime/kernel/actor.js'
import { defineWorker } from '../../../runtime/kernel/worker.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { CAUSES_CHANNEL } from '../../../storage/platform/event-numbers.js'
import { firstSignalEvents, removeSignalEvents } from '../../../storage/webhooks/signal-events.js'
import {
  claimStreams,
  type DueStream,
  nextPushMs,
  releaseStream,
  SIGNALS_CHANNEL,
} from '../../../storage/webhooks/signal-pushes.js'
import { streamAuthorizationContext } from '../../../storage/webhooks/signal-streams.js'
import { withoutCaller } from '../../domain/audit.js'
import { UNWOKEN_MS_MAX } from '../../platform/batching/wake-signal.js'
import { counter } from '../../platform/metrics.js'
import { isFinal, type PostAnswer, type Poster } from '../../platform/outbound-http/poster.js'
import {
  deliverOutgoing,
  LEASE_SECS,
  type OutgoingNeeds,
  type OutgoingWork,
  POSTPONED_SECS,
} from '../../platform/outgoing-queue.js'
import { type SigningKeysProtocol, signingKeys } from '../../oauth/signing-keys/protocol.js'
import { BEGIN, collectSignals, type CollectNeeds } from './collect.js'
import { setClaims, signedSet } from './set.js'
import type { SharedSignalsSettings } from './settings.js'

/** Looks at the audit log before the next pushes. */
const BATCHES_MAX = 10
/** Under load one look finds the records of several commits. */
const SPACING_MS = 50

type SignalsWorkerNeeds = OutgoingNeeds &
  CollectNeeds & {
    readonly keys: ActorRef<SigningKeysProtocol>
    readonly sealer: Pick<Sealer, 'open'>
    readonly registry: Registry
    readonly poster: Poster
    readonly settings: SharedSignalsSettings
  }
/** The event that was pushed, and what the receiver answered. */
type Pushed = PostAnswer & { readonly eventId: string; readonly type: string }

export const signalsWorker = defineWorker<SignalsWorkerNeeds>({
  name: 'signal_events',
  asks: { keys: signingKeys },
  run: (needs, lifecycle) => deliverOutgoing(pushes(needs, lifecycle.signal), needs, lifecycle),
})

/** @param stop aborted when the process stops. */
function pushes(needs: SignalsWorkerNeeds, stop: AbortSignal): OutgoingWork<DueStream, Pushed> {
  const { database, poster } = needs
  const lease = needs.random.uuid()
  const place = { after: BEGIN }
  const { written, attempts } = signalMetrics(needs.registry)
  const release = (due: DueStream, failed: number, waitSecs: number, pushedId?: string) =>
    database.tenant(due.tenantId, async (tx) => {
      if (pushedId !== undefined) await removeSignalEvents(tx, due, [pushedId])
      await releaseStream(tx, due, lease, failed, waitSecs)
    })

  async function record(due: DueStream, pushed: Pushed): Promise<void> {
    const { error, eventId } = pushed
    const failed = due.attempts + 1
    const waitSecs = needs.settings.retry_schedule_secs[failed]
    if (error !== null && !isFinal(error) && waitSecs !== undefined) {
      await release(due, failed, waitSecs)
      attempts.inc({ outcome: 'retrying' })
      return
    }
    if (error !== null) await recordUndelivered(needs, due, pushed, failed)
    await release(due, 0, 0, eventId)
    attempts.inc({ outcome: error === null ? 'delivered' : 'undelivered' })
  }

  return {
    name: 'signals',
    resource: 'signal_pushes',
    channel: SIGNALS_CHANNEL,
    level: { name: 'stream', max: 1 },
    levelKeyOf: ({ id }) => id,
    pollMs: UNWOKEN_MS_MAX,
    preparesAt: { channel: CAUSES_CHANNEL, spacingMs: SPACING_MS },
    async prepare() {
      // Pushes do not wait for a tenant that makes events all the time.
      let isMore = true
      for (let batch = 0; isMore && batch < BATCHES_MAX && !stop.aborted; batch += 1) {
        const collected = await collectSignals(needs, place)
        written.inc(collected.events)
        isMore = collected.isMore
      }
      return isMore
    },
    claim: (tx, room) => claimStreams(tx, lease, room, LEASE_SECS),
    nextMs: nextPushMs,
    async deliver(due, signal) {
      const pushed = await push(needs, due, signal)
      if (pushed === undefined) await release(due, 0, 0)
      return stop.aborted && pushed?.status === null ? undefined : pushed
    },
    record,
    postpone: (due) => release(due, due.attempts, POSTPONED_SECS),
    close: () => poster.close(),
  }
}

/** @returns undefined when no event waits. */
async function push(
  { database, keys, sealer, issuer, poster }: SignalsWorkerNeeds,
  due: DueStream,
  signal: AbortSignal,
): Promise<Pushed | undefined> {
  const { tenantId, id, endpointUrl, authorizationSealed } = due
  const [event] = await database.system((tx) => firstSignalEvents(tx, due, 1))
  if (event === undefined) return undefined
  const body = await signedSet(keys, setClaims(event, issuer, due.receiver), { signal })
  if (body === undefined) throw new Error('no signing key is available')
  const opened =
    authorizationSealed &&
    (await sealer.open(tenantId, streamAuthorizationContext(id), authorizationSealed))
  const headers = {
    'content-type': 'application/secevent+jwt',
    accept: 'application/json',
    'user-agent': 'svc-signals/1',
    ...(opened === null ? {} : { authorization: Buffer.from(opened).toString('latin1') }),
  }
  const answer = await poster.post(tenantId, endpointUrl, { headers, body }, signal)
  return { ...answer, eventId: event.id, type: event.type }
}

/** The receiver refuses the event, or did not take it in any attempt: it goes. */
function recordUndelivered(
  { database, clock, random }: SignalsWorkerNeeds,
  { tenantId, id }: DueStream,
  { status, error, eventId, type }: Pushed,
  attempts: number,
): Promise<void> {
  const record = withoutCaller({
    id: random.uuid(),
    tenantId,
    type: 'signal_stream.undelivered',
    occurredAt: clock.now(),
    resource: { type: 'signal_stream', id },
    data: { jti: eventId, event: type, attempts, error, ...(status === null ? {} : { status }) },
  })
  return database.tenant(tenantId, (tx) => appendAudit(tx, [{ ...record, outcome: 'failure' }]))
}

function signalMetrics(registry: Registry) {
  return {
    written: counter(registry, 'svc_signal_events_total', 'Security events written to streams.'),
    attempts: counter(
      registry,
      'svc_signal_push_attempts_total',
      'Attempts to push security events, by outcome.',
      ['outcome'],
    ),
  }
}
