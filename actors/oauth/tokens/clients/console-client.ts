/**
 * The client of the console in a tenant. Its application is written at the first sign-in. Its `metadata_url` is the
 * client_id, so that it is not listed among the applications of the tenant and no secret or change applies to it.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { findClient, provideBuiltInClient } from '../../../../storage/oauth/applications.js'
import type { Database } from '../../../../storage/platform/sql.js'
import {
  CONSOLE_CALLBACK_PATH,
  CONSOLE_CLIENT_ID,
  CONSOLE_SCOPES,
} from '../../../domain/people/console-client.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { Client } from './clients.js'
import type { OAuthForm } from '../form.js'
import type { BatchedLookups } from '../issue/batched-lookups.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

const NAME = 'Console'

type ConsoleClientNeeds = WriteNeeds & {
  readonly issuer: string
}

/** The id of the console's application in the tenant. This build determines its members. */
export async function provideConsoleClient(
  { database, clock, random, issuer }: ConsoleClientNeeds,
  tenantId: string,
  context: MessageContext,
): Promise<string> {
  const client = {
    tenantId,
    id: random.uuid(),
    clientId: CONSOLE_CLIENT_ID,
    name: NAME,
    redirectUri: `${issuer}${CONSOLE_CALLBACK_PATH}`,
    scopes: [...CONSOLE_SCOPES],
    now: clock.now(),
  }
  return inTenant(database, tenantId, context, (tx) => provideBuiltInClient(tx, client))
}

/** The client of the code or refresh token in the form, if it is the console's. */
export async function consoleClientOf(
  { database, lookups }: { readonly database: Database; readonly lookups: BatchedLookups },
  form: OAuthForm,
): Promise<Client | null> {
  const code = form.get('code')
  const token = form.get('refresh_token') ?? form.get('token')
  const row =
    code !== null
      ? await lookups.code(sha256(code))
      : token !== null
        ? await lookups.refreshToken(sha256(token))
        : undefined
  if (row === undefined) return null
  // The tenant is unknown until the grant is found, so the look-up crosses tenants.
  const client = await database.system((tx) => findClient(tx, row.clientId), { pool: 'identity' })
  const isConsole = client?.metadataUrl === CONSOLE_CLIENT_ID
  if (!isConsole || client.status !== 'active' || client.tenantStatus !== 'active') return null
  return { kind: 'application', confidential: false, row: client }
}
