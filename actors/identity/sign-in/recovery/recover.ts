/**
 * Recovery of an owner who lost the password and the second factors. Only the command line of the deployment issues the
 * link, no HTTP route does. docs/guides/operations/recover-an-owner.md.
 */
import {
  findRecoverableAccount,
  listFellowOwners,
  listRecoveryPlaces,
} from '../../../../storage/identity/console/recovery.js'
import { withoutCaller } from '../../../domain/audit.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import { insertTicket, voidTickets } from '../../../../storage/identity/ways/mail-tickets.js'
import { soughtEmail } from '../../../domain/email.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import type { MailQueue } from '../../../platform/mail/mail-queue.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { LINK_TOKEN_BYTES } from './needs.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

const LIFETIME_MS = 60 * 60_000
/** Expiry of the notices in the mail queue. */
const NOTICE_EXPIRY_MS = 3 * 86_400_000

type RecoveryTools = WriteNeeds & {
  readonly mail: MailQueue
  /** `oidc.issuer_url`. */
  readonly issuer: string
}

type RecoveryWish = {
  readonly email: string
  /** ID or slug of the tenant where the link is opened. Undefined: the first one that the account owns. */
  readonly tenant: string | undefined
}

type RecoveryIssued = {
  readonly tag: 'issued'
  /** Shown once, stored as its SHA-256. */
  readonly url: string
  readonly expiresAt: Date
  readonly tenantSlug: string
  /** Addresses that get a notice: the account, and the other owners of its organizations. */
  readonly notified: readonly string[]
}

export type RecoveryRefused = {
  readonly tag: 'unknown_account' | 'not_owner' | 'no_tenant'
}

/** Issues a link that sets a password and removes the second factors, once. Earlier links become void. */
export async function issueRecovery(
  { database, clock, random, mail, issuer }: RecoveryTools,
  { email, tenant }: RecoveryWish,
): Promise<RecoveryIssued | RecoveryRefused> {
  const sought = soughtEmail(email)
  if (sought === undefined) return { tag: 'unknown_account' }
  const found = await database.system(async (tx) => {
    const account = await findRecoverableAccount(tx, sought)
    if (account === undefined) return undefined
    const places = await listRecoveryPlaces(tx, account.id)
    return { account, places, owners: await listFellowOwners(tx, account.id) }
  })
  if (found === undefined) return { tag: 'unknown_account' }
  const { account, places, owners } = found
  if (!account.isOwner) return { tag: 'not_owner' }
  const place = places.find(
    ({ tenantId, tenantSlug }) =>
      tenant === undefined || tenantId === tenant.toLowerCase() || tenantSlug === tenant,
  )
  if (place === undefined) return { tag: 'no_tenant' }
  const { tenantId, tenantSlug } = place
  const { name, color, locale } = brandingOf(tenantId, place.tenantName, place.tenantSettings)
  const now = clock.now()
  const notified = [account.email, ...owners]
  const notices = await Promise.all(
    notified.map((to) =>
      mail.seal({
        tenantId,
        to,
        known: true,
        content: { kind: 'account_recovery', account: account.email, at: now },
        header: { tenant: name, color, locale },
        expiresAt: new Date(now.getTime() + NOTICE_EXPIRY_MS),
      }),
    ),
  )
  const token = random.token(LINK_TOKEN_BYTES)
  const expiresAt = new Date(now.getTime() + LIFETIME_MS)
  await database.system(async (tx) => {
    await voidTickets(tx, account.id, null, 'password_reset', now)
    await insertTicket(tx, {
      tenantId,
      id: random.uuid(),
      purpose: 'password_reset',
      accountId: account.id,
      email: account.email,
      linkSha256: sha256(token),
      codeSha256: null,
      flowSha256: null,
      browserSha256: null,
      attempts: 1,
      isRecovery: true,
      createdAt: now,
      expiresAt,
    })
    for (const notice of notices) await mail.queue(tx, notice)
    const data = { tenant_id: tenantId, expires_at: expiresAt.toISOString() }
    appendAudit(
      tx,
      // The account is global: every tenant where it signs in is concerned.
      places.map((each) =>
        withoutCaller({
          id: random.uuid(),
          tenantId: each.tenantId,
          type: 'admin.account.recovery_issued',
          occurredAt: now,
          resource: { type: 'human', id: each.sub },
          data,
        }),
      ),
    )
  })
  return {
    tag: 'issued',
    url: `${issuer}/auth/password/reset/${token}`,
    expiresAt,
    tenantSlug,
    notified,
  }
}
