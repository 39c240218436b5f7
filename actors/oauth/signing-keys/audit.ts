/** Writes the audit entry of a signing key rotation to the audit chain of the control plane. */
import type { Random } from '../../../runtime/kernel/random.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { findControlPlane } from '../../../storage/identity/tenants.js'
import { type Caller, doneBy } from '../../domain/audit.js'
import type { Replaced, WriteAudit } from './rotation.js'

/** Who requested the rotation. Null if it is due by age, or a CLI command requested it. */
export type AskedBy = { readonly caller: Caller; readonly requestId: string | undefined } | null

export function auditRotation(random: Random, now: Date, by: AskedBy): WriteAudit {
  return async (tx, { retired, current }: Replaced) => {
    const tenant = await findControlPlane(tx)
    // Before the first start there is no audit chain, and no key has been published.
    if (tenant === undefined) return
    appendAudit(tx, [
      {
        ...(by === null ? NO_CALLER : doneBy(by.caller)),
        id: random.uuid(),
        tenantId: tenant.id,
        type: 'admin.signing_keys.rotated',
        occurredAt: now,
        grantId: null,
        resource: null,
        outcome: 'success',
        requestId: by?.requestId ?? null,
        data: {
          current,
          retired: retired.map(({ kid, verifiableUntil }) => ({
            kid,
            verifiable_until: verifiableUntil.toISOString(),
          })),
        },
      },
    ])
  }
}

const NO_CALLER = {
  subject: null,
  actors: [],
  clientId: null,
  delegationId: null,
  ip: null,
} as const
