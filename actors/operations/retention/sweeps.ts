/**
 * Removes expired rows: challenges, sessions, refresh tokens, idempotency keys and others, a batch at a time,
 * on the background pool. Any number of processes may sweep at the same time: a sweep skips locked rows.
 */
import type { Registry } from 'prom-client'
import type { Random } from '../../../runtime/kernel/random.js'
import { type Clock, CLOCK_STEP_SECS_MAX } from '../../../runtime/kernel/clock.js'
import { removeOldActivity } from '../../../storage/operations/activity.js'
import { deleteEndedAgentChallenges } from '../../../storage/agents/agent-challenges.js'
import { removeOldBrowsers } from '../../../storage/identity/ways/known-browsers.js'
import { removeOldGuests } from '../../../storage/identity/ways/guests.js'
import { removeExpiredSiweNonces } from '../../../storage/identity/ways/wallets.js'
import { removeExpiredCodeTickets } from '../../../storage/identity/ways/code-tickets.js'
import { removeExpiredBrowserSessions } from '../../../storage/identity/browser-sessions.js'
import { removeExpiredConsoleSessions } from '../../../storage/identity/console/sessions.js'
import { sweepCardEvents } from '../../../storage/commerce/card-payments.js'
import { sweepCheckouts } from '../../../storage/commerce/checkout-sessions.js'
import { sweepCoordination } from '../../../storage/platform/coordination/postgres.js'
import { counter } from '../../platform/metrics.js'
import type { OpenDatabase } from '../../../storage/platform/database.js'
import { sweepAnnouncements } from '../../../storage/platform/portable/table-listener.js'
import { removeEndedDelegationRequests } from '../../../storage/agents/delegation-requests.js'
import { removeEndedDelegations } from '../../../storage/agents/delegations.js'
import { sweepDeliveries } from '../../../storage/webhooks/deliveries.js'
import { removeExpiredAnswers } from '../../../storage/platform/sealing/form-answers.js'
import { sweepIdempotencyKeys } from '../../../storage/platform/idempotency.js'
import { sweepMailShares } from '../../../storage/operations/mail-shares.js'
import { sweepMail } from '../../../storage/operations/outgoing-mail.js'
import { removeExpiredTickets } from '../../../storage/identity/ways/mail-tickets.js'
import { appendEvents, sweepEvents } from '../../../storage/platform/outbox.js'
import { removeExpiredPasskeyCeremonies } from '../../../storage/identity/passkey-ceremonies.js'
import { deleteEndedPowChallenges } from '../../../storage/agents/pow-challenges.js'
import { removeUnusedObservedClients } from '../../../storage/oauth/observed-clients.js'
import { removeEndedRemoteDocuments } from '../../../storage/oauth/remote-documents.js'
import { wipeOldAnswers } from '../../../storage/oauth/refresh-tokens.js'
import { removeEndedCodes } from '../../../storage/oauth/authorization-codes.js'
import { removeEndedBackchannelRequests } from '../../../storage/oauth/backchannel-requests.js'
import { removeEndedAuthorizationRequests } from '../../../storage/oauth/authorization-requests.js'
import { removeExpiredApiKeys } from '../../../storage/oauth/api-keys.js'
import { removeEndedRegistrationTokens } from '../../../storage/oauth/client-registration.js'
import { removeEndedCredentials } from '../../../storage/oauth/credential-issuance.js'
import { removeEndedOffers } from '../../../storage/oauth/credential-offers.js'
import { removeEndedStatusLists } from '../../../storage/oauth/status-lists.js'
import { removeEndedRevocations } from '../../../storage/oauth/revoked-tokens.js'
import { removeExpiredSignInFlows } from '../../../storage/identity/sign-in-flows.js'
import { removeExpiredUpstreamSignIns } from '../../../storage/identity/upstream-sign-ins.js'
import { removeExpiredSessions } from '../../../storage/oauth/token-sessions.js'
import { WINDOW_SECS_MAX } from '../../commerce/wallets/protocol.js'
import { catalogued } from '../../domain/events.js'
import { STREAM_UPDATED } from '../../domain/webhooks/signals.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { sweepSpends } from '../../../storage/commerce/wallet-signatures.js'
import { sweepX402Verifications } from '../../../storage/commerce/x402-payments.js'
import { forgetSinks } from '../../../storage/webhooks/event-sinks.js'
import { disableOverdueStreams } from '../../../storage/webhooks/signal-events.js'
import { sweepDeletedWebhooks, wipePreviousSecrets } from '../../../storage/webhooks/webhooks.js'
import { removeEndedConnections } from '../../../storage/vault/connections.js'
import { removeEndedApprovals } from '../../../storage/vault/call-approvals.js'
import { removeExpiredCertificates } from '../../../storage/vault/ssh-certificates.js'

