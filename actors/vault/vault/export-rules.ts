/** Authorization of an export by token exchange. Pure (docs/reference/vault.md). */
import type { ExportKind, ExportRefusal } from './protocol.js'
import type { AuthorityRow } from '../../../storage/vault/egress-authorities.js'
import type { SecretCredentialRow } from '../../../storage/vault/vault-credentials.js'

export type ExportVerdict =
  | { readonly tag: 'allowed'; readonly row: SecretCredentialRow; readonly grantId: string }
  | ExportRefusal

const UNKNOWN: ExportRefusal = { tag: 'unknown_credential' }

/** @param authorities the caller's grants and leases to use or sign, ended ones included. */
export function judgeExport(
  kind: ExportKind,
  row: SecretCredentialRow | undefined,
  authorities: readonly AuthorityRow[],
  now: Date,
): ExportVerdict {
  if (row === undefined) return UNKNOWN
  if (row.status === 'revoked') {
    // Only callers whose grant ended with the credential learn that it existed.
    const endedWithIt = authorities.some(
      ({ revokedAt }) => revokedAt?.getTime() === row.updatedAt.getTime(),
    )
    return endedWithIt ? denied('the credential is revoked') : UNKNOWN
  }
  const active = authorities.filter(
    ({ revokedAt, expiresAt }) => revokedAt === null && (expiresAt === null || expiresAt > now),
  )
  if (active.length === 0) return UNKNOWN
  if (row.credentialType === 'ssh_ca') return denied('an ssh_ca credential cannot be exported')
  const exportable = active.filter(({ snapshot }) => !snapshot.non_exportable)
  if (row.nonExportable || exportable.length === 0) {
    return denied('the credential is not exportable')
  }
  const fault = kindFault(kind, row.credentialType)
  if (fault !== null) return { tag: 'wrong_kind', detail: fault }
  // An exported secret escapes the limits of a grant, so the grant must have none.
  const grant = exportable.find(isUnlimited)
  return grant === undefined
    ? denied('the grant has limits, so it allows only calls through the egress proxy')
    : { tag: 'allowed', row, grantId: grant.id }
}

function kindFault(kind: ExportKind, type: string): string | null {
  if (type === 'oauth2') {
    return kind === 'access_token' ? null : 'an oauth2 credential exports access tokens only'
  }
  return kind === 'secret' ? null : 'only an oauth2 credential exports access tokens'
}

function isUnlimited(authority: AuthorityRow) {
  const { kind, methods, pathPrefixes, allowRange, maxRequests, maxBytes } = authority
  const limits = [methods, pathPrefixes, maxRequests, maxBytes]
  return kind === 'grant' && allowRange && limits.every((limit) => limit === null)
}

function denied(detail: string): ExportRefusal {
  return { tag: 'denied', detail }
}
