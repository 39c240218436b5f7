/** Sends a code: its ticket is stored first, then the message leaves in the background. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import {
  type CodePurpose,
  insertCodeTicket,
} from '../../../../../storage/identity/ways/code-tickets.js'
import { findTenantWithSettings } from '../../../../../storage/identity/tenants.js'
import { brandingOf } from '../../../../domain/tenants/branding.js'
import { sha256 } from '../../../../domain/secret-hashes.js'
import { addressAt, tenantHostOf } from '../../tenant-host.js'
import { textCodeSha256, codeText, newCode } from './codes.js'
import type { PhoneTools } from './needs.js'

type CodeOrder = {
  readonly tenantId: string
  readonly purpose: CodePurpose
  /** Null: the number has no account. The same work is done, and no message is sent. */
  readonly accountId: string | null
  readonly number: string
  /** Token of the flow or session. */
  readonly secret: string
  readonly host: string
  readonly uiLocales?: string | null
  readonly languages: string
}

export async function sendCode(
  { database, random, clock, sms, sender, quota, tenants, issuer, i18n }: PhoneTools,
  order: CodeOrder,
  context: MessageContext,
): Promise<void> {
  const { tenantId, purpose, accountId, number, secret, host } = order
  const now = clock.now()
  const code = newCode(random)
  const id = random.uuid()
  const tenantHost = await tenantHostOf(tenants, tenantId, host, context)
  const tenant = await database.system(async (tx) => {
    await insertCodeTicket(tx, {
      tenantId,
      id,
      purpose,
      accountId,
      target: number,
      codeSha256: textCodeSha256(secret, code),
      placeSha256: sha256(secret),
      attempts: sms.max_attempts,
      createdAt: now,
      expiresAt: new Date(now.getTime() + sms.ttl_secs * 1000),
    })
    return findTenantWithSettings(tx, tenantId)
  }, context)
  if (tenant === undefined) return
  // The same work for an unknown number.
  const messages = accountId === null ? 0 : 1
  if (!(await quota.takeOfTenant(tenantId, tenant.environment, messages)) || messages === 0) return
  const branding = brandingOf(tenantId, tenant.name, tenant.settings)
  const shownAt = new URL(addressAt(issuer, tenantHost)).hostname
  const text = codeText(code, branding, shownAt, order, i18n)
  sender.post({ id, tenantId, to: number, text })
}
