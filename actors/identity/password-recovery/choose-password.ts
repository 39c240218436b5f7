/** Checks and hashes a chosen password: length, similarity to the address, common passwords, breached passwords. */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import { isStrong } from '../../domain/password-rules.js'
import type { PasswordsProtocol } from '../passwords/protocol.js'
import type { PasswordFault } from './protocol.js'

export type Chosen =
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
