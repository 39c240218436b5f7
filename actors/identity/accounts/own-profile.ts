/** Name and profile claims on the account page (OpenID Connect Core section 5.1). */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  type OwnProfileRow,
  type ProfileChange,
  updateOwnProfile,
} from '../../../storage/identity/profiles.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { PROFILE_TEXTS, typedProfileValue } from '../../domain/people/profile-claims.js'
import { SHOWN_NAME } from '../../domain/shown-names.js'
import { personAuditRecord } from '../password-recovery/records.js'
import type { BrowserSession } from '../sessions/protocol.js'
import type { AccountNeeds } from './needs.js'
import type { ProfileSeen, ProfileTyped } from './protocol.js'

export function profileSeen({ displayName, profile, ofTenant }: OwnProfileRow): ProfileSeen {
  const texts = PROFILE_TEXTS.map((claim) => [claim, profile[claim] ?? ''])
  return {
    values: { name: displayName, ...Object.fromEntries(texts) } as ProfileTyped,
    phoneNumberVerified: profile.phone_number_verified === true,
    ofTenant,
  }
}

/** Validates and stores what a person typed. The audit record names the changed claims, not their values. */
export async function savedProfile(
  { database, clock, random }: AccountNeeds,
  { tenantId, accountId, sub }: BrowserSession,
  typed: ProfileTyped,
  address: string,
  { requestId, signal }: MessageContext,
): Promise<
  | { readonly tag: 'saved' }
  | { readonly tag: 'profile_refused'; readonly field: keyof ProfileTyped }
> {
  const displayName = typed.name.trim()
  if (displayName !== '' && !SHOWN_NAME.test(displayName)) return refused('name')
  const profile: Record<string, string | null> = {}
  for (const claim of PROFILE_TEXTS) {
    const value = typed[claim].trim() === '' ? null : typedProfileValue(claim, typed[claim])
    if (value === undefined) return refused(claim)
    profile[claim] = value
  }
  const now = clock.now()
  // Accounts belong to no tenant.
  await database.system(
    async (tx) => {
      const change: ProfileChange = profile
      const own = { displayName, profile: change }
      const changed = await updateOwnProfile(tx, tenantId, accountId, own, now)
      if (changed.length === 0) return
      const data = { changed: changed.join(' ') }
      const done = {
        tenantId,
        sub,
        address,
        requestId,
        type: 'account.profile.updated',
        data,
      } as const
      appendAudit(tx, [personAuditRecord(random, done, now)])
    },
    { signal },
  )
  return { tag: 'saved' }
}

const refused = (field: keyof ProfileTyped) => ({ tag: 'profile_refused', field }) as const
