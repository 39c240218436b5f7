/**
 * Export of credentials to agents by token exchange (RFC 8693): the secret of an exportable credential,
 * or the access token of an `oauth2` one.
 */
import { denied } from '../../domain/vault/denied.js'
import type {
  RefreshFailure,
  ExportRefusal,
  VaultExports,
  ExportRequest,
  Exported,
  ExportKind,
} from './protocol.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  findEgressAuthorities,
  type AuthorityRow,
} from '../../../storage/vault/egress-authorities.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  credentialSecretContext,
  findVaultCredential,
  touchVaultCredentials,
  type SecretCredentialRow,
} from '../../../storage/vault/vault-credentials.js'
import { isTokenScheme } from '../../domain/vault/egress.js'
import { granteeOf } from '../../domain/grantee.js'
import { eventBy } from '../../domain/events.js'
import { credentialResource } from './events.js'
import { createManagedTokens, type ManagedTokensNeeds } from './managed-tokens.js'
import { inTenant } from '../../platform/in-tenant.js'

export function createVaultExports(needs: ManagedTokensNeeds): VaultExports {
  const { database, sealer, endpoint, clock, random, metrics } = needs
  const managed = createManagedTokens(needs)

  async function judge(
    tx: Transaction,
    { caller, credentialId, kind }: ExportRequest,
    now: Date,
  ): Promise<ExportVerdict> {
    const { tenantId } = caller.principal
    const row = await findVaultCredential(tx, tenantId, credentialId)
    if (row === undefined) return judgeExport(kind, row, [], now)
    const query = { credentialId, ...granteeOf(caller.principal) }
    const [authorities = []] = await findEgressAuthorities(tx, tenantId, [query], now)
    return judgeExport(kind, row, authorities, now)
  }

  /** Authorizes the export and appends its event, in one transaction. */
  function admit(
    request: ExportRequest,
    { signal, requestId }: MessageContext,
  ): Promise<ExportVerdict> {
    const { caller, credentialId, kind } = request
    const { tenantId } = caller.principal
    return inTenant(database, tenantId, { signal }, async (tx) => {
      const now = clock.now()
      const verdict = await judge(tx, request, now)
      if (verdict.tag !== 'allowed') return verdict
      await touchVaultCredentials(tx, tenantId, [credentialId], now)
      const eventContext = { caller, random, now, requestId }
      const access = kind === 'secret' ? 'export' : 'managed_token'
      const resource = credentialResource(credentialId)
      const type = 'vault.credential.accessed'
      const event = eventBy(type, resource, eventContext, { access })
      appendEvents(tx, [{ ...event, audit: { ...event.audit, grantId: verdict.grantId } }])
      return verdict
    })
  }

  async function secret(
    request: ExportRequest,
    context: MessageContext,
  ): Promise<Exported | ExportRefusal> {
    const verdict = await admit(request, context)
    if (verdict.tag !== 'allowed') return verdict
    const { tenantId, id, secret: sealed } = verdict.row
    const bytes = await sealer.open(tenantId, credentialSecretContext(id), sealed!)
    const token = new TextDecoder().decode(bytes)
    bytes.fill(0)
    return { tag: 'exported', token, expiresInSecs: null, scope: null }
  }

  async function accessToken(
    request: ExportRequest,
    context: MessageContext,
  ): Promise<Exported | ExportRefusal | RefreshFailure> {
    const { tenantId } = request.caller.principal
    const first = await inTenant(database, tenantId, context, (tx) =>
      judge(tx, request, clock.now()),
    )
    if (first.tag !== 'allowed') return first
    const outcome = await managed.get(tenantId, request.credentialId)
    if (outcome.tag !== 'token' && outcome.tag !== 'gone') return outcome
    // The upstream call takes time, so the authorization is checked again after it.
    const last = await admit(request, context)
    if (last.tag !== 'allowed') return last
    if (outcome.tag === 'gone') return { tag: 'unknown_credential' }
    const { accessToken: token, expiresAt, scope } = outcome
    const leftMs = expiresAt === null ? null : expiresAt.getTime() - clock.now().getTime()
    const expiresInSecs = leftMs === null ? null : Math.max(1, Math.floor(leftMs / 1000))
    return { tag: 'exported', token, expiresInSecs, scope }
  }

  return {
    async export(request, context) {
      const outcome = await (request.kind === 'secret' ? secret : accessToken)(request, context)
      metrics.exported(request.kind, outcome.tag)
      return outcome
    },
    async close() {
      await managed.settled()
      await endpoint.close()
    },
  }
}

/** Authorization of an export by token exchange. Pure (docs/reference/vault.md). */
type ExportVerdict =
  | { readonly tag: 'allowed'; readonly row: SecretCredentialRow; readonly grantId: string }
  | ExportRefusal

const UNKNOWN: ExportRefusal = { tag: 'unknown_credential' }

/** @param authorities the caller's grants and leases to use or sign, ended ones included. */
function judgeExport(
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
    return endedWithIt ? denied('credential_revoked', 'the credential is revoked') : UNKNOWN
  }
  const active = authorities.filter(
    ({ revokedAt, expiresAt }) => revokedAt === null && (expiresAt === null || expiresAt > now),
  )
  if (active.length === 0) return UNKNOWN
  if (row.credentialType === 'ssh_ca')
    return denied('credential_not_exportable', 'an ssh_ca credential cannot be exported')
  const exportable = active.filter(({ snapshot }) => !snapshot.non_exportable)
  if (row.nonExportable || exportable.length === 0) {
    return denied('credential_not_exportable', 'the credential is not exportable')
  }
  const fault = kindFault(kind, row)
  if (fault !== undefined) return { tag: 'wrong_kind', detail: fault }
  // An exported secret escapes the limits of a grant, so the grant must have none.
  const grant = exportable.find(isUnlimited)
  return grant === undefined
    ? denied(
        'grant_limited',
        'the grant has limits, so it allows only calls through the egress proxy',
      )
    : { tag: 'allowed', row, grantId: grant.id }
}

function kindFault(
  kind: ExportKind,
  { credentialType, authScheme }: SecretCredentialRow,
): string | undefined {
  if (credentialType === 'oauth2' || isTokenScheme(authScheme)) {
    return kind === 'access_token' ? undefined : 'the credential exports access tokens only'
  }
  return kind === 'secret' ? undefined : 'only an OAuth credential exports access tokens'
}

function isUnlimited(authority: AuthorityRow) {
  const { kind, methods, pathPrefixes, maxRequests, maxBytes, approval, budget } = authority
  const limits = [methods, pathPrefixes, maxRequests, maxBytes, budget]
  return kind === 'grant' && approval === 'none' && limits.every((limit) => limit === null)
}
