/**
 * Credentials whose upstream refuses the refresh token for good: `needs_reauthorization`. Nothing is asked of the upstream
 * until the secret is replaced.
 */
import { appendEvents } from '../../../storage/platform/outbox.js'
import { forgetManagedToken } from '../../../storage/vault/managed-tokens.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  lapseVaultCredentialRow,
  replaceCredentialSecret,
  type SecretCredentialRow,
} from '../../../storage/vault/vault-credentials.js'
import { catalogued } from '../../domain/events.js'
import type { WriteNeeds } from '../../platform/write-needs.js'
import { connectionLapsed } from './connections/lapsed.js'
import { credentialResource } from './events.js'
import type { RefreshFailure } from './protocol.js'

const SCHEMES: ReadonlySet<string> = new Set(['oauth2_client_credentials', 'oauth2_refresh'])

/** True if a failure ends the use of the secret. Other refusals are faults of the configuration. */
export const canLapse = (authScheme: string, failure: RefreshFailure): boolean =>
  SCHEMES.has(authScheme) && failure.tag === 'refused' && failure.error === 'invalid_grant'

/** Sets the status and appends the event, once. The row must be locked. */
export async function lapse(
  tx: Transaction,
  needs: Pick<WriteNeeds, 'clock' | 'random'>,
  row: SecretCredentialRow,
): Promise<boolean> {
  const { tenantId, id, provider, label, authScheme } = row
  const { clock, random } = needs
  const now = clock.now()
  if (!(await lapseVaultCredentialRow(tx, tenantId, id, now))) return false
  await connectionLapsed(tx, needs, tenantId, id)
  const about = {
    actor: { type: 'service', id: 'vault' },
    resource: credentialResource(id),
    requestId: undefined,
  }
  const type = 'vault.credential.reauthorization_required'
  const fields = { provider, label, auth_scheme: authScheme }
  appendEvents(tx, [
    { id: random.uuid(), tenantId, occurredAt: now, ...catalogued(type, about, fields) },
  ])
  return true
}

/** Replaces the secret: the credential is active again, and its next call gets a token with the new one. */
export async function replaceSecret(
  tx: Transaction,
  tenantId: string,
  id: string,
  sealed: { readonly secret: Uint8Array; readonly caPublicKey: string | null },
  now: Date,
) {
  const row = await replaceCredentialSecret(tx, tenantId, id, sealed, now)
  // The cached access token belongs to the previous secret.
  await forgetManagedToken(tx, tenantId, id)
  return row
}
