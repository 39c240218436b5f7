/** Events of connections, and who causes them. */
import type { ConnectionRow } from '../../../domain/vault/connections.js'
import type { Caller } from '../../../domain/audit.js'
import { catalogued, eventBy, type EventContext } from '../../../domain/events.js'
import type { TenantId } from '../../../domain/ids.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export type ConnectionEvent =
  | 'vault.connection.requested'
  | 'vault.connection.activated'
  | 'vault.connection.denied'
  | 'vault.connection.expired'
  | 'vault.connection.needs_reauthorization'
  | 'vault.connection.revoked'

const resourceOf = ({ id }: Pick<ConnectionRow, 'id'>) => ({ type: 'connection', id })

const fieldsOf = (row: ConnectionRow) => ({
  connector: row.connector,
  user_id: row.userId,
  ...(row.agentId !== null && { agent_id: row.agentId }),
  ...(row.credentialId !== null && { credential_id: row.credentialId }),
  scopes: row.scopes,
})

export const connectionEvent = (type: ConnectionEvent, row: ConnectionRow, by: EventContext) =>
  eventBy(type, resourceOf(row), by, fieldsOf(row), row.tenantId)

/** An event that no caller causes. */
export const ownConnectionEvent = (
  type: ConnectionEvent,
  row: ConnectionRow,
  { clock, random }: Pick<WriteNeeds, 'clock' | 'random'>,
) => ({
  id: random.uuid(),
  tenantId: row.tenantId,
  occurredAt: clock.now(),
  ...catalogued(
    type,
    {
      actor: { type: 'service', id: 'vault' },
      resource: resourceOf(row),
      requestId: undefined,
    },
    fieldsOf(row),
  ),
})

/** The client of what a person does on a hosted page. */
const HOSTED_PAGES = 'hosted-pages'

/** A person on a hosted page, as the caller of events. */
export const personAsCaller = (
  { tenantId, sub }: { readonly tenantId: string; readonly sub: string },
  address: string,
): Caller =>
  callerAs({ tenantId, subject: sub, subjectType: 'human', clientId: HOSTED_PAGES }, address)

/** The upkeep of this service. */
export const vaultAsCaller = (tenantId: string): Caller =>
  callerAs({ tenantId, subject: 'vault', subjectType: 'service', clientId: 'vault' }, '')

const callerAs = (
  {
    tenantId,
    ...who
  }: { readonly tenantId: string } & Pick<
    Caller['principal'],
    'subject' | 'subjectType' | 'clientId'
  >,
  address: string,
): Caller => ({
  principal: {
    ...who,
    tenantId: tenantId as TenantId,
    organizationId: null,
    scopes: [],
    audience: [],
    actors: [],
    delegationId: null,
    sessionId: null,
    acr: null,
    authTimeSecs: null,
    jkt: null,
    tokenId: '',
    expiresAtSecs: 0,
  },
  address,
})
