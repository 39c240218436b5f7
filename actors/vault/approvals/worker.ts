/** Mails those who may answer, and ends approvals whose time or grant has ended. */
import type { Lifecycle } from '../../../runtime/kernel/actor.js'
import { defineWorker } from '../../../runtime/kernel/worker.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Listener } from '../../../storage/platform/listen.js'
import {
  announceApproval,
  APPROVALS_CHANNEL,
  type ApprovalView,
  approverAddresses,
  expireApprovals,
  unannouncedApprovals,
} from '../../../storage/vault/call-approvals.js'
import { parseEmail } from '../../domain/email.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { APPROVAL_PAGE } from '../../domain/vault/approvals.js'
import { UNWOKEN_MS_MAX, WakeSignal } from '../../platform/batching/wake-signal.js'
import { approvalsExpired } from '../../platform/call-approvals.js'
import type { MailQueue } from '../../platform/mail/mail-queue.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

const MISHAP_MS = 1_000
const BATCH_ROWS = 100
/** Owners who are mailed about one call. */
const RECIPIENTS_MAX = 10
const background = { pool: 'background' } as const

type ApprovalsWorkerNeeds = WriteNeeds & {
  readonly listener: Listener
  readonly mail: MailQueue
  readonly issuer: string
}

export const approvalsWorker = defineWorker<ApprovalsWorkerNeeds>({
  name: 'approval_mail',
  asks: {},
  run: async (needs, lifecycle) => {
    const wake = new WakeSignal()
    const ring = () => wake.wake()
    const leave = await needs.listener.listen(APPROVALS_CHANNEL, { notified: ring, caughtUp: ring })
    lifecycle.signal.addEventListener('abort', ring, { once: true })
    await rounds(needs, wake, lifecycle).finally(leave)
  },
})

async function rounds(
  needs: ApprovalsWorkerNeeds,
  wake: WakeSignal,
  { signal, log, loop }: Lifecycle,
): Promise<void> {
  const reported = loop('rounds')
  while (!signal.aborted) {
    try {
      const isDone = (await expire(needs)) < BATCH_ROWS
      const isAnnounced = (await announce(needs)) < BATCH_ROWS
      reported.succeeded()
      if (isDone && isAnnounced) await wake.wait(UNWOKEN_MS_MAX)
    } catch (error) {
      if (signal.aborted) return
      reported.failed()
      log.warn({ err: error }, 'approvals: a round failed, retrying')
      await wake.wait(MISHAP_MS)
    }
  }
}

function expire({ database, clock, random }: ApprovalsWorkerNeeds): Promise<number> {
  return database.system(async (tx) => {
    const now = clock.now()
    const ended = await expireApprovals(tx, now, BATCH_ROWS)
    appendEvents(tx, approvalsExpired(ended, { random, now }))
    return ended.length
  }, background)
}

async function announce(needs: ApprovalsWorkerNeeds): Promise<number> {
  const { database, clock } = needs
  const waiting = await database.system(
    (tx) => unannouncedApprovals(tx, clock.now(), BATCH_ROWS),
    background,
  )
  for (const view of waiting) await mailAbout(needs, view)
  return waiting.length
}

/** Queues the mail in the transaction that stores that it was, so that it is sent once. */
async function mailAbout(
  { database, clock, mail, issuer }: ApprovalsWorkerNeeds,
  view: ApprovalView,
): Promise<void> {
  const { tenantId, id, shown, approver, agentName, expiresAt: until } = view
  const addresses = await database.system(
    (tx) => approverAddresses(tx, tenantId, approver, RECIPIENTS_MAX),
    background,
  )
  const { name, color, locale } = brandingOf(tenantId, view.tenantName, view.tenantSettings)
  // Without the path, which the agent chooses: it could read like a text of ours.
  const call = 'tool' in shown ? `${shown.server} ${shown.tool}` : `${shown.method} ${shown.host}`
  const link = `${issuer}${APPROVAL_PAGE}/${id}`
  const content = { kind: 'call_approval', agent: agentName, call, link, until } as const
  const letters = await Promise.all(
    (view.status === 'pending' ? addresses : []).flatMap(({ email, locale: languages }) => {
      const to = parseEmail(email)
      if (to === undefined) return []
      const header = { tenant: name, color, locale, languages: languages ?? undefined }
      return mail.seal({ tenantId, to, known: true, content, header, expiresAt: until })
    }),
  )
  await database.system(async (tx) => {
    if (!(await announceApproval(tx, tenantId, id, clock.now()))) return
    for (const letter of letters) await mail.queue(tx, letter)
  }, background)
}
