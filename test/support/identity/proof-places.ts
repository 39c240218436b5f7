/** The places in the code that add a sign-in method or verify an address, and the attacks that cover them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Calls that add a sign-in method to an account or verify its address, as they appear in the code. */
const CALLS =
  /\b(proveMailbox|reclaimUnproved|storePasskey|confirmTotp|replaceRecoveryCodes|renewRecoveryCodes|insertIdentity|setAccountPassword|replacePassword|setFirstPassword|insertAccount|acceptTenantUser|acceptInvitationRow|insertPhone|insertWallet)\(\s*tx\b/g

/** Each place in the code, and its attacks. */
export const PLACES: Readonly<Record<string, readonly string[]>> = {
  'actors/identity/sign-in/account/own-factors.ts confirmTotp': ['recovery codes after the proof'],
  'actors/identity/sign-in/account/own-factors.ts renewRecoveryCodes': [
    'recovery codes after the proof',
  ],
  'actors/identity/sign-in/recovery/change.ts replacePassword': ['a password after the proof'],
  'actors/identity/sign-in/recovery/invitation.ts acceptTenantUser': ['invitation'],
  'actors/identity/sign-in/recovery/invitation.ts proveMailbox': ['invitation'],
  'actors/identity/sign-in/recovery/invitation.ts setFirstPassword': ['invitation'],
  'actors/identity/sign-in/recovery/reset.ts proveMailbox': ['reset'],
  'actors/identity/sign-in/recovery/reset.ts replacePassword': ['reset'],
  'actors/platform/people/password-revocation.ts setAccountPassword': [
    'reset',
    'a password after the proof',
  ],
  'actors/identity/sign-in/recovery/sign-up-link.ts acceptTenantUser': ['a sign-up'],
  'actors/identity/sign-in/recovery/sign-up-link.ts insertAccount': ['a sign-up'],
  'actors/identity/sign-in/recovery/sign-up-link.ts proveMailbox': ['a sign-up'],
  'actors/identity/sign-in/recovery/sign-up-link.ts setFirstPassword': ['a sign-up'],
  'actors/identity/sign-in/recovery/verification.ts proveMailbox': [
    'a mail opened in another browser',
  ],
  'actors/identity/sign-in/ways/mail.ts proveMailbox': ['code', 'link'],
  'actors/identity/sign-in/operators/invite-letter.ts insertAccount': [
    'an operator invite',
    'an immediate operator invite',
  ],
  'actors/identity/sign-in/operators/invite-letter.ts proveMailbox': ['an operator invite'],
  'actors/identity/sign-in/operators/invite-letter.ts setFirstPassword': ['an operator invite'],
  'actors/identity/sign-in/second-factors/second-factor.ts confirmTotp': [
    'a passkey after the proof',
  ],
  'actors/identity/sign-in/second-factors/second-factor.ts renewRecoveryCodes': [
    'a passkey after the proof',
  ],
  'actors/identity/sign-in/second-factors/recovery-codes.ts replaceRecoveryCodes': [
    'recovery codes after the proof',
  ],
  'actors/identity/sign-in/ways/phone/own.ts insertPhone': ['a phone number after the proof'],
  'actors/identity/sign-in/ways/ethereum/own.ts insertWallet': [
    'an Ethereum account after the proof',
  ],
  'actors/identity/sign-in/ways/guest/address.ts proveMailbox': ['a guest claims the address'],
  'actors/identity/sign-in/ways/guest/enter.ts insertAccount': ['a guest claims the address'],
  'actors/identity/sign-in/ways/passkey/own.ts storePasskey': ['a passkey after the proof'],
  'actors/identity/sign-in/ways/passkey/registration.ts renewRecoveryCodes': [
    'a passkey after the proof',
  ],
  'actors/identity/sign-in/ways/passkey/enrolment.ts storePasskey': ['a passkey after the proof'],
  'actors/identity/sign-in/ways/passkey/sync.ts storePasskey': ['a passkey after the proof'],
  'actors/identity/sign-in/ways/federated/complete.ts acceptInvitationRow': [
    'a provider of the deployment',
  ],
  'actors/identity/sign-in/ways/federated/complete.ts insertAccount': [
    'a provider of the deployment',
  ],
  'actors/identity/sign-in/ways/federated/complete.ts insertIdentity': [
    'the provider of the owner of the domain',
  ],
  'actors/identity/sign-in/ways/federated/complete.ts proveMailbox': [
    'the provider of the owner of the domain, silent about the address',
  ],
  'actors/identity/sign-in/ways/federated/sign-in.ts insertIdentity': [
    'a link to a provider after the proof',
  ],
  'actors/identity/sign-in/ways/federated/sign-in.ts proveMailbox': [
    'a link to a provider after the proof',
  ],
  'actors/identity/users/fixtures.ts insertAccount': ['a password for a fixture user'],
  'actors/identity/users/fixtures.ts setAccountPassword': ['a password for a fixture user'],
  'actors/platform/people/provisioning.ts insertAccount': ['invitation'],
  'actors/platform/people/provisioning.ts reclaimUnproved': [
    'pre-provisioning by the owner of the domain',
  ],
  'actors/platform/people/provisioning.ts setAccountPassword': [
    'pre-provisioning by the owner of the domain',
  ],
  'actors/agents/workspaces/provision.ts insertAccount': ['a password for a fixture user'],
}

/** The calls in a folder, with their files. */
export function placesIn(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return files
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => {
      const path = join(folder, name)
      const found = readFileSync(path, 'utf8')
        .replaceAll(/function \w+\(/g, '')
        .matchAll(CALLS)
      return [...found].map(([, call]) => `${path} ${call}`)
    })
}
