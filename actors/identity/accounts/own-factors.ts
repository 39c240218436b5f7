/**
 * Adds an authenticator app to an account that has a passkey, and renews recovery codes, on the account page. A user
 * without any factor enrols one in a sign-in flow instead, which also raises the session.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../storage/identity/accounts.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { accountFactors } from '../../../storage/identity/passkeys.js'
import {
  confirmTotp,
  countRecoveryCodes,
  replaceRecoveryCodes,
} from '../../../storage/identity/second-factors.js'
import { findTenantBranding } from '../../../storage/identity/sign-in-flows.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { personEvent } from '../sessions/events.js'
import type { BrowserSession } from '../sessions/protocol.js'
import { personAuditRecord } from '../password-recovery/records.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import { newRecoveryCodes, recoveryCodeSha256 } from '../sign-in/recovery-codes.js'
import { totpStepOf } from '../sign-in/totp.js'
import { digits, secretShown, totpOffers } from '../sign-in/totp-offer.js'
import type { AccountNeeds } from './needs.js'
import type { AccountProtocol, OwnAccount, SignInFirst } from './protocol.js'

/** Maximum age of the authentication for changes to sign-in methods, in seconds. */
export const SENSITIVE_SECS = 300
export const TOTP_PATH = '/auth/account/totp/new'

type Reply<K extends keyof AccountProtocol> = Promise<AccountProtocol[K]['reply']>

export function ownFactors(needs: AccountNeeds) {
  const { database, clock, random, browserSessions } = needs
  const { offered, sealed } = totpOffers(needs)

  return {
    async showNewAuthenticatorApp(
      own: OwnAccount,
      context: MessageContext,
    ): Reply<'showNewAuthenticatorApp'> {
      const first = await signInFirst(own, TOTP_PATH, context)
      if (first !== null) return first
      if ((await factorsOf(own, context)).totp) return { tag: 'present' }
      const tenant = await brandingFor(own.session, context)
      const secret = await offered(own.session, context)
      return { tag: 'page', tenant, ...secretShown(tenant.name, secret) }
    },

    async addOwnAuthenticatorApp(
      { code, ...own }: AccountProtocol['addOwnAuthenticatorApp']['message'],
      context: MessageContext,
    ): Reply<'addOwnAuthenticatorApp'> {
      const first = await signInFirst(own, TOTP_PATH, context)
      if (first !== null) return first
      if ((await factorsOf(own, context)).totp) return { tag: 'present' }
      const { session } = own
      const { accountId, tenantId, sub, id: sessionId } = session
      const tenant = await brandingFor(session, context)
      const secret = await offered(session, context)
      const step = totpStepOf(secret.bytes, digits(code), clock.nowSecs())
      const refused = async () =>
        // Another request, also one at another process, may have added it with the same code.
        (await factorsOf(own, context)).totp
          ? ({ tag: 'present' } as const)
          : ({ tag: 'wrong', tenant, ...secretShown(tenant.name, secret) } as const)
      if (step === null) return refused()
      const factor = await sealed(secret)
      const now = clock.now()
      const { requestId } = context
      const codes = await database.system(async (tx) => {
        if (!(await lockAccountInSession(tx, session))) return null
        if (!(await confirmTotp(tx, accountId, factor, step, now))) return null
        const fields = { outcome: 'success', method: 'totp', enrolled: true }
        const type = 'auth.mfa.verify'
        const done = { tenantId, type, sub, sessionId, requestId, fields } as const
        appendEvents(tx, [personEvent(random, done, now)])
        // Recovery codes issued with the passkey stay valid.
        return (await countRecoveryCodes(tx, accountId)) > 0 ? [] : newCodes(tx, accountId, now)
      }, context)
      return codes === null ? refused() : { tag: 'added', tenant, recoveryCodes: codes }
    },

    async replaceOwnRecoveryCodes(
      { address, ...own }: AccountProtocol['replaceOwnRecoveryCodes']['message'],
      context: MessageContext,
    ): Reply<'replaceOwnRecoveryCodes'> {
      const first = await signInFirst(own, '/auth/account', context)
      if (first !== null) return first
      const { session } = own
      const { accountId, tenantId, sub } = session
      const tenant = await brandingFor(session, context)
      const now = clock.now()
      const { requestId } = context
      const recoveryCodes = await database.system(async (tx) => {
        if (!(await lockAccountInSession(tx, session))) return null
        const type = 'account.recovery_codes.replaced'
        const did = { tenantId, type, sub, address, requestId } as const
        appendAudit(tx, [personAuditRecord(random, did, now)])
        return newCodes(tx, accountId, now)
      }, context)
      return recoveryCodes === null
        ? { tag: 'sign_in', location: `/auth/login?tenant_id=${tenantId}` }
        : { tag: 'renewed', tenant, recoveryCodes }
    },
  }

  async function newCodes(tx: Transaction, accountId: string, now: Date): Promise<string[]> {
    const codes = newRecoveryCodes(random)
    const hashes = codes.map((code) => recoveryCodeSha256(accountId, code)!)
    await replaceRecoveryCodes(tx, accountId, hashes, now)
    return codes
  }

  /** Returns null when the authentication is fresh and at the highest level the account can reach. */
  async function signInFirst(
    { session, token }: OwnAccount,
    returnTo: string,
    context: MessageContext,
  ): Promise<SignInFirst | null> {
    const verdict = await browserSessions.demand(
      {
        token,
        tenantId: session.tenantId,
        sub: session.sub,
        demand: { level: 'highest', maxAgeSecs: SENSITIVE_SECS },
        flow: { returnTo, reason: { tag: 'sensitive' } },
      },
      context,
    )
    return verdict.tag === 'met' ? null : { tag: 'sign_in', location: verdict.location }
  }

  function factorsOf({ session }: OwnAccount, context: MessageContext) {
    return database.system((tx) => accountFactors(tx, session.accountId), context)
  }

  async function brandingFor(
    { tenantId }: BrowserSession,
    context: MessageContext,
  ): Promise<PageTenant> {
    const branding = await database.system((tx) => findTenantBranding(tx, tenantId), context)
    if (branding === undefined) throw new Error('the tenant of an open session was not found')
    return brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
  }
}
