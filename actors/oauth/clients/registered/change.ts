/** Deletes applications and replaces their secrets. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  rotateApplicationSecretRow,
  type ApplicationRow,
  lockApplication,
  newClientSecret,
  deleteApplicationRow,
  removeApplicationSecrets,
} from '../../../../storage/oauth/applications.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { Caller } from '../../../domain/audit.js'
import { isUuid } from '../../../domain/ids.js'
import { recordAction } from './audit.js'
import type { ApplicationUnknown } from './protocol.js'
import type { ApplicationsNeeds, Handling } from './read.js'
import { needsSecret } from './rows.js'
import { powersBeyond } from '../../../domain/scopes.js'
import { inTenant } from '../../../platform/in-tenant.js'

export const deleteApplication: Handling<'deleteApplication'> = (needs, message, context) =>
  changing(needs, message, context, async (tx, application) => {
    await deleteApplicationRow(tx, application.tenantId, application.id)
    const data = { name: application.name }
    recordAction(tx, needs, message.caller, context, { did: 'deleted', id: application.id, data })
    return { tag: 'removed' } as const
  })

export const rotateApplicationSecret: Handling<'rotateApplicationSecret'> = (
  needs,
  message,
  context,
) =>
  changing(needs, message, context, async (tx, row) => {
    const { clock, random } = needs
    const { caller, overlapSecs } = message
    if (!needsSecret(row)) return { tag: 'no_secret' }
    // Who has the secret can act as the client.
    const beyond = powersBeyond(row.scopes, caller.principal.scopes)
    if (beyond.length > 0) return { tag: 'forbidden', scopes: beyond }
    const { secret, sha256 } = newClientSecret(random)
    const now = clock.now()
    const { tenantId, id } = row
    await removeApplicationSecrets(tx, tenantId, id, now)
    await rotateApplicationSecretRow(tx, {
      tenantId,
      applicationId: id,
      secretId: random.uuid(),
      sha256,
      now,
      othersUntil: new Date(now.getTime() + overlapSecs * 1000),
    })
    const data = { overlap_secs: overlapSecs }
    recordAction(tx, needs, caller, context, { did: 'secret_rotated', id: row.id, data })
    return { tag: 'rotated', clientId: id, clientSecret: secret, rotatedAt: now }
  })

/** Runs `change` on the locked application of the tenant, if it exists. */
export async function changing<T>(
  { database }: ApplicationsNeeds,
  { caller, applicationId }: { readonly caller: Caller; readonly applicationId: string },
  context: MessageContext,
  change: (tx: Transaction, row: ApplicationRow) => Promise<T>,
): Promise<T | ApplicationUnknown> {
  const { tenantId } = caller.principal
  if (!isUuid(applicationId)) return { tag: 'unknown' }
  return inTenant<T | ApplicationUnknown>(database, tenantId, context, async (tx) => {
    const row = await lockApplication(tx, tenantId, applicationId)
    if (row === undefined) return { tag: 'unknown' }
    tx.forget([applicationId])
    return change(tx, row)
  })
}

/**
 * Creates a secret for a client that now needs one, and removes the secret of one that does not.
 * @returns the new secret, or null.
 */
export async function changeSecret(
  tx: Transaction,
  { clock, random }: Pick<ApplicationsNeeds, 'clock' | 'random'>,
  before: ApplicationRow,
  isNeeded: boolean,
): Promise<string | null> {
  const { tenantId, id: applicationId } = before
  if (!isNeeded) await removeApplicationSecrets(tx, tenantId, applicationId, 'all')
  if (!isNeeded || needsSecret(before)) return null
  const { secret, sha256 } = newClientSecret(random)
  const now = clock.now()
  const rotation = { tenantId, applicationId, secretId: random.uuid(), sha256, now }
  await rotateApplicationSecretRow(tx, { ...rotation, othersUntil: now })
  return secret
}
