/**
 * Removes what has run out, a batch at a time, on connections that requests can spare. Any number
 * of processes may do it side by side: rows that another one holds are passed over.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Counter, type Registry } from 'prom-client'
import { type ActorRef, defineActor } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { deleteEndedAgentChallenges } from '../../../storage/agents/agent-challenges.js'
import { removeExpiredBrowserSessions } from '../../../storage/identity/browser-sessions.js'
import { sweepCardEvents } from '../../../storage/commerce/card-payments.js'
import { sweepCheckouts } from '../../../storage/commerce/checkout-sessions.js'
import { sweepCoordination } from '../../../storage/platform/coordination/postgres.js'
import type { OpenDatabase } from '../../../storage/platform/database.js'
import { removeEndedDelegationRequests } from '../../../storage/agents/delegation-requests.js'
import { removeEndedDelegations } from '../../../storage/agents/delegations.js'
import { sweepDeliveries } from '../../../storage/webhooks/deliveries.js'
import { sweepIdempotencyKeys } from '../../../storage/platform/idempotency.js'
import { sweepMailShares } from '../../../storage/operations/mail-shares.js'
import { sweepMail } from '../../../storage/operations/outgoing-mail.js'
import { removeExpiredTickets } from '../../../storage/operations/mail-tickets.js'
import { sweepEvents } from '../../../storage/platform/outbox.js'
import { removeExpiredPasskeyCeremonies } from '../../../storage/identity/passkey-ceremonies.js'
import { deleteEndedPowChallenges } from '../../../storage/agents/pow-challenges.js'
import { wipeOldAnswers } from '../../../storage/oauth/refresh-tokens.js'
import { removeEndedCodes } from '../../../storage/oauth/authorization-codes.js'
import { removeEndedBackchannelRequests } from '../../../storage/oauth/backchannel-requests.js'
import { removeEndedAuthorizationRequests } from '../../../storage/oauth/authorization-requests.js'
import { removeEndedRegistrationTokens } from '../../../storage/oauth/client-registration.js'
import { removeEndedRevocations } from '../../../storage/oauth/revoked-tokens.js'
import { removeExpiredSignInFlows } from '../../../storage/identity/sign-in-flows.js'
import { removeExpiredUpstreamSignIns } from '../../../storage/identity/upstream-sign-ins.js'
import { removeExpiredSessions } from '../../../storage/oauth/token-sessions.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { sweepX402Verifications } from '../../../storage/commerce/x402-payments.js'
import { sweepDeletedWebhooks, wipePreviousSecrets } from '../../../storage/webhooks/webhooks.js'
import { removeExpiredCertificates } from '../../../storage/vault/ssh-certificates.js'
import { signingKeys, type SigningKeysProtocol } from '../../oauth/signing-keys/protocol.js'
import { type UpkeepProtocol, upkeep } from './protocol.js'

const ROUND_MS = 60_000
const FIRST_ROUND_MS = 5_000
const BATCH_ROWS = 1_000
/** What is left after this many batches waits for the next round. */
const BATCHES_PER_ROUND = 50
/** A challenge that ended is still recognised for this long. */
const CHALLENGE_RETENTION_SECS = 3_600
/** A session stays longer than any access token of it could be alive. */
const SESSION_RETENTION_MS = 2 * 86_400_000
/** Sealed refresh answers may be repeated for 10 s; clocks of processes differ a little. */
const ANSWER_RETENTION_MS = 30_000
/**
 * A pushed request is used up together with the one that continues it while its person signs in and
 * decides, for an hour and more; and who polls late is still told that the code ran out.
 */
const REQUEST_RETENTION_MS = 2 * 3_600_000
/** A code that comes a second time within a day still revokes what the first use gave. */
const CODE_RETENTION_MS = 86_400_000
/** How long an ended delegation can still be looked up; the audit log keeps it for good. */
const DELEGATION_RETENTION_MS = 90 * 86_400_000
/** What deliveries can be made of again. */
const EVENT_RETENTION_MS = 30 * 86_400_000
const DAY_MS = 86_400_000
/** What became of a letter can be looked up for a week. */
const MAIL_RETENTION_MS = 7 * DAY_MS
/** The card provider repeats a webhook for three days. */
const CARD_EVENT_RETENTION_MS = 30 * DAY_MS
/** A proof whose verification came to nothing may be shown again for a while. */
const PROOF_RETENTION_MS = 3_600_000

/** Settings of [webhooks] and [commerce], in days. */
export type Retention = {
  readonly delivery_retention_days: number
  readonly checkout_retention_days: number
}

