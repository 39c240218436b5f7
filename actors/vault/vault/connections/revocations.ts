/**
 * Revokes the tokens of ended connections at their providers (RFC 7009): when the connection ends, and again by the
 * upkeep for less than a day where the provider does not answer.
 */
import type { Logger } from '../../../../runtime/kernel/log.js'
import { inPlace } from '../../../../runtime/kernel/fairness/fair-share.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import { findAnyConnector } from '../../../../storage/vault/connectors.js'
import { managedTokenContext } from '../../../../storage/vault/managed-tokens.js'
import {
  postponeRevocation,
  removeRevocation,
  type RevocationRow,
  takeRevocations,
  takeRevocationsOf,
} from '../../../../storage/vault/revocations.js'
import { credentialSecretContext } from '../../../../storage/vault/vault-credentials.js'
import type { OAuthDocument } from '../../../domain/vault/secret-documents/oauth.js'
import { withClientOf } from './endpoints.js'
import type { EndNeeds } from './needs.js'
import { askRevocation, type RevocationAnswer } from './provider.js'

/** As many of a tenant as have places (needs.ts). */
const PER_TENANT = 8
const BATCH = 64
/** Longer than a call. */
const LEASE_MS = 60_000
/** A round of the upkeep has other work. */
const ROUND_MS = 15_000
/** Pauses after each failure. Together less than the day for which sealed values can be opened. */
const RETRY_SECS = [60, 300, 1_800, 7_200, 21_600, 43_200] as const

/** Revokes what is due of a tenant. Never throws: what fails stays due. */
export async function revokeNow(needs: EndNeeds, tenantId: string, log: Logger): Promise<void> {
  const now = needs.clock.now()
  try {
    const until = new Date(now.getTime() + LEASE_MS)
    const rows = await needs.database.tenant(tenantId, (tx) =>
      takeRevocationsOf(tx, tenantId, { now, until, limit: PER_TENANT }),
    )
    await Promise.all(rows.map((row) => revoke(needs, row, log)))
  } catch (error) {
    log.warn({ err: error }, 'vault: could not revoke tokens at a provider')
  }
}

/** Revokes what is due of all tenants, in turn, within the time of a round. */
export async function revokeDue(needs: EndNeeds, log: Logger, signal: AbortSignal): Promise<void> {
  const endMs = needs.clock.monotonicMs() + ROUND_MS
  while (!signal.aborted && needs.clock.monotonicMs() < endMs) {
    const now = needs.clock.now()
    const of = {
      now,
      until: new Date(now.getTime() + LEASE_MS),
      perTenant: PER_TENANT,
      limit: BATCH,
    }
    // The transaction crosses tenants.
    const rows = await needs.database.system((tx) => takeRevocations(tx, of))
    if (rows.length === 0) return
    await Promise.all(rows.map((row) => revoke(needs, row, log)))
  }
}

async function revoke(needs: EndNeeds, row: RevocationRow, log: Logger): Promise<void> {
  const { tenantId, tries } = row
  const answer = await inPlace<RevocationAnswer | 'busy'>(
    needs.calls,
    tenantId,
    await needs.groups.of(tenantId),
    'busy',
    () =>
      answerOf(needs, row).catch((error: unknown) => {
        log.warn({ err: error }, 'vault: could not revoke a token at a provider')
        return 'none' as const
      }),
  )
  // It is due again after the lease.
  if (answer === 'busy') return
  const pauseSecs = answer === 'none' ? RETRY_SECS[tries] : undefined
  if (answer !== 'confirmed' && pauseSecs === undefined)
    log.warn(
      { tenant_id: tenantId, connector_id: row.connectorId, answer },
      'vault: a provider did not confirm a revocation',
    )
  await needs.database.tenant(tenantId, (tx) =>
    pauseSecs === undefined
      ? removeRevocation(tx, row)
      : postponeRevocation(tx, row, new Date(needs.clock.now().getTime() + pauseSecs * 1000)),
  )
}

/**
 * Revokes the refresh token, or the access token where the provider gave no other: at the address that the provider had when
 * the account was connected, or that it has now at the same origin.
 */
async function answerOf(
  { sealer, fetch, database }: EndNeeds,
  { tenantId, credentialId, connectorId, secret, token }: RevocationRow,
): Promise<RevocationAnswer> {
  const connector = await database.tenant(tenantId, (tx) =>
    findAnyConnector(tx, tenantId, connectorId),
  )
  const kept = await opened<OAuthDocument>(
    sealer,
    tenantId,
    credentialSecretContext(credentialId),
    secret,
  )
  // The person has replaced the secret: it is none of the provider's.
  if (kept.connection_id === undefined) return 'confirmed'
  const document =
    (connector && (await withClientOf(sealer, connector, kept).catch(() => undefined))) ?? kept
  const { refresh_token: refreshToken, revocation_url: url } = document
  if (url === undefined) return 'confirmed'
  if (refreshToken !== undefined)
    return askRevocation(fetch, document, url, { token: refreshToken, hint: 'refresh_token' })
  if (token === null) return 'confirmed'
  const { access_token: accessToken } = await opened<{ access_token: string }>(
    sealer,
    tenantId,
    managedTokenContext(credentialId),
    token,
  )
  return askRevocation(fetch, document, url, { token: accessToken, hint: 'access_token' })
}

async function opened<T>(
  sealer: Sealer,
  tenantId: string,
  context: Parameters<Sealer['open']>[1],
  sealed: Uint8Array,
): Promise<T> {
  const bytes = await sealer.open(tenantId, context, sealed)
  const text = Buffer.from(bytes).toString('utf8')
  bytes.fill(0)
  return JSON.parse(text) as T
}
