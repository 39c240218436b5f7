/**
 * What only the owner of a credential may do: widen where it is used, let another credential carry its
 * token, export it, replace its secret. decisions.md 24, vault ownership.
 */
import type { Transaction } from '../../../storage/platform/sql.js'
import type { VaultCredentialRow } from '../../../storage/vault/vault-credentials.js'
import { ownsAgentCredentials } from '../../../storage/vault/vault-owners.js'
import { isUuid } from '../../domain/ids.js'
import { isDirect, type Principal } from '../../domain/principal.js'
import type { DirectTokenNeeded, OwnerRefused, StepUpNeeded, VaultDenied } from './protocol.js'

/** A human has signed in with two factors within this (interface.md, Limits). */
const FRESH_SECS = 300

type Owned = Pick<VaultCredentialRow, 'tenantId' | 'ownerType' | 'ownerId'>

/**
 * True for the owner itself, and for owners of the tenant's organization where the owner is an agent
 * of that organization. A delegated token counts as the person whom it names.
 */
export async function isOwner(
  tx: Transaction,
  { tenantId, ownerType, ownerId }: Owned,
  { subject, subjectType }: Principal,
): Promise<boolean> {
  if (ownerType === subjectType && ownerId === subject) return true
  if (ownerType !== 'agent' || !isUuid(ownerId) || subjectType === 'service') return false
  return ownsAgentCredentials(tx, tenantId, ownerId, { subjectType, subject })
}

/** Why the principal may not do what is the owner's alone; undefined: it may. */
export async function ownerRefusal(
  tx: Transaction,
  row: Owned,
  principal: Principal,
  nowSecs: number,
): Promise<OwnerRefused | undefined> {
  if (!(await isOwner(tx, row, principal))) {
    return denied('Only the owner of the credential may do this.')
  }
  if (!isDirect(principal)) return { tag: 'direct_token_needed' }
  return stepUp(principal, nowSecs)
}

/** Why the principal may not let others use the credential; undefined: it may. */
export async function grantingRefusal(
  tx: Transaction,
  row: Owned & Pick<VaultCredentialRow, 'nonExportable'>,
  principal: Principal,
): Promise<VaultDenied | DirectTokenNeeded | undefined> {
  if (!(await isOwner(tx, row, principal))) {
    return denied('Only the owner of the credential decides who uses it.')
  }
  // A grantee can take an exportable secret out: then a grant is an export.
  return row.nonExportable || isDirect(principal) ? undefined : { tag: 'direct_token_needed' }
}

function stepUp(
  { subjectType, acr, authTimeSecs }: Principal,
  nowSecs: number,
): StepUpNeeded | undefined {
  if (subjectType !== 'human') return undefined
  const isFresh = authTimeSecs !== null && nowSecs - authTimeSecs <= FRESH_SECS
  const isStrong = acr === 'aal2' || acr === 'aal3'
  return isStrong && isFresh ? undefined : { tag: 'step_up', maxAgeSecs: FRESH_SECS }
}

export function denied(detail: string): VaultDenied {
  return { tag: 'denied', detail }
}
