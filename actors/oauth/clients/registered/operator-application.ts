/**
 * Creates a control-plane application that reads data of the whole deployment (`metrics:read`). It
 * cannot be created over HTTP. The operator creates it on the command line.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { insertApplication, newClientSecret } from '../../../../storage/oauth/applications.js'
import { withoutCaller } from '../../../domain/audit.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { findControlPlane } from '../../../../storage/identity/tenants.js'
import { OPERATOR_APPLICATION_SCOPES } from '../../../domain/scopes.js'
import { powersOf } from './audit.js'

type OperatorApplication = { readonly name: string; readonly scopes: readonly string[] }

type OperatorApplicationMade =
  | {
      readonly tag: 'made'
      readonly clientId: string
      /** Returned once. Only its hash is stored. */
      readonly clientSecret: string
      readonly scopes: readonly string[]
    }
  /** The scope is not allowed for such an application. */
  | { readonly tag: 'unknown_scope'; readonly scope: string }
  /** The service has not started on this database yet. */
  | { readonly tag: 'no_control_plane' }

/** Needs a transaction that crosses tenants. */
export async function createOperatorApplication(
  tx: Transaction,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { name, scopes }: OperatorApplication,
): Promise<OperatorApplicationMade> {
  const known: readonly string[] = OPERATOR_APPLICATION_SCOPES
  const scope = scopes.find((one) => !known.includes(one))
  if (scope !== undefined) return { tag: 'unknown_scope', scope }
  const controlPlane = await findControlPlane(tx)
  if (controlPlane === undefined) return { tag: 'no_control_plane' }
  const { secret, sha256 } = newClientSecret(random)
  const now = clock.now()
  const application = await insertApplication(tx, {
    id: random.uuid(),
    tenantId: controlPlane.id,
    name,
    redirectUris: [],
    responseTypes: [],
    grantTypes: ['client_credentials'],
    scopes: [...scopes],
    createdAt: now,
    secretSha256: sha256,
  })
  appendAudit(tx, [
    withoutCaller({
      id: random.uuid(),
      tenantId: controlPlane.id,
      type: 'admin.application.created',
      occurredAt: now,
      resource: { type: 'application', id: application.id },
      data: powersOf(application),
    }),
  ])
  return { tag: 'made', clientId: application.id, clientSecret: secret, scopes }
}
