/**
 * What a page tells the authenticators of its browser (WebAuthn Level 3 section 5.1.10), so that they offer no passkey that
 * the service does not accept.
 */
import type { PasskeyRow } from '../../../../../storage/identity/passkeys.js'
import { shownEmail } from '../../../../domain/email.js'
import type { PasskeySignals } from '../../protocol.js'
import { base64url, userHandleOf } from './credential.js'

/** The account of a passkey, and its names. */
export type Owner = {
  readonly accountId: string
  readonly email: string
  readonly displayName: string
}

/** The names of an account, as authenticators show them. */
export function namesOf({ email, displayName }: Pick<Owner, 'email' | 'displayName'>) {
  const name = shownEmail(email)
  return { name, displayName: displayName === '' ? name : displayName }
}

/** All passkeys of a signed-in user, and the names of the account. A passkey that is missing in the list gets hidden. */
export function signalsOf(
  rpId: string,
  owner: Owner,
  all: readonly Pick<PasskeyRow, 'credentialId'>[],
): PasskeySignals {
  const user = { rpId, userId: base64url(userHandleOf(owner.accountId)) }
  return {
    signalAllAcceptedCredentials: {
      ...user,
      allAcceptedCredentialIds: all.map(({ credentialId }) => base64url(credentialId)),
    },
    signalCurrentUserDetails: { ...user, ...namesOf(owner) },
  }
}
