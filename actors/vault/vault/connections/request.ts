/** Requests to connect an account. */
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import {
  type ConnectionPerson,
  countConnectionsInTurn,
  delegatesTo,
  findConnectionPerson,
  insertConnection,
  redirectUrisOf,
} from '../../../../storage/vault/connections.js'
import { findConnectorByName } from '../../../../storage/vault/connectors.js'
import { httpsUrl } from '../../../domain/entities/https-url.js'
import { invalid } from '../../../domain/entities/messages.js'
import { eventContext } from '../../../domain/events.js'
import { granteeOf } from '../../../domain/grantee.js'
import { isUuid } from '../../../domain/ids.js'
import { isDirect, type Principal } from '../../../domain/principal.js'
import { createOnce } from '../../../platform/creation.js'
import { connectionEvent } from './events.js'
import type { ConnectionsHandler } from './needs.js'
import type { ConnectionRow } from '../../../domain/vault/connections.js'
import type { RequestConnection } from './protocol.js'

const CODE_BYTES = 24
/** Open requests of a person. */
const OPEN_MAX = 50
/** Requests of a day, whatever became of them: a person who denies is not asked without end, and rows stay few. */
const DAY_SECS = 86_400
const PER_AGENT_MAX = 200
const PER_TENANT_MAX = 5_000
/** Some time until the oldest of a day no longer counts. */
const RETRY_SECS = 600

export const requestConnection: ConnectionsHandler<'requestConnection'> = async (
  needs,
  message,
  context,
) => {
  const { clock, random, settings } = needs
  const { caller } = message
  const { principal } = caller
  const isService = principal.subjectType === 'service'
  if (!isService && (isDirect(principal) || granteeOf(principal).agentId === null))
    return { tag: 'token_direct' }
  if (!isService && message.userId !== null)
    return invalid('/user_id', 'Only for tokens of applications.')
  if (!isService && message.agentId !== null)
    return invalid('/agent_id', 'Only for tokens of applications.')
  if (isService && message.userId === null)
    return invalid('/user_id', 'Required for tokens of applications.')
  if (message.agentId !== null && !isUuid(message.agentId))
    return invalid('/agent_id', 'Must be the id of an agent.')
  if (message.expiresAt !== null && message.expiresAt <= clock.now())
    return invalid('/expires_at', 'Must be in the future.')
  return createOnce(needs, message, context, async (tx, tenantId) => {
    const now = clock.now()
    const connector = await findConnectorByName(tx, tenantId, message.connector)
    if (connector === undefined) return invalid('/connector', 'The tenant has no such connector.')
    const other = message.scopes?.findIndex((scope) => !connector.scopes.includes(scope)) ?? -1
    if (other >= 0) return invalid(`/scopes/${other}`, 'Must be a scope of the connector.')
    // Without a scope, providers give what they choose.
    if (message.scopes?.length === 0 && connector.scopes.length > 0)
      return invalid('/scopes', 'Must name a scope of the connector.')
    if (!(await mayReturn(tx, tenantId, principal, message.returnTo)))
      return { tag: 'redirect_refused' } as const
    const person = await personOf(tx, tenantId, message)
    if (person === undefined) return invalid('/user_id', 'The tenant has no such active user.')
    const agentId = isService ? message.agentId : granteeOf(principal).agentId
    if (
      isService &&
      agentId !== null &&
      !(await delegatesTo(tx, tenantId, person.sub, agentId, now))
    )
      return { tag: 'delegation_required' } as const
    const since = new Date(now.getTime() - DAY_SECS * 1000)
    const made = await countConnectionsInTurn(tx, tenantId, agentId, since)
    if (made.ofAgent >= PER_AGENT_MAX || made.ofTenant >= PER_TENANT_MAX)
      return { tag: 'too_many', retryAfterSecs: RETRY_SECS } as const
    const code = random.token(CODE_BYTES)
    const expiresInSecs = settings.connection_ttl_secs
    const row: Omit<ConnectionRow, 'status' | 'updatedAt'> = {
      tenantId,
      id: random.uuid(),
      connectorId: connector.id,
      connector: connector.name,
      userId: person.id,
      subject: person.sub,
      requesterType: isService ? 'service' : 'agent',
      requesterId: isService ? principal.subject : agentId!,
      agentId,
      scopes: message.scopes === null ? connector.scopes : [...new Set(message.scopes)],
      reason: message.reason,
      returnTo: message.returnTo,
      maxBytes: message.maxBytes,
      grantExpiresAt: message.expiresAt,
      accountLabel: null,
      credentialId: null,
      grantId: null,
      code,
      codeExpiresAt: new Date(now.getTime() + expiresInSecs * 1000),
      createdAt: now,
    }
    if (!(await insertConnection(tx, row, OPEN_MAX)))
      return { tag: 'full', most: OPEN_MAX } as const
    const stored = { ...row, status: 'pending', updatedAt: now } as const
    const by = eventContext(needs, caller, context)
    appendEvents(tx, [connectionEvent('vault.connection.requested', stored, by)])
    return { tag: 'created', id: row.id, code, expiresInSecs, replayed: false } as const
  })
}

function personOf(
  tx: Transaction,
  tenantId: string,
  { caller: { principal }, userId }: RequestConnection,
): Promise<ConnectionPerson | undefined> {
  if (userId === null)
    return findConnectionPerson(tx, tenantId, { id: null, sub: principal.subject })
  const name = isUuid(userId) ? { id: userId, sub: null } : { id: null, sub: userId }
  return findConnectionPerson(tx, tenantId, name)
}

/** True for an address on the host of a redirect URI of an active application. */
async function mayReturn(
  tx: Transaction,
  tenantId: string,
  { subjectType, subject }: Principal,
  returnTo: string | null,
): Promise<boolean> {
  if (returnTo === null) return true
  const url = httpsUrl(returnTo, { query: true })
  if (url === null) return false
  const uris = await redirectUrisOf(tx, tenantId, subjectType === 'service' ? subject : null)
  return uris.some(({ uri }) => URL.canParse(uri) && new URL(uri).host === url.host)
}

/** Where the application waits, with the result. */
export function returnAddress(
  { returnTo, id }: Pick<ConnectionRow, 'returnTo' | 'id'>,
  status: 'active' | 'denied' | 'failed',
): string | null {
  if (returnTo === null) return null
  const url = new URL(returnTo)
  url.searchParams.set('status', status)
  url.searchParams.set('connection_id', id)
  return url.href
}
