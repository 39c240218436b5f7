/** Keeps the sessions of the console. Their tokens are sealed under the data key of the tenant. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import {
  consolePendingContext,
  consoleTokensContext,
  deleteConsoleSession,
  findConsoleSession,
  findTenantOfDomain,
  insertConsoleSession,
  keepConsoleAction,
  renewConsoleTokens,
  takeConsoleAction,
} from '../../../storage/identity/console/sessions.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import { sha256 } from '../../domain/secret-hashes.js'
import {
  type ConsoleAction,
  consoleSessions,
  type ConsoleSessionsProtocol,
  type ConsoleTokens,
} from './protocol.js'
import { mailDomain } from '../../domain/email.js'
import { inTenant } from '../../platform/in-tenant.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

const TOKEN_BYTES = 32
/** Lifetime of a session. Its browser session may end it earlier. */
const SESSION_MS = 12 * 60 * 60_000

type ConsoleSessionsNeeds = WriteNeeds & {
  readonly sealer: Sealer
}

export const consoleSessionsActor = defineActor<ConsoleSessionsProtocol, ConsoleSessionsNeeds>({
  address: consoleSessions,
  asks: {},
  mailbox: { capacity: 512, inflightMax: 64 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: ({ database, sealer, clock, random }) => {
    const sealed = (tenantId: string, context: string, value: ConsoleTokens | ConsoleAction) =>
      sealer.seal(tenantId, context, Buffer.from(JSON.stringify(value)))
    const opened = async (tenantId: string, context: string, value: Uint8Array) => {
      const text = Buffer.from(await sealer.open(tenantId, context, value)).toString('utf8')
      return JSON.parse(text) as unknown
    }
    const after = (secs: number) => new Date(clock.now().getTime() + secs * 1000)

    return {
      async open({ tenantId, subject, tokens, scopes, expiresInSecs }, context) {
        const id = random.uuid()
        const token = random.token(TOKEN_BYTES)
        const tokensSealed = await sealed(tenantId, consoleTokensContext(id), tokens)
        const createdAt = clock.now()
        const session = {
          tenantId,
          id,
          tokenSha256: sha256(token),
          subject,
          tokensSealed,
          scopes: [...scopes],
          accessUntil: after(expiresInSecs),
          createdAt,
          expiresAt: new Date(createdAt.getTime() + SESSION_MS),
        }
        await inTenant(database, tenantId, context, (tx) => insertConsoleSession(tx, session))
        return { tag: 'opened', token }
      },

      async read({ token }, context) {
        // The tenant is unknown until the session is found, so the look-up crosses tenants.
        const row = await database.system(
          (tx) => findConsoleSession(tx, sha256(token), clock.now()),
          context,
        )
        if (row === undefined) return { tag: 'none' }
        const { tenantId, id, subject, scopes, accessUntil, tokensSealed } = row
        const tokens = await opened(tenantId, consoleTokensContext(id), tokensSealed)
        return {
          tag: 'found',
          id,
          tenantId,
          subject,
          scopes,
          accessUntil,
          tokens: tokens as ConsoleTokens,
        }
      },

      async tenantOfEmail({ email }, context) {
        // The domain decides, so what stands before it may be missing.
        const domain = mailDomain(email.slice(email.lastIndexOf('@') + 1))
        if (domain === undefined) return { tag: 'no_tenant' }
        // The tenant is what the look-up is for, so it crosses tenants.
        const tenantId = await database.system((tx) => findTenantOfDomain(tx, domain), context)
        return tenantId === undefined ? { tag: 'no_tenant' } : { tag: 'tenant', tenantId }
      },

      async renew({ session: { tenantId, id }, tokens, scopes, expiresInSecs }) {
        const tokensSealed = await sealed(tenantId, consoleTokensContext(id), tokens)
        const accessUntil = after(expiresInSecs)
        // Ignores the request's abort signal: the previous refresh token is used up.
        await database.tenant(tenantId, (tx) =>
          renewConsoleTokens(tx, { tenantId, id, tokensSealed, scopes: [...scopes], accessUntil }),
        )
        return { tag: 'renewed' }
      },

      async keepAction({ session, action }, context) {
        const { tenantId, id } = session
        const value = await sealed(tenantId, consolePendingContext(id), action)
        await inTenant(database, tenantId, context, (tx) => keepConsoleAction(tx, session, value))
        return { tag: 'kept' }
      },

      async takeAction({ session }, context) {
        const { tenantId, id } = session
        const value = await inTenant(database, tenantId, context, (tx) =>
          takeConsoleAction(tx, session),
        )
        if (value === undefined) return { tag: 'no_action' }
        const action = await opened(tenantId, consolePendingContext(id), value)
        return { tag: 'action', action: action as ConsoleAction }
      },

      async end({ session }) {
        await database.tenant(session.tenantId, (tx) => deleteConsoleSession(tx, session))
        return { tag: 'ended' }
      },
    }
  },
})
