/** What a user sees of the account. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { findAccountPassword } from '../../../../storage/identity/accounts.js'
import { listPasskeys, type PasskeyRow } from '../../../../storage/identity/passkeys.js'
import { findOwnProfile, type OwnProfileRow } from '../../../../storage/identity/profiles.js'
import { countRecoveryCodes, findTotpFactor } from '../../../../storage/identity/second-factors.js'
import { findTenantBranding } from '../../../../storage/identity/sign-in-flows.js'
import { findPhone } from '../../../../storage/identity/ways/phones.js'
import { listAccountWallets } from '../../../../storage/identity/ways/wallets.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { PROFILE_TEXTS } from '../../../domain/people/profile-claims.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import type { BrowserSession } from '../sessions/protocol.js'
import { signalsOf } from '../ways/passkey/signals.js'
import type { AccountHandler, AccountNeeds } from './needs.js'
import type { AccountSeen, PasskeySeen, ProfileSeen, ProfileTyped } from './protocol.js'

export const showAccount: AccountHandler<'showAccount'> = (needs, { session }, context) =>
  accountSeen(needs, session, context)

export async function accountSeen(
  needs: AccountNeeds,
  session: BrowserSession,
  context: MessageContext,
): Promise<AccountSeen> {
  const { tenantId, accountId, sub } = session
  const { sessions } = await needs.browserSessions.list({ tenantId, accountId }, context)
  const person = { tenantId, subject: sub }
  const { consents } = await needs.authorization.listConsents(person, context)
  const { delegations } = await needs.delegation.ofPerson({ tenantId, sub }, context)
  const { approvals: waiting } = await needs.approvals.waitingFor({ session }, context)
  const { connections } = await needs.connections.connectionsOfPerson({ tenantId, sub }, context)
  const { identities, upstreams } = await needs.federatedLogin.identities({ session }, context)
  return needs.database.system(async (tx) => {
    const branding = await findTenantBranding(tx, tenantId)
    if (branding === undefined) throw new Error('the tenant of an open session was not found')
    const profile = await findOwnProfile(tx, tenantId, accountId)
    if (profile === undefined) throw new Error('the user of an open session was not found')
    return {
      tag: 'seen',
      seenAt: needs.clock.now(),
      session,
      tenant: brandingOf(tenantId, branding.tenantName, branding.tenantSettings),
      profile: profileSeen(profile),
      sessions,
      ...(await keysSeen(tx, needs, session)),
      consents,
      approvals: waiting,
      delegations,
      connections,
      selfService: needs.selfService,
      identities,
      upstreams,
    }
  }, context)
}

/** Keys belong to the account, which belongs to no tenant: a session of one tenant's provider does not show them. */
async function keysSeen(
  tx: Transaction,
  { passkeyDomain, wallets, phones }: AccountNeeds,
  session: BrowserSession,
): Promise<
  Pick<
    AccountSeen,
    'factors' | 'recoveryCodesLeft' | 'passkeys' | 'signals' | 'wallets' | 'phone' | 'hasPassword'
  >
> {
  const { accountId, confined } = session
  if (confined) {
    const none = {
      passkeys: null,
      signals: null,
      wallets: null,
      phone: undefined,
      hasPassword: false,
    }
    return { factors: [], recoveryCodesLeft: null, ...none }
  }
  const factor = await findTotpFactor(tx, accountId)
  const own = await listPasskeys(tx, accountId)
  const isProtected = factor !== undefined || own.some(({ userVerified }) => userVerified)
  const totp = factor && {
    id: factor.id,
    kind: 'totp' as const,
    enrolledAt: factor.confirmedAt ?? factor.createdAt,
    lastUsedAt: factor.lastUsedAt,
  }
  return {
    factors: totp === undefined ? [] : [totp],
    recoveryCodesLeft: isProtected ? await countRecoveryCodes(tx, accountId) : null,
    passkeys: passkeyDomain === null ? null : own.map(passkeySeen),
    signals: passkeyDomain === null ? null : signalsOf(passkeyDomain, session, own),
    wallets: wallets ? await listAccountWallets(tx, accountId) : null,
    phone: phones ? ((await findPhone(tx, accountId)) ?? null) : undefined,
    hasPassword: (await findAccountPassword(tx, accountId)) !== null,
  }
}

function passkeySeen(row: PasskeyRow): PasskeySeen {
  const { id, name, deviceBound, backedUp, createdAt, lastUsedAt } = row
  return { id, name, deviceBound, backedUp, createdAt, lastUsedAt }
}

function profileSeen({ displayName, profile, ofTenant }: OwnProfileRow): ProfileSeen {
  const texts = PROFILE_TEXTS.map((claim) => [claim, profile[claim] ?? ''])
  return {
    values: { name: displayName, ...Object.fromEntries(texts) } as ProfileTyped,
    phoneNumberVerified: profile.phone_number_verified === true,
    ofTenant,
  }
}
