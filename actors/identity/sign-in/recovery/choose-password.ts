/**
 * Checks and hashes a chosen password: length, similarity to the address, common passwords, breached passwords. Writes
 * the notice that a password was replaced.
 */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Email } from '../../../domain/email.js'
import { isStrong } from '../../../domain/people/password-rules.js'
import type { PageTenant } from '../../../domain/tenants/branding.js'
import type { MailQueue, SealedMail } from '../../../platform/mail/mail-queue.js'
import type { PasswordsProtocol } from '../../passwords/protocol.js'
import type { PasswordFault } from './protocol.js'

/** Expiry of the notice in the mail queue. */
const NOTICE_EXPIRY_MS = 3 * 86_400_000

type Chosen =
  | { readonly tag: 'hashed'; readonly phc: string }
  | PasswordFault
  | { readonly tag: 'busy' }

export async function choosePassword(
  passwords: ActorRef<PasswordsProtocol>,
  password: string,
  email: string,
  context: MessageContext,
): Promise<Chosen> {
  if (!isStrong(password, email)) return { tag: 'weak_password' }
  const chosen = await passwords.choose({ password }, context)
  if (chosen.tag === 'unacceptable') return { tag: 'weak_password' }
  if (chosen.tag === 'common') return { tag: 'common_password' }
  if (chosen.tag === 'breached') return { tag: 'breached_password' }
  return chosen.tag === 'unchecked' ? { tag: 'busy' } : chosen
}

/** The notice to the address whose password is replaced. */
export function replacedNotice(
  { mail }: { readonly mail: Pick<MailQueue, 'seal'> },
  { id: tenantId, name, color, locale }: PageTenant,
  to: Email,
  languages: string,
  now: Date,
): Promise<SealedMail> {
  return mail.seal({
    tenantId,
    to,
    known: true,
    content: { kind: 'password_changed', at: now },
    header: { tenant: name, color, locale, languages },
    expiresAt: new Date(now.getTime() + NOTICE_EXPIRY_MS),
  })
}
