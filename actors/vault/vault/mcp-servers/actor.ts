/** Manages the MCP servers of a tenant. */
import { defineActor, type MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { isMcpSlugTaken, mcpServerTable } from '../../../../storage/vault/mcp-servers.js'
import { findVaultCredential } from '../../../../storage/vault/vault-credentials.js'
import type { Caller } from '../../../domain/audit.js'
import type { Change } from '../../../domain/entities/entity.js'
import { mcpServer, type McpServerMembers } from '../../../domain/entities/mcp-server.js'
import { invalid, type WriteRefused } from '../../../domain/entities/messages.js'
import { isForEgress } from '../../../domain/entities/vault.js'
import { isUuid } from '../../../domain/ids.js'
import { entityHandlers } from '../../../platform/entity-handlers.js'
import { inTenant } from '../../../platform/in-tenant.js'
import { type FaultOf, URL_FAULTS } from '../../../platform/outbound-http/targets.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'
import { grantingRefusal } from '../ownership.js'
import { type McpServersProtocol, mcpServers, type ServerRefused } from './protocol.js'

const SERVERS_MAX = 100

type Needs = WriteNeeds & {
  readonly urlFaultOf: FaultOf
  /** The egress proxy of this process forgets what it knows of the tenant. */
  readonly changed: (tenantId: string) => Promise<void>
}

export const mcpServersActor = defineActor<McpServersProtocol, Needs>({
  address: mcpServers,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 64 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    entityHandlers<McpServerMembers, ServerRefused>(needs, {
      entity: mcpServer,
      table: mcpServerTable,
      most: SERVERS_MAX,
      faultOf: ({ url }) => {
        const fault = needs.urlFaultOf(url)
        return fault && invalid('/url', URL_FAULTS[fault])
      },
      foreignFault: (change, caller, context, id) =>
        credentialFault(needs, change, caller, context, id),
      isConflict: isMcpSlugTaken,
      auditOf: ({ slug, name }) => ({ slug, name }),
      powersOf: ({ url, credentialId }) => ({ url, credential_id: credentialId }),
      changed: (tenantId) => void needs.changed(tenantId),
    }),
})

/** Who sets a credential or moves its server decides where it is sent, so only who may grant it may do so. */
function credentialFault(
  { database }: Needs,
  change: Change<McpServerMembers>,
  caller: Caller,
  context: MessageContext,
  id: string | null,
): Promise<ServerRefused | WriteRefused | undefined> {
  const { credentialId, url } = change
  if (credentialId === undefined && url === undefined) return Promise.resolve(undefined)
  const { tenantId } = caller.principal
  return inTenant(database, tenantId, context, async (tx) => {
    const before = id === null ? undefined : await mcpServerTable.find(tx, tenantId, id)
    if (id !== null && before === undefined) return undefined
    const called = {
      url: url ?? before!.url,
      credentialId: credentialId === undefined ? before!.credentialId : credentialId,
    }
    const { credentialId: wanted } = called
    return wanted === null ? undefined : usable(tx, tenantId, wanted, called.url, caller)
  })
}

async function usable(
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  url: string,
  { principal }: Caller,
): Promise<ServerRefused | WriteRefused | undefined> {
  const row = isUuid(credentialId)
    ? await findVaultCredential(tx, tenantId, credentialId)
    : undefined
  if (row === undefined || row.status === 'revoked')
    return invalid('/credential_id', 'The tenant has no such active credential.')
  const refusal = await grantingRefusal(tx, row, principal)
  if (refusal !== undefined) return refusal
  if (!isForEgress(row.credentialType, row.authScheme))
    return invalid('/credential_id', 'The egress proxy does not send such a credential.')
  return URL.canParse(url) && row.allowedHosts.includes(new URL(url).hostname)
    ? undefined
    : invalid('/url', 'The allowed_hosts of the credential do not have the host.')
}
