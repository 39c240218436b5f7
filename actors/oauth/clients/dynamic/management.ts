/** The management of a registration by its client (RFC 7592). */
import { appendAudit } from '../../../../storage/operations/audit.js'
import {
  findApplication,
  findClient,
  isSecretOf,
  lockApplication,
  deleteApplicationRow,
  secretsInForce,
  replaceApplicationRow,
} from '../../../../storage/oauth/applications.js'
import { writeRegistration } from '../../../../storage/oauth/client-registration.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { asId } from '../../../domain/ids.js'
import { changeSecret } from '../registered/change.js'
import { needsSecret, optionalMembers } from '../registered/rows.js'
import { clientKind } from '../registered/rules.js'
import { authorizeManagement, denied } from './admission.js'
import { refused } from './metadata.js'
import type { MetadataRefused, Registration } from './protocol.js'
import { auditOf, type Handling, registrationOf } from './register.js'
import { validateMetadata } from './validate-metadata.js'
import { inTenant } from '../../../platform/in-tenant.js'

const DELETED = denied('the client was deleted')

export const readRegistration: Handling<'readRegistration'> = async (
  needs,
  { clientId, authorization },
  context,
) => {
  const found = await authorizeManagement(needs, clientId, authorization, context)
  if (found.tag !== 'managed') return found
  const { tenantId, tenantSlug, handedOn } = found.row
  const row = await inTenant(needs.database, tenantId, context, (tx) =>
    findApplication(tx, tenantId, clientId),
  )
  return row === undefined
    ? DELETED
    : { tag: 'found', registration: registrationOf(row, handedOn, tenantSlug, null, found.token) }
}

export const replaceRegistration: Handling<'replaceRegistration'> = async (
  needs,
  { clientId, metadata, authorization, address },
  context,
) => {
  const { database, clock } = needs
  const found = await authorizeManagement(needs, clientId, authorization, context)
  if (found.tag !== 'managed') return found
  const { tenantId, tenantSlug } = found.row
  const read = await validateMetadata(needs, metadata, found.row, context)
  if (read.tag === 'refused') return read
  const named = metadata['client_id']
  if (typeof named !== 'string' || asId(named) !== clientId)
    return refused('client_id: must be the id of this registration (RFC 7592 section 2.2)')
  const { draft, handedOn } = read
  const secretSent = metadata['client_secret'] ?? null
  const outcome = await inTenant(
    database,
    tenantId,
    context,
    async (tx): Promise<Registration | MetadataRefused | null> => {
      const before = await lockApplication(tx, tenantId, clientId)
      if (before === undefined) return null
      tx.forget([clientId])
      if (secretSent !== null && !(await hasSecret(tx, clientId, secretSent, clock.now())))
        return refused('client_secret: not the issued secret')
      const kind = clientKind(draft, before)!
      const secret = await changeSecret(tx, needs, before, needsSecret(kind))
      const row = await replaceApplicationRow(
        tx,
        {
          ...kind,
          id: clientId,
          tenantId,
          name: draft.name,
          redirectUris: [...draft.redirectUris],
          updatedAt: clock.now(),
          // Settings of the operator are not part of the metadata and stay unchanged.
          audience: before.audience,
          requirePkce: before.requirePkce,
          defaultScopes: before.defaultScopes,
          ...optionalMembers(draft),
        },
        before,
      )
      const kept = { handedOn, tokenSha256: null, bounds: null }
      await writeRegistration(tx, { tenantId, applicationId: clientId, ...kept })
      const client = { tenantId, clientId, address, tokenId: null }
      appendAudit(tx, [auditOf(needs, 'admin.application.updated', client, context)])
      return registrationOf(row, handedOn, tenantSlug, secret, found.token)
    },
  )
  if (outcome === null) return DELETED
  return 'tag' in outcome ? outcome : { tag: 'found', registration: outcome }
}

export const deleteRegistration: Handling<'deleteRegistration'> = async (
  needs,
  { clientId, authorization, address },
  context,
) => {
  const found = await authorizeManagement(needs, clientId, authorization, context)
  if (found.tag !== 'managed') return found
  const { tenantId } = found.row
  const removed = await inTenant(needs.database, tenantId, context, async (tx) => {
    if (!(await deleteApplicationRow(tx, tenantId, clientId))) return false
    tx.forget([clientId])
    const client = { tenantId, clientId, address, tokenId: null }
    appendAudit(tx, [auditOf(needs, 'admin.application.deleted', client, context)])
    return true
  })
  return removed ? { tag: 'removed' } : DELETED
}

async function hasSecret(
  tx: Transaction,
  clientId: string,
  stated: unknown,
  now: Date,
): Promise<boolean> {
  if (typeof stated !== 'string') return false
  const client = await findClient(tx, clientId)
  return client !== undefined && isSecretOf(stated, secretsInForce(client, now))
}
