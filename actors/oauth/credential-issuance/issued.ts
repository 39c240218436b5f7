/** Lists and revokes issued credentials. */
import {
  revokeIssuedCredentialRow,
  findIssuedCredential,
  type IssuedCredentialRow,
  listIssuedCredentialRows,
} from '../../../storage/oauth/credential-issuance.js'
import { statusListUri } from '../../../storage/oauth/status-lists.js'
import { isUuid } from '../../domain/ids.js'
import { pageOf } from '../../platform/paging.js'
import { recordAudit } from '../../platform/record-audit.js'
import type { IssuedRecord } from './protocol.js'
import type { Handling } from './tools.js'
import { inTenant } from '../../platform/in-tenant.js'

export const listIssuedCredentials: Handling<'listIssuedCredentials'> = async (
  tools,
  message,
  context,
) => {
  const { tenantId } = message.caller.principal
  const { items, next } = await pageOf(tools, tenantId, message, context, listIssuedCredentialRows)
  return { tag: 'listed', credentials: items.map((row) => recordOf(tools.baseUrl, row)), next }
}

export const revokeIssuedCredential: Handling<'revokeIssuedCredential'> = async (
  tools,
  { caller, credentialId },
  context,
) => {
  const { database, clock, baseUrl } = tools
  const { tenantId } = caller.principal
  if (!isUuid(credentialId)) return { tag: 'unknown' }
  const row = await inTenant(database, tenantId, context, async (tx) => {
    const revoked = await revokeIssuedCredentialRow(tx, tenantId, credentialId, clock.now())
    // A second request changes nothing and gets the same answer.
    if (revoked === undefined) return findIssuedCredential(tx, tenantId, credentialId)
    const { id, configurationId, userId } = revoked
    recordAudit(tx, tools, caller, context, {
      type: 'admin.credential.revoked',
      resource: { type: 'credential', id },
      data: { credential_configuration_id: configurationId, user_id: userId },
    })
    return revoked
  })
  return row === undefined ? { tag: 'unknown' } : { tag: 'found', record: recordOf(baseUrl, row) }
}

function recordOf(baseUrl: string, row: IssuedCredentialRow): IssuedRecord {
  const { tenantId: _tenant, createdAt: issuedAt, listId, idx, ...record } = row
  return {
    ...record,
    issuedAt,
    status: row.revokedAt === null ? 'valid' : 'revoked',
    statusList: { uri: statusListUri(baseUrl, listId), idx },
  }
}
