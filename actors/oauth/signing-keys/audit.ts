/** A replacement of signing keys in the audit chain of the control plane (decisions.md 17 and 18). */
import type { Random } from '../../../runtime/kernel/random.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { findControlPlane } from '../../../storage/identity/tenants.js'
import { type Caller, doneBy } from '../../domain/audit.js'
import type { Replaced, Tell } from './rotation.js'

/** Who asked for it; null where nobody did: age, or a command beside the service. */
export type AskedBy = { readonly caller: Caller; readonly requestId: string | undefined } | null

export function tellAudit(random: Random, now: Date, by: AskedBy): Tell {
  return async (tx, { retired, current }: Replaced) => {
    const tenant = await findControlPlane(tx)
    // Before the first start there is no chain yet, and no key that anybody knows.
    if (tenant === undefined) return
    appendAudit(tx, [
      {
        ...(by === null ? NOBODY : doneBy(by.caller)),
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

const NOBODY = { subject: null, actors: [], clientId: null, delegationId: null, ip: null } as const
