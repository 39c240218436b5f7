/** Sessions of the console: the tokens of a signed-in administrator, kept by the service and never in a page. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type ConsoleSessionsProtocol = {
  /** Begins a session. `token` is the value of its cookie, returned once. */
  open: Ask<OpenConsoleSession, { readonly tag: 'opened'; readonly token: string }>
  /** The session of a cookie. */
  read: Ask<{ readonly token: string }, ConsoleSessionFound | NoConsoleSession>
  /** The tenant that verified the domain of an address: a production environment first, then the oldest. */
  tenantOfEmail: Ask<
    { readonly email: string },
    { readonly tag: 'tenant'; readonly tenantId: string } | { readonly tag: 'no_tenant' }
  >
  /** Replaces the tokens after a refresh. */
  renew: Ask<
    { readonly session: ConsoleSessionName } & ConsoleTokensIssued,
    { readonly tag: 'renewed' }
  >
  /** Keeps an action that waits for a fresh second factor, in place of an earlier one. */
  keepAction: Ask<
    { readonly session: ConsoleSessionName; readonly action: ConsoleAction },
    { readonly tag: 'kept' }
  >
  /** Takes the action that waits. A second call finds none. */
  takeAction: Ask<
    { readonly session: ConsoleSessionName },
    { readonly tag: 'action'; readonly action: ConsoleAction } | { readonly tag: 'no_action' }
  >
  end: Ask<{ readonly session: ConsoleSessionName }, { readonly tag: 'ended' }>
}

export type ConsoleSessionName = { readonly tenantId: string; readonly id: string }

/** Sealed at rest. */
export type ConsoleTokens = {
  readonly accessToken: string
  readonly refreshToken: string
  /** How the page names the user, and the tenant. */
  readonly person: string
  readonly tenantName: string
}

export type ConsoleTokensIssued = {
  readonly tokens: ConsoleTokens
  readonly scopes: readonly string[]
  /** Lifetime of the access token. */
  readonly expiresInSecs: number
}

export type OpenConsoleSession = ConsoleTokensIssued & {
  readonly tenantId: string
  /** `sub` of the user in this tenant. */
  readonly subject: string
}

export type ConsoleSessionFound = {
  readonly tag: 'found'
  readonly id: string
  readonly tenantId: string
  readonly subject: string
  readonly tokens: ConsoleTokens
  readonly scopes: readonly string[]
  /** When the access token expires. */
  readonly accessUntil: Date
}
export type NoConsoleSession = { readonly tag: 'none' }

/** A call of the API that the user confirmed already. */
export type ConsoleAction = {
  readonly method: string
  readonly path: string
  /** JSON text, or null. */
  readonly body: string | null
  readonly idempotencyKey: string
  /** The page of the console to which the user returns. */
  readonly page: string
}

export const consoleSessions = address<ConsoleSessionsProtocol>('console-sessions', {
  idempotent: ['read', 'tenantOfEmail'],
})
