/**
 * Tells applications that a session of theirs has ended (docs/guides/identity/sign-out.md). The end of a session made the
 * logouts due in its transaction.
 */
import type { Registry } from 'prom-client'
import type { ActorRef } from '../../../runtime/kernel/actor.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { defineWorker } from '../../../runtime/kernel/worker.js'
import {
  claimLogouts,
  type DueLogout,
  endTimedOut,
  nextLogoutMs,
  postponeLogout,
  retryLogout,
  settleLogout,
} from '../../../storage/oauth/logouts.js'
import { LOGOUTS_CHANNEL } from '../../../storage/platform/ends/table.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { catalogued } from '../../domain/events.js'
import { LOGOUT_TOKEN_TYPE } from '../../domain/oauth/logout-tokens.js'
import { UNWOKEN_MS_MAX } from '../../platform/batching/wake-signal.js'
import { counter, histogram } from '../../platform/metrics.js'
import { isFinal, type PostAnswer, type Poster } from '../../platform/outbound-http/poster.js'
import {
  deliverOutgoing,
  LEASE_SECS,
  type OutgoingNeeds,
  type OutgoingWork,
  POSTPONED_SECS,
} from '../../platform/outgoing-queue.js'
import { type SigningKeysProtocol, signingKeys } from '../signing-keys/protocol.js'
import { logoutClaims } from './logout-token.js'
import type { LogoutSettings } from './settings.js'

const PER_APPLICATION_MAX = 8
/** Sessions that may have timed out, looked at in one transaction. */
const LOOKED_AT_MAX = 200
const HEADERS = {
  'content-type': 'application/x-www-form-urlencoded',
  'user-agent': 'svc-logout/1',
  accept: '*/*',
} as const

type LogoutNeeds = OutgoingNeeds & {
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly random: Random
  readonly registry: Registry
  readonly poster: Poster
  readonly issuer: string
  readonly settings: LogoutSettings
}

export const logoutWorker = defineWorker<LogoutNeeds>({
  name: 'logouts',
  asks: { keys: signingKeys },
  run: (needs, lifecycle) => deliverOutgoing(logouts(needs, lifecycle.signal), needs, lifecycle),
})

/** @param stop aborted when the process stops. */
function logouts(needs: LogoutNeeds, stop: AbortSignal): OutgoingWork<DueLogout, PostAnswer> {
  const { database, clock, settings, poster } = needs
  const { attempts, delivered } = logoutMetrics(needs.registry)

  async function record(due: DueLogout, { status, error }: PostAnswer): Promise<void> {
    const done = due.attempts + 1
    const waitSecs = settings.retry_schedule_secs[done]
    if (error !== null && !isFinal(error) && waitSecs !== undefined) {
      await database.tenant(due.tenantId, (tx) => retryLogout(tx, due, waitSecs))
      attempts.inc({ outcome: 'retrying' })
      return
    }
    await database.tenant(due.tenantId, async (tx) => {
      if (!(await settleLogout(tx, due)) || error === null) return
      appendEvents(tx, [undelivered(needs, due, done, status, error)])
    })
    attempts.inc({ outcome: error === null ? 'delivered' : 'undelivered' })
    if (error === null)
      delivered.observe(Math.max(0, clock.now().getTime() - due.endedAt.getTime()) / 1000)
  }

  return {
    name: 'logouts',
    resource: 'logout_tokens',
    channel: LOGOUTS_CHANNEL,
    level: { name: 'application', max: PER_APPLICATION_MAX },
    levelKeyOf: ({ applicationId }) => applicationId,
    pollMs: UNWOKEN_MS_MAX,
    async prepare() {
      let looked: number
      do looked = await database.system((tx) => endTimedOut(tx, clock.now(), LOOKED_AT_MAX))
      while (looked === LOOKED_AT_MAX)
      return false
    },
    claim(tx, room, held) {
      const heldOfApplications = new Map<string, number>()
      for (const { applicationId: id } of held)
        heldOfApplications.set(id, (heldOfApplications.get(id) ?? 0) + 1)
      const more = { perApplicationMax: PER_APPLICATION_MAX, heldOfApplications }
      return claimLogouts(tx, { ...room, ...more }, LEASE_SECS)
    },
    nextMs: nextLogoutMs,
    async deliver(due, signal) {
      const answer = await sent(needs, due, signal)
      return stop.aborted && answer?.status === null ? undefined : answer
    },
    record,
    postpone: (due) =>
      database.tenant(due.tenantId, (tx) => postponeLogout(tx, due, POSTPONED_SECS)),
    close: () => poster.close(),
  }
}

/** @returns what the application answered. Undefined: it gets no logout token any more. */
async function sent(
  { database, clock, keys, random, poster, issuer }: LogoutNeeds,
  due: DueLogout,
  signal: AbortSignal,
): Promise<PostAnswer | undefined> {
  const { tenantId, clientId, uri, subject, sessionId, algorithm } = due
  if (clientId === null || uri === null) {
    await database.tenant(tenantId, (tx) => settleLogout(tx, due))
    return undefined
  }
  const now = clock.now()
  const facts = { issuer, clientId, subject, sessionId, tokenId: random.uuid(), now }
  const claims = JSON.stringify(logoutClaims(facts))
  const signed = await keys.sign({ typ: LOGOUT_TOKEN_TYPE, claims, algorithm })
  if (signed.tag !== 'signed') throw new Error('no signing key is available')
  const body = new URLSearchParams({ logout_token: signed.token }).toString()
  return poster.post(tenantId, uri, { headers: HEADERS, body }, signal)
}

function undelivered(
  { random, clock }: LogoutNeeds,
  { tenantId, sessionId, subject, clientId }: DueLogout,
  attempts: number,
  status: number | null,
  error: string,
) {
  const about = {
    actor: { type: 'service', id: 'logout' },
    resource: { type: 'session', id: sessionId },
    requestId: undefined,
  }
  return {
    id: random.uuid(),
    tenantId,
    occurredAt: clock.now(),
    ...catalogued('session.logout.undelivered', about, {
      client_id: clientId!,
      sub: subject,
      attempts,
      ...(status === null ? {} : { status }),
      error,
    }),
  }
}
function logoutMetrics(registry: Registry) {
  return {
    attempts: counter(
      registry,
      'svc_logout_attempts_total',
      'Attempts to tell applications of the end of a session, by outcome.',
      ['outcome'],
    ),
    delivered: histogram(
      registry,
      'svc_logout_delivery_seconds',
      'Time from the end of a session until the application has answered.',
      [0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 1_000],
    ),
  }
}