const BATCH_ROWS = 1_000
/** Each process reads announcements every 250 ms. */
const ANNOUNCEMENT_RETENTION_MS = 600_000
/** A status list takes up to 131,072 entries with it. */
const STATUS_LISTS = 1
/** Each ends sessions and appends an event. */
const GUESTS = 200
/** Rows left after this many batches wait for the next round. */
const BATCHES_PER_ROUND = 50
/** An ended challenge is still recognised for this time. */
const CHALLENGE_RETENTION_SECS = 3_600
/** A session is kept longer than the lifetime of any of its access tokens. */
const SESSION_RETENTION_MS = 2 * 86_400_000
/** Sealed refresh responses can be replayed for 10 s. The rest allows for clock differences. */
const ANSWER_RETENTION_MS = 30_000
/** A revocation outlives its token, so that the token does not return when the clock is stepped back. */
const REVOCATION_RETENTION_MS = CLOCK_STEP_SECS_MAX * 1000 + 30_000
/**
 * A pushed authorization request ends with the request that continues it, while the user signs in
 * and decides, which may take an hour and more. A device that polls late still gets
 * `expired_token`.
 */
const REQUEST_RETENTION_MS = 2 * 3_600_000
/** A second use of an authorization code within a day still revokes the tokens of the first use. */
const CODE_RETENTION_MS = 86_400_000
/** How long an ended delegation can be read. The audit log keeps it permanently. */
const DELEGATION_RETENTION_MS = 90 * 86_400_000
/** How long an expired offer or credential can be read. */
const CREDENTIAL_RETENTION_MS = 30 * 86_400_000
/** How long an ended approval of a call can be read. The audit log keeps it. */
const APPROVAL_RETENTION_MS = 30 * 86_400_000
/** How long an ended connection can be read. The audit log keeps it. */
const CONNECTION_RETENTION_MS = 30 * 86_400_000
/** How long an expired API key can be read. */
const API_KEY_RETENTION_MS = 30 * 86_400_000
/** How long deliveries can be recreated from events. */
const EVENT_RETENTION_MS = 30 * 86_400_000
const DAY_MS = 86_400_000
/** The console shows 30 days. */
const ACTIVITY_RETENTION_MS = 32 * DAY_MS
/** How long the events of a stream of security events wait, and how many. */
const STREAM_RETENTION_MS = 7 * DAY_MS
const STREAM_EVENTS_MAX = 100_000
/** Each drops the events of a stream. */
const STREAMS = 10
/** How long the outcome of a message can be read. */
const MAIL_RETENTION_MS = 7 * DAY_MS
/** How long a client is known after its last grant has ended. */
const OBSERVED_CLIENT_RETENTION_MS = 90 * DAY_MS
/** How long a browser of a sign-in stays known (actors/identity/sign-in/second-factors). */
const KNOWN_DAYS = 180
/** The card provider repeats a webhook for three days. */
const CARD_EVENT_RETENTION_MS = 30 * DAY_MS
/** The longest window of a budget, and what the clock may be stepped back. */
const SPEND_RETENTION_MS = (WINDOW_SECS_MAX + CLOCK_STEP_SECS_MAX) * 1000
/** How long an unverified payment proof may be submitted again. */
const PROOF_RETENTION_MS = 3_600_000

/** Settings of [webhooks], [commerce] and [anonymous]. */
type Retention = {
  readonly delivery_retention_days: number
  readonly checkout_retention_days: number
  /** `anonymous.retention_secs`. */
  readonly guest_retention_secs: number
}

type Sweep = (tx: Transaction, now: Date, retention: Retention, random: Random) => Promise<number>

const ago = (now: Date, ms: number) => new Date(now.getTime() - ms)
const daysAgo = (now: Date, days: number) => ago(now, days * DAY_MS)

