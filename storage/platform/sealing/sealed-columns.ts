/**
 * The columns whose sealed values live longer than a day, which a rotation seals again. Values of `form_answers`,
 * `authorization_requests.answer`, `refresh_tokens.successor_answer`, `upstream_sign_ins.sealed`, `vault_connections.verifier_sealed`, `vault_revocations` and `console_sessions` expire before.
 */
import { managedTokenContext, tokenAnswerContext } from '../../vault/managed-tokens.js'
import { mailContext } from '../../operations/outgoing-mail.js'
import { SYSTEM_TENANT_ID } from './seal.js'
import type { SealContext } from './sealer.js'
import { partsOf, stamped } from './stamps.js'
import { walletKeyContext } from '../../commerce/wallets.js'
import { totpSecretContext } from '../../identity/second-factors.js'
import { privateKeyContext } from '../../oauth/signing-keys.js'
import { allRows, changedRows, type Transaction } from '../sql.js'
import { providerSecretContext } from '../../identity/identity-providers.js'
import { signatureKeyContext } from '../../agents/agent-signature-keys.js'
import { listKeyContext } from '../../vault/ssh-authorities.js'
import { connectorSecretContext } from '../../vault/connectors.js'
import { credentialSecretContext } from '../../vault/vault-credentials.js'
import { streamAuthorizationContext } from '../../webhooks/signal-streams.js'
import { webhookSecretContext } from '../../webhooks/webhooks.js'

export type SealedColumn = {
  readonly table: string
  readonly column: string
  /** Column that identifies the row within its tenant. */
  readonly id: string
  /** `service`: the table has no tenants, and the nil UUID owns its values. */
  readonly owner: 'tenant' | 'service'
  readonly context: (id: string) => SealContext
}

/** True for a column that is rewritten in place: a second one has the stamp. */
const hasStamp = ({ context }: SealedColumn) => typeof context('') !== 'string'

const of = (
  table: string,
  column: string,
  context: SealedColumn['context'],
  more: Partial<SealedColumn> = {},
): SealedColumn => ({ table, column, id: 'id', owner: 'tenant', context, ...more })

export const SEALED_COLUMNS: readonly SealedColumn[] = [
  of('vault_credentials', 'secret', credentialSecretContext),
  of('vault_connectors', 'client_secret_sealed', connectorSecretContext),
  of('vault_managed_tokens', 'token', managedTokenContext, { id: 'credential_id' }),
  of('vault_managed_tokens', 'answer', tokenAnswerContext, { id: 'credential_id' }),
  of('wallets', 'key_sealed', walletKeyContext),
  of('webhooks', 'secret', webhookSecretContext),
  of('webhooks', 'previous_secret', webhookSecretContext),
  of('signal_streams', 'authorization_sealed', streamAuthorizationContext),
  of('sso_providers', 'client_secret_sealed', providerSecretContext),
  of('outgoing_mail', 'letter_sealed', mailContext),
  of('signing_keys', 'private_sealed', privateKeyContext, { id: 'kid' }),
  of('agent_signature_keys', 'private_sealed', signatureKeyContext, { id: 'agent_id' }),
  of('ssh_authorities', 'list_private_sealed', listKeyContext, { id: 'credential_id' }),
  of('totp_factors', 'secret_sealed', totpSecretContext, { owner: 'service' }),
]

/** The columns with values of a tenant. */
export function sealedColumnsOf(tenantId: string): readonly SealedColumn[] {
  return SEALED_COLUMNS.filter(({ owner }) => owner === 'tenant' || tenantId === SYSTEM_TENANT_ID)
}

export type SealedValue = { id: string; sealed: Uint8Array }

/** Values under a data key older than `version`, ordered by id, after an id. */
export async function listSealedBefore(
  tx: Transaction,
  sealedColumn: SealedColumn,
  tenantId: string,
  { version, after, limit }: { version: number; after: string; limit: number },
): Promise<SealedValue[]> {
  const { table, column, id, owner } = sealedColumn
  const value = hasStamp(sealedColumn) ? stamped(column) : column
  const oldest = Buffer.alloc(4)
  oldest.writeUInt32BE(version)
  return allRows<SealedValue>(tx, {
    name: `sealed_column.${table}.${column}.before`,
    // Bytes 2 to 5 of a sealed value are the big-endian version of its key.
    text: `select ${id}::text as id, ${value} as sealed from ${table}
           where ${owner === 'tenant' ? 'tenant_id = $1' : '$1::uuid is not null'}
             and ${column} is not null and substring(${column} from 2 for 4) < $2::bytea
             and ${id}::text > $3
           order by ${id}::text limit $4`,
    values: [tenantId, oldest, after, limit],
  })
}

/** Replaces a value if it is unchanged. Returns 0 if it has changed. */
export function replaceSealed(
  tx: Transaction,
  sealedColumn: SealedColumn,
  tenantId: string,
  { id: row, sealed: before }: SealedValue,
  renewed: Uint8Array,
) {
  const { table, column, id, owner } = sealedColumn
  const { sealed, stamp } = partsOf(renewed)
  const isStamped = hasStamp(sealedColumn)
  return changedRows(tx, {
    name: `sealed_column.${table}.${column}.replace`,
    text: `update ${table} set ${column} = $3${isStamped ? `, ${column}_stamp = $5` : ''}
           where ${owner === 'tenant' ? 'tenant_id = $1' : '$1::uuid is not null'}
             and ${id}::text = $2 and ${column} = $4`,
    values: [tenantId, row, sealed, partsOf(before).sealed, ...(isStamped ? [stamp] : [])],
  })
}
