/** Lists and revokes issued credentials. */
import {
  endIssuedCredential,
  findIssuedCredential,
  type IssuedCredentialRow,
  issuedCredentialsOfTenant,
} from '../../../storage/oauth/credential-issuance.js'
import { statusListUri } from '../../../storage/oauth/status-lists.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { audited } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { pageOf } from '../../platform/paging.js'
import type { IssuedRecord } from './protocol.js'
import type { Handling } from './tools.js'

export const listIssuedCredentials: Handling<'listIssuedCredentials'> = async (
  tools,
  message,
  context,
) => {
  const { tenantId } = message.caller.principal
  const { items, next } = await pageOf(tools, tenantId, message, context, issuedCredentialsOfTenant)
  return { tag: 'listed', credentials: items.map((row) => recordOf(tools.baseUrl, row)), next }
}

export const revokeIssuedCredential: Handling<'revokeIssuedCredential'> = async (
  { database, clock, random, baseUrl },
  { caller, credentialId },
  { signal, requestId },
) => {
  const { tenantId } = caller.principal
  if (!isUuid(credentialId)) return { tag: 'unknown' }
  const row = await database.tenant(
    tenantId,
    async (tx) => {
      const now = clock.now()
      const revoked = await endIssuedCredential(tx, tenantId, credentialId, now)
      // A second request changes nothing and gets the same answer.
      if (revoked === undefined) return findIssuedCredential(tx, tenantId, credentialId)
      const { id, configurationId, userId } = revoked
      appendAudit(tx, [
        audited(caller, {
          id: random.uuid(),
          tenantId,
          type: 'admin.credential.revoked',
          occurredAt: now,
          resource: { type: 'credential', id },
          requestId,
          data: { credential_configuration_id: configurationId, user_id: userId },
        }),
      ])
      return revoked
    },
    { signal },
  )
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
