/** Passkeys on the account page: add, rename, remove. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../storage/identity/accounts.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { removePasskey, renamePasskey } from '../../../storage/identity/passkeys.js'
import { findTenantBranding } from '../../../storage/identity/sign-in-flows.js'
import { personEvent } from '../sessions/events.js'
import type { BrowserSession } from '../sessions/protocol.js'
import { isUuid } from '../../domain/ids.js'
import type { EventType } from '../../domain/events.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { leaveConfined } from '../sign-in/own-account.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import type { PasskeyTools } from './needs.js'
import type { OwnAccount, PasskeysProtocol, SignInFirst } from './protocol.js'
import { passkeyName, registration, storePasskey } from './registration.js'

/** Maximum age of the authentication for changes to sign-in methods, in seconds. */
const SENSITIVE_SECS = 300
const ADD_PATH = '/auth/account/passkeys/new'

export function ownPasskeys(tools: PasskeyTools) {
  const { database, clock, random, browserSessions } = tools
  const { create, verify } = registration(tools)

  return {
    async page(
      own: OwnAccount,
      context: MessageContext,
    ): Promise<PasskeysProtocol['showNewPasskey']['reply']> {
      const first = await signInFirst(own, 'highest', ADD_PATH, context)
      return first ?? { tag: 'page', tenant: await brandingFor(own.session, context) }
    },

    async options(own: OwnAccount & { browser: string }, context: MessageContext) {
      const first = await signInFirst(own, 'highest', ADD_PATH, context)
      if (first !== null) return first
      const { name } = await brandingFor(own.session, context)
      const wanted = { name, deviceBound: false }
      return {
        tag: 'options',
        options: await create(own.session, own.browser, wanted, context),
      } as const
    },

    async addOwnPasskey(
      { credential, name, browser, ...own }: PasskeysProtocol['addOwnPasskey']['message'],
      context: MessageContext,
    ): Promise<PasskeysProtocol['addOwnPasskey']['reply']> {
      const first = await signInFirst(own, 'highest', ADD_PATH, context)
      if (first !== null) return first
      const { session } = own
      const tenant = await brandingFor(session, context)
      const created = await verify(session, browser, credential, context)
      const now = clock.now()
      const codes =
        created &&
        (await database.system(async (tx) => {
          if (!(await lockAccountInSession(tx, session))) return null
          const stored = await storePasskey(tx, tools, session, created, name, now)
          if (stored === null) return null
          const fields = { outcome: 'success', method: 'passkey', enrolled: true }
          appendEvents(tx, [changeEvent(session, 'auth.mfa.verify', fields, now, context)])
          return stored
        }, context))
      return codes === null
        ? { tag: 'wrong', tenant }
        : { tag: 'added', recoveryCodes: codes, tenant }
    },

    async renameOwnPasskey(
      { session, token, passkeyId, name }: PasskeysProtocol['renameOwnPasskey']['message'],
      context: MessageContext,
    ): Promise<PasskeysProtocol['renameOwnPasskey']['reply']> {
      const { accountId } = session
      const first = await leaveConfined(tools, { session, token }, '/auth/account', context)
      if (first !== null) return first
      if (!isUuid(passkeyId)) return { tag: 'unknown_passkey' }
      const shown = passkeyName(name)
      const renamed = await database.system(
        (tx) => renamePasskey(tx, accountId, passkeyId, shown),
        context,
      )
      return { tag: renamed ? 'renamed' : 'unknown_passkey' }
    },

    async removeOwnPasskey(
      { passkeyId, ...own }: PasskeysProtocol['removeOwnPasskey']['message'],
      context: MessageContext,
    ): Promise<PasskeysProtocol['removeOwnPasskey']['reply']> {
      // Not the highest level: a user who lost a key must be able to remove it.
      const first = await signInFirst(own, 2, '/auth/account', context)
      if (first !== null) return first
      const { session } = own
      if (!isUuid(passkeyId)) return { tag: 'unknown_passkey' }
      const now = clock.now()
      return database.system(async (tx) => {
        const removed = await removePasskey(tx, session.accountId, passkeyId)
        if (removed === 'unknown') return { tag: 'unknown_passkey' }
        if (removed === 'last') return { tag: 'last_way_in' }
        const fields = { reason: 'passkey_removed' }
        appendEvents(tx, [
          changeEvent(session, 'security.suspicious_activity', fields, now, context),
        ])
        return { tag: 'removed' }
      }, context)
    },
  }

  /**
   * Returns null when the authentication is fresh and strong enough. An account without a second factor uses its
   * password, because a passkey is then its first factor.
   */
  async function signInFirst(
    { session, token }: OwnAccount,
    level: 2 | 'highest',
    returnTo: string,
    context: MessageContext,
  ): Promise<SignInFirst | null> {
    const hasFactor = await tools.hasFactor(session.accountId, context)
    const verdict = await browserSessions.demand(
      {
        token,
        tenantId: session.tenantId,
        sub: session.sub,
        demand: { level: hasFactor ? level : 1, maxAgeSecs: SENSITIVE_SECS },
        flow: { returnTo, reason: { tag: 'sensitive' } },
      },
      context,
    )
    return verdict.tag === 'met' ? null : { tag: 'sign_in', location: verdict.location }
  }

  async function brandingFor(
    { tenantId }: BrowserSession,
    context: MessageContext,
  ): Promise<PageTenant> {
    const branding = await database.system((tx) => findTenantBranding(tx, tenantId), context)
    if (branding === undefined) throw new Error('the tenant of an open session was not found')
    return brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
  }

  function changeEvent(
    { tenantId, sub, id: sessionId }: BrowserSession,
    type: EventType,
    fields: Readonly<Record<string, unknown>>,
    now: Date,
    { requestId }: MessageContext,
  ) {
    return personEvent(random, { tenantId, type, sub, sessionId, requestId, fields }, now)
  }
}
