/** Name and profile claims on the account page (OpenID Connect Core section 5.1). */
import { type ProfileChange, updateOwnProfile } from '../../../../storage/identity/profiles.js'
import { PROFILE_TEXTS, typedProfileValue } from '../../../domain/people/profile-claims.js'
import { SHOWN_NAME } from '../../../domain/shown-names.js'
import { auditOwn, leaveConfined } from './own-account.js'
import type { AccountHandler } from './needs.js'
import type { ProfileTyped } from './protocol.js'
import { accountSeen } from './show-account.js'

export const saveOwnProfile: AccountHandler<'saveOwnProfile'> = async (
  needs,
  { session, token, typed, address },
  context,
) => {
  // Profile claims belong to the account: a session of one tenant's provider does not change them.
  const first = await leaveConfined(needs, { session, token }, '/auth/account', context)
  if (first !== null) return first
  const read = readProfile(typed)
  if ('refused' in read) {
    const seen = await accountSeen(needs, session, context)
    return { tag: 'profile_refused', field: read.refused, typed, seen }
  }
  const { tenantId, accountId } = session
  const now = needs.clock.now()
  // Accounts belong to no tenant.
  await needs.database.system(async (tx) => {
    const changed = await updateOwnProfile(tx, tenantId, accountId, read, now)
    if (changed.length === 0) return
    // The audit record names the changed claims, not their values.
    const data = { changed: changed.join(' ') }
    const done = { type: 'account.profile.updated', address, data } as const
    auditOwn(tx, needs, session, context, done)
  }, context)
  return { tag: 'saved' }
}

function readProfile(
  typed: ProfileTyped,
):
  | { readonly displayName: string; readonly profile: ProfileChange }
  | { readonly refused: keyof ProfileTyped } {
  const displayName = typed.name.trim()
  if (displayName !== '' && !SHOWN_NAME.test(displayName)) return { refused: 'name' }
  const profile: Record<string, string | null> = {}
  for (const claim of PROFILE_TEXTS) {
    const value = typed[claim].trim() === '' ? null : typedProfileValue(claim, typed[claim])
    if (value === undefined) return { refused: claim }
    profile[claim] = value
  }
  return { displayName, profile }
}