export type UpkeepNeeds = {
  readonly database: Pick<OpenDatabase, 'system' | 'single'>
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly clock: Clock
  readonly registry: Registry
  /** Seals anew what stands under data keys that were replaced; how many values it was. */
  readonly reseal: (signal: AbortSignal) => Promise<number>
  /** Tells of the ends of calls through egress whose process has died; how many it was. */
  readonly settle: (signal: AbortSignal) => Promise<number>
  readonly retention: Retention
  /** False (`deployment.background_tasks_enabled`): sweeps only when asked. */
  readonly byTimer: boolean
}

type Sweep = (tx: Transaction, now: Date, retention: Retention) => Promise<number>

const ago = (now: Date, ms: number) => new Date(now.getTime() - ms)
const daysAgo = (now: Date, days: number) => ago(now, days * DAY_MS)

/** What is swept inside of a transaction that crosses tenants: time does not know tenants. */
const SWEEPS: Readonly<Record<string, Sweep>> = {
  pow_challenges: (tx) => deleteEndedPowChallenges(tx, CHALLENGE_RETENTION_SECS, BATCH_ROWS),
  agent_challenges: (tx) => deleteEndedAgentChallenges(tx, CHALLENGE_RETENTION_SECS, BATCH_ROWS),
  refresh_answers: (tx, now) => wipeOldAnswers(tx, ago(now, ANSWER_RETENTION_MS), BATCH_ROWS),
  sessions: (tx, now) => removeExpiredSessions(tx, ago(now, SESSION_RETENTION_MS), BATCH_ROWS),
  authorization_requests: (tx, now) =>
    removeEndedAuthorizationRequests(tx, ago(now, REQUEST_RETENTION_MS), BATCH_ROWS),
  authorization_codes: (tx, now) => removeEndedCodes(tx, ago(now, CODE_RETENTION_MS), BATCH_ROWS),
  backchannel_requests: (tx, now) =>
    removeEndedBackchannelRequests(tx, ago(now, REQUEST_RETENTION_MS), BATCH_ROWS),
  delegation_requests: (tx, now) =>
    removeEndedDelegationRequests(tx, ago(now, CODE_RETENTION_MS), BATCH_ROWS),
  delegations: (tx, now) =>
    removeEndedDelegations(tx, ago(now, DELEGATION_RETENTION_MS), BATCH_ROWS),
  registration_tokens: (tx, now) =>
    removeEndedRegistrationTokens(tx, ago(now, ANSWER_RETENTION_MS), BATCH_ROWS),
  revoked_tokens: (tx, now) =>
    removeEndedRevocations(tx, ago(now, ANSWER_RETENTION_MS), BATCH_ROWS),
  browser_sessions: (tx, now) =>
    removeExpiredBrowserSessions(tx, ago(now, SESSION_RETENTION_MS), BATCH_ROWS),
  sign_in_flows: (tx, now) => removeExpiredSignInFlows(tx, ago(now, DAY_MS), BATCH_ROWS),
  outgoing_mail: (tx, now) => sweepMail(tx, ago(now, MAIL_RETENTION_MS), BATCH_ROWS),
  mail_shares: (tx, now) => sweepMailShares(tx, ago(now, DAY_MS), BATCH_ROWS),
  mail_tickets: (tx, now) => removeExpiredTickets(tx, ago(now, DAY_MS), BATCH_ROWS),
  passkey_ceremonies: (tx, now) => removeExpiredPasskeyCeremonies(tx, now, BATCH_ROWS),
  upstream_sign_ins: (tx, now) => removeExpiredUpstreamSignIns(tx, now, BATCH_ROWS),
  ssh_certificates: (tx, now) =>
    removeExpiredCertificates(tx, ago(now, ANSWER_RETENTION_MS), BATCH_ROWS),
  idempotency_keys: (tx) => sweepIdempotencyKeys(tx, BATCH_ROWS),
  webhook_deliveries: (tx, now, { delivery_retention_days: days }) =>
    sweepDeliveries(tx, daysAgo(now, days), BATCH_ROWS),
  webhook_secrets: (tx) => wipePreviousSecrets(tx, BATCH_ROWS),
  webhooks: (tx, now, { delivery_retention_days: days }) =>
    sweepDeletedWebhooks(tx, daysAgo(now, days), BATCH_ROWS),
  checkouts: (tx, now, { checkout_retention_days: days }) =>
    sweepCheckouts(tx, daysAgo(now, days), BATCH_ROWS),
  card_events: (tx, now) => sweepCardEvents(tx, ago(now, CARD_EVENT_RETENTION_MS), BATCH_ROWS),
  x402_verifications: (tx, now) =>
    sweepX402Verifications(tx, ago(now, PROOF_RETENTION_MS), BATCH_ROWS),
  events: (tx, now) => sweepEvents(tx, ago(now, EVENT_RETENTION_MS), BATCH_ROWS),
}

