/**
 * The client of the console: an ordinary public client of this service, built in, with one client_id in all tenants
 * (docs/guides/operations/console.md).
 */
import { APPOINTED_SCOPES, HUMAN_SCOPES, type Scope } from '../scopes.js'

export const CONSOLE_CLIENT_ID = 'svc_console'
export const CONSOLE_CALLBACK_PATH = '/console/callback'

/** What the console asks for. The user gets those scopes of them that the user's role has. */
export const CONSOLE_SCOPES: readonly Scope[] = [
  ...HUMAN_SCOPES.owner.filter((scope) => !['offline_access', 'phone', 'address'].includes(scope)),
  ...APPOINTED_SCOPES,
]