/** Sweeps that run in a transaction that crosses tenants. */
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
  observed_clients: (tx, now) =>
    removeUnusedObservedClients(tx, ago(now, OBSERVED_CLIENT_RETENTION_MS), BATCH_ROWS),
  // A stale document serves live grants for a day.
  remote_documents: (tx, now) => removeEndedRemoteDocuments(tx, ago(now, DAY_MS), BATCH_ROWS),
  credential_offers: (tx, now) =>
    removeEndedOffers(tx, ago(now, CREDENTIAL_RETENTION_MS), BATCH_ROWS),
  issued_credentials: (tx, now) =>
    removeEndedCredentials(tx, ago(now, CREDENTIAL_RETENTION_MS), BATCH_ROWS),
  status_lists: (tx, now) => removeEndedStatusLists(tx, ago(now, DAY_MS), STATUS_LISTS),
  revoked_tokens: (tx, now) =>
    removeEndedRevocations(tx, ago(now, REVOCATION_RETENTION_MS), BATCH_ROWS),
  browser_sessions: (tx, now) =>
    removeExpiredBrowserSessions(tx, ago(now, SESSION_RETENTION_MS), BATCH_ROWS),
  api_keys: (tx, now) => removeExpiredApiKeys(tx, ago(now, API_KEY_RETENTION_MS), BATCH_ROWS),
  console_sessions: (tx, now) => removeExpiredConsoleSessions(tx, now, BATCH_ROWS),
  sign_in_flows: (tx, now) => removeExpiredSignInFlows(tx, ago(now, DAY_MS), BATCH_ROWS),
  signal_streams: (tx, now) =>
    disableOverdueStreams(
      tx,
      {
        now,
        pausedBefore: ago(now, DAY_MS),
        waitingBefore: ago(now, STREAM_RETENTION_MS),
        most: STREAM_EVENTS_MAX,
        type: STREAM_UPDATED,
      },
      STREAMS,
    ),
  outgoing_mail: (tx, now) => sweepMail(tx, ago(now, MAIL_RETENTION_MS), BATCH_ROWS),
  activity: (tx, now) => removeOldActivity(tx, ago(now, ACTIVITY_RETENTION_MS), BATCH_ROWS),
  mail_shares: (tx, now) => sweepMailShares(tx, ago(now, DAY_MS), BATCH_ROWS),
  mail_tickets: (tx, now) => removeExpiredTickets(tx, ago(now, DAY_MS), BATCH_ROWS),
  form_answers: (tx, now) => removeExpiredAnswers(tx, now, BATCH_ROWS),
  code_tickets: (tx, now) => removeExpiredCodeTickets(tx, ago(now, DAY_MS), BATCH_ROWS),
  guests: sweepGuests,
  known_browsers: (tx, now) => removeOldBrowsers(tx, daysAgo(now, KNOWN_DAYS), BATCH_ROWS),
  siwe_nonces: (tx, now) => removeExpiredSiweNonces(tx, now, BATCH_ROWS),
  passkey_ceremonies: (tx, now) => removeExpiredPasskeyCeremonies(tx, now, BATCH_ROWS),
  upstream_sign_ins: (tx, now) => removeExpiredUpstreamSignIns(tx, now, BATCH_ROWS),
  call_approvals: (tx, now) =>
    removeEndedApprovals(tx, ago(now, APPROVAL_RETENTION_MS), BATCH_ROWS),
  vault_connections: (tx, now) =>
    removeEndedConnections(tx, ago(now, CONNECTION_RETENTION_MS), BATCH_ROWS),
  ssh_certificates: (tx, now) =>
    removeExpiredCertificates(tx, ago(now, REVOCATION_RETENTION_MS), BATCH_ROWS),
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
  wallet_spends: (tx, now) => sweepSpends(tx, ago(now, SPEND_RETENTION_MS), BATCH_ROWS),
  event_sinks: (tx) => forgetSinks(tx),
  events: (tx, now) => sweepEvents(tx, ago(now, EVENT_RETENTION_MS), BATCH_ROWS),
  announcements: (tx, now) =>
    sweepAnnouncements(tx, ago(now, ANNOUNCEMENT_RETENTION_MS), BATCH_ROWS),
}

export type SweepNeeds = {
  readonly database: Pick<OpenDatabase, 'system' | 'single'>
  readonly clock: Clock
  readonly random: Random
  readonly registry: Registry
  readonly retention: Retention
}

/** Removes what has expired by now. @returns how many rows, by kind. */
export async function sweepExpired(
  { database, clock, random, registry, retention }: SweepNeeds,
  signal: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
  const removedTotal = counter(
    registry,
    'svc_upkeep_removed_total',
    'Rows deleted because they had expired.',
    ['kind'],
  )

  async function exhaust(batch: () => Promise<number>): Promise<number> {
    let total = 0
    for (let count = 0; count < BATCHES_PER_ROUND && !signal.aborted; count += 1) {
      const removed = await batch()
      total += removed
      if (removed < BATCH_ROWS) break
    }
    return total
  }

  const removed: Record<string, number> = {}
  for (const [kind, sweep] of Object.entries(SWEEPS)) {
    removed[kind] = await exhaust(() =>
      database.system((tx) => sweep(tx, clock.now(), retention, random), {
        pool: 'background',
        signal,
      }),
    )
  }
  removed['coordination'] = await exhaust(() => sweepCoordination(database, BATCH_ROWS))
  for (const [kind, count] of Object.entries(removed)) removedTotal.inc({ kind }, count)
  return removed
}

/** Deletes guests who were not seen for the retention time, with an event for each. */
async function sweepGuests(
  tx: Transaction,
  now: Date,
  { guest_retention_secs: secs }: Retention,
  random: Random,
): Promise<number> {
  const ended = await removeOldGuests(tx, ago(now, secs * 1000), GUESTS, now)
  const events = ended.map(({ tenantId, tenantUserId }) => ({
    id: random.uuid(),
    tenantId,
    occurredAt: now,
    ...catalogued(
      'tenant_user.removed',
      {
        actor: { type: 'service', id: 'retention' },
        resource: { type: 'tenant_user', id: tenantUserId },
        requestId: undefined,
      },
      { status: 'removed' },
    ),
  }))
  if (events.length > 0) appendEvents(tx, events)
  return ended.length
}
