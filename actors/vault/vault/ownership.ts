/**
 * Operations that only the owner of a credential may do: widen its hosts, refer to its token from another
 * credential, read it, rotate its secret, grant it (docs/reference/vault.md).
 */
import { type Denied, denied } from '../../domain/vault/denied.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { VaultCredentialRow } from '../../../storage/vault/vault-credentials.js'
import { ownsAgentCredentials } from '../../../storage/vault/vault-grants.js'
import { FRESH_FACTORS_SECS, hasFreshFactors } from '../../domain/assurance.js'
import { isUuid } from '../../domain/ids.js'
import { isDirect, type Principal } from '../../domain/principal.js'
import type { DirectTokenNeeded, OwnerRefused, StepUpNeeded } from './protocol.js'

type Owned = Pick<VaultCredentialRow, 'tenantId' | 'ownerType' | 'ownerId'>

/**
 * True for the owner. If the owner is an agent of the tenant's organization, also true for the owners of
 * the organization. A delegated token counts as its subject.
 */
async function isOwner(
  tx: Transaction,
  { tenantId, ownerType, ownerId }: Owned,
  { subject, subjectType }: Principal,
): Promise<boolean> {
  if (ownerType === subjectType && ownerId === subject) return true
  if (ownerType !== 'agent' || !isUuid(ownerId) || subjectType === 'service') return false
  return ownsAgentCredentials(tx, tenantId, ownerId, { subjectType, subject })
}

/** Why the principal may not do an owner's operation; undefined if it may. */
export async function ownerRefusal(
  tx: Transaction,
  row: Owned,
  principal: Principal,
  nowSecs: number,
): Promise<OwnerRefused | undefined> {
  if (!(await isOwner(tx, row, principal))) {
    return denied('not_owner', 'Only the owner of the credential may do this.')
  }
  if (!isDirect(principal)) return { tag: 'direct_token_needed' }
  return stepUp(principal, nowSecs)
}

/** Why the principal may not grant the credential; undefined if it may. */
export async function grantingRefusal(
  tx: Transaction,
  row: Owned & Pick<VaultCredentialRow, 'nonExportable'>,
  principal: Principal,
): Promise<Denied | DirectTokenNeeded | undefined> {
  if (!(await isOwner(tx, row, principal))) {
    return denied('not_owner', 'Only the owner of the credential can grant it.')
  }
  // A grantee can export an exportable secret, so such a grant needs a direct token.
  return row.nonExportable || isDirect(principal) ? undefined : { tag: 'direct_token_needed' }
}

function stepUp(principal: Principal, nowSecs: number): StepUpNeeded | undefined {
  if (hasFreshFactors(principal, nowSecs)) return undefined
  return { tag: 'step_up', maxAgeSecs: FRESH_FACTORS_SECS }
}
