/** The account page: collects what users may see of their account and revokes what they end. */
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import { findAccountPassword } from '../../../storage/identity/accounts.js'
import { listWallets } from '../../../storage/identity/ways/wallets.js'
import { findPhone } from '../../../storage/identity/ways/phones.js'
import { findOwnProfile } from '../../../storage/identity/profiles.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import {
  accountFactors,
  listPasskeys,
  type PasskeyRow,
} from '../../../storage/identity/passkeys.js'
import {
  countRecoveryCodes,
  findTotpFactor,
  removeTotpFactor,
} from '../../../storage/identity/second-factors.js'
import { findTenantBranding } from '../../../storage/identity/sign-in-flows.js'
import { authorization } from '../../oauth/authorization/protocol.js'
import { personEvent } from '../sessions/events.js'
import { type BrowserSession, browserSessions } from '../sessions/protocol.js'
import { delegation } from '../../agents/delegation/protocol.js'
import { isUuid } from '../../domain/ids.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { federatedLogin } from '../federated-login/protocol.js'
import { profileSeen, savedProfile } from './own-profile.js'
import { ownFactors, SENSITIVE_SECS, TOTP_PATH } from './own-factors.js'
import { account, type AccountProtocol, type AccountSeen, type PasskeySeen } from './protocol.js'
import type { AccountNeeds } from './needs.js'

export const accountActor = defineActor<AccountProtocol, AccountNeeds>({
  address: account,
  asks: { browserSessions, authorization, delegation, federatedLogin },
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: {
    removeOwnFactor: ({ session }) => session.accountId,
    addOwnAuthenticatorApp: ({ session }) => session.accountId,
    replaceOwnRecoveryCodes: ({ session }) => session.accountId,
  },
  create: (needs) => {
    const { database, clock, random, browserSessions, authorization, delegation, federatedLogin } =
      needs
    const { selfService } = needs
    const demanded = (
      session: BrowserSession,
      token: string,
      demand: { level: 1 | 2; maxAgeSecs?: number },
      context: MessageContext,
    ) =>
      browserSessions.demand(
        {
          token,
          tenantId: session.tenantId,
          sub: session.sub,
          demand,
          flow: { returnTo: '/auth/account', reason: { tag: 'sensitive' } },
        },
        context,
      )

    async function seen(session: BrowserSession, context: MessageContext): Promise<AccountSeen> {
      const { tenantId, accountId, confined } = session
      const { sessions } = await browserSessions.list({ tenantId, accountId }, context)
      const person = { tenantId, subject: session.sub }
      const { consents } = await authorization.listConsents(person, context)
      const grantor = { tenantId, sub: session.sub }
      const { delegations } = await delegation.ofPerson(grantor, context)
      const { identities, upstreams } = await federatedLogin.identities({ session }, context)
      // Factors belong to the account, which belongs to no tenant.
      return database.system(async (tx) => {
        const branding = await findTenantBranding(tx, tenantId)
        if (branding === undefined) throw new Error('the tenant of an open session was not found')
        const profile = await findOwnProfile(tx, tenantId, accountId)
        if (profile === undefined) throw new Error('the user of an open session was not found')
        // A session opened by one tenant's provider does not show keys of the global account.
        const factor = confined ? undefined : await findTotpFactor(tx, accountId)
        const own = confined ? [] : await listPasskeys(tx, accountId)
        const isProtected = factor !== undefined || own.length > 0
        const left = isProtected ? await countRecoveryCodes(tx, accountId) : null
        return {
          tag: 'seen',
          seenAt: clock.now(),
          session,
          tenant: brandingOf(tenantId, branding.tenantName, branding.tenantSettings),
          profile: profileSeen(profile),
          sessions,
          factors:
            factor === undefined
              ? []
              : [
                  {
                    id: factor.id,
                    kind: 'totp',
                    enrolledAt: factor.confirmedAt ?? factor.createdAt,
                    lastUsedAt: factor.lastUsedAt,
                  },
                ],
          recoveryCodesLeft: left,
          passkeys: needs.passkeys && !confined ? own.map(passkeySeen) : null,
          wallets: needs.wallets && !confined ? await listWallets(tx, accountId) : null,
          phone: needs.phones && !confined ? ((await findPhone(tx, accountId)) ?? null) : undefined,
          hasPassword: !confined && (await findAccountPassword(tx, accountId)) !== null,
          consents,
          delegations,
          selfService,
          identities,
          upstreams,
        }
      }, context)
    }

    return {
      ...ownFactors(needs),

      showAccount: ({ session }, context) => seen(session, context),

      async saveOwnProfile({ session, token, typed, address }, context) {
        // Profile claims belong to the account: a session of one tenant's provider does not change them.
        const verdict = await demanded(session, token, { level: 1 }, context)
        if (verdict.tag === 'sign_in') return verdict
        const saved = await savedProfile(needs, session, typed, address, context)
        return saved.tag === 'saved'
          ? saved
          : { ...saved, typed, seen: await seen(session, context) }
      },

      revokeOtherOwnSessions: ({ session: { tenantId, accountId, id: exceptId } }, context) =>
        browserSessions.revokeOthers({ tenantId, accountId, exceptId }, context),

      async revokeOwnSession({ session, sessionId }, context) {
        const { tenantId, accountId } = session
        const ended = await browserSessions.revokeOne({ tenantId, accountId, sessionId }, context)
        return ended.tag === 'revoked' ? { ...ended, own: sessionId === session.id } : ended
      },

      async removeOwnFactor({ session, token, factorId }, context) {
        const demand = { level: 2, maxAgeSecs: SENSITIVE_SECS } as const
        const verdict = await demanded(session, token, demand, context)
        if (verdict.tag === 'sign_in') return verdict
        if (!isUuid(factorId)) return { tag: 'unknown_factor' }
        const { tenantId, accountId, sub, id } = session
        const now = clock.now()
        return database.system(async (tx) => {
          if (!(await removeTotpFactor(tx, accountId, factorId))) return { tag: 'unknown_factor' }
          const event = {
            tenantId,
            type: 'security.suspicious_activity',
            sub,
            sessionId: id,
            requestId: context.requestId,
            fields: { reason: 'second_factor_removed' },
          } as const
          appendEvents(tx, [personEvent(random, event, now)])
          return { tag: 'removed' }
        }, context)
      },

      withdrawConsent: ({ session: { tenantId, sub: subject }, clientId }, context) =>
        authorization.withdrawConsent({ tenantId, subject, clientId }, context),

      async addOwnFactor({ session, token }, context) {
        const { accountId } = session
        if (!session.confined) {
          const { totp, passkey } = await database.system(
            (tx) => accountFactors(tx, accountId),
            context,
          )
          if (totp) return { tag: 'present' }
          // The enrolment page asks for the passkey and sends the user back here.
          if (passkey) return { tag: 'sign_in', location: TOTP_PATH }
        }
        // A confined session reaches the account's own factors only through a new sign-in.
        const level = session.confined ? 1 : 2
        const verdict = await demanded(session, token, { level }, context)
        return verdict.tag === 'sign_in' ? verdict : { tag: 'present' }
      },
    }
  },
})

function passkeySeen(row: PasskeyRow): PasskeySeen {
  const { id, name, deviceBound, backedUp, createdAt, lastUsedAt } = row
  return { id, name, deviceBound, backedUp, createdAt, lastUsedAt }
}