export const upkeepActor = defineActor<UpkeepProtocol, UpkeepNeeds>({
  address: upkeep,
  asks: { keys: signingKeys },
  mailbox: { capacity: 4, inflightMax: 1 },
  lane: { sweep: () => 'round' },
  supervision: { onFailure: 'resume' },
  create: (needs, lifecycle) => {
    const { database, keys, clock, registry, retention, byTimer } = needs
    const removedTotal = removedCounter(registry)
    const resealedTotal = resealedCounter(registry)
    const lostTotal = lostCounter(registry)
    let running: Promise<Record<string, number>> | undefined

    async function exhaust(batch: () => Promise<number>): Promise<number> {
      let total = 0
      for (let count = 0; count < BATCHES_PER_ROUND && !lifecycle.signal.aborted; count += 1) {
        const removed = await batch()
        total += removed
        if (removed < BATCH_ROWS) break
      }
      return total
    }

    async function round(): Promise<Record<string, number>> {
      const removed: Record<string, number> = {}
      for (const [kind, sweep] of Object.entries(SWEEPS)) {
        removed[kind] = await exhaust(() =>
          database.system((tx) => sweep(tx, clock.now(), retention), {
            pool: 'background',
            signal: lifecycle.signal,
          }),
        )
      }
      removed['coordination'] = await exhaust(() => sweepCoordination(database, BATCH_ROWS))
      for (const [kind, count] of Object.entries(removed)) removedTotal.inc({ kind }, count)
      return removed
    }

    /** The timer and a question at the same time share one round. */
    function shared(): Promise<Record<string, number>> {
      running ??= round().finally(() => {
        running = undefined
      })
      return running
    }

    async function settle(): Promise<void> {
      const lost = await needs.settle(lifecycle.signal)
      lostTotal.inc(lost)
      if (lost > 0)
        lifecycle.log.warn({ calls: lost }, 'calls through egress ended with their process')
    }

    /** False when it failed: what else is to be kept up does not wait for it. */
    async function done(work: string, run: () => Promise<unknown>): Promise<boolean> {
      const loop = lifecycle.loop(work)
      try {
        await run()
        loop.succeeded()
        return true
      } catch (error) {
        loop.failed()
        if (!lifecycle.signal.aborted)
          lifecycle.log.warn({ err: error, work }, 'a round of upkeep failed')
        return false
      }
    }

    async function keepUp(): Promise<void> {
      let pauseMs = FIRST_ROUND_MS
      let wasAway = false
      while (!lifecycle.signal.aborted) {
        await sleep(pauseMs, undefined, { signal: lifecycle.signal, ref: false }).catch(
          () => undefined,
        )
        if (lifecycle.signal.aborted) return
        pauseMs = ROUND_MS
        const isThere = await done('sweeps', shared)
        // Behind an outage, ends that waited for the database are told by those who know them.
        if (isThere && !wasAway) await done('lost calls', settle)
        wasAway = !isThere
        await done('signing keys', () => keys.ask('maintain', null, { signal: lifecycle.signal }))
        await done('sealed values', async () =>
          resealedTotal.inc(await needs.reseal(lifecycle.signal)),
        )
      }
    }
    if (byTimer) void keepUp()

    return { sweep: async () => ({ tag: 'swept', removed: await shared() }) }
  },
})

function lostCounter(registry: Registry): Counter {
  const name = 'svc_egress_calls_lost_total'
  const known = registry.getSingleMetric(name) as Counter | undefined
  const help = 'Relayed requests that ended with their process, as they were found.'
  return known ?? new Counter({ name, help, registers: [registry] })
}

function resealedCounter(registry: Registry): Counter {
  const name = 'svc_data_keys_resealed_total'
  const known = registry.getSingleMetric(name) as Counter | undefined
  const help = 'Values that were sealed anew because their data key was replaced.'
  return known ?? new Counter({ name, help, registers: [registry] })
}

function removedCounter(registry: Registry): Counter<'kind'> {
  const name = 'svc_upkeep_removed_total'
  const known = registry.getSingleMetric(name) as Counter<'kind'> | undefined
  return (
    known ??
    new Counter({
      name,
      help: 'Rows removed because they had run out.',
      labelNames: ['kind'],
      registers: [registry],
    })
  )
}
