/** Assertions of passkeys over approvals of delegations. */
import { execute, firstRow, type Transaction } from '../platform/sql.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

/** Everything that verifies the assertion later (WebAuthn section 7.2). */
export type DelegationApproval = {
  /** RFC 8785 JSON. Its SHA-256 is the challenge. */
  readonly statement: string
  readonly credentialId: Uint8Array
  /** COSE (RFC 9052 section 7). */
  readonly publicKey: Uint8Array
  readonly authenticatorData: Uint8Array
  readonly clientDataJson: Uint8Array
  readonly signature: Uint8Array
  readonly approvedAt: Date
}

export const insertDelegationApproval = (
  tx: Transaction,
  tenantId: string,
  delegationId: string,
  approval: DelegationApproval,
) =>
  execute(tx, {
    name: 'delegation_approval.insert',
    text: `insert into delegation_approvals (tenant_id, delegation_id, statement, credential_id,
             public_key, authenticator_data, client_data_json, signature, approved_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    values: [
      tenantId,
      delegationId,
      approval.statement,
      Buffer.from(approval.credentialId),
      Buffer.from(approval.publicKey),
      Buffer.from(approval.authenticatorData),
      Buffer.from(approval.clientDataJson),
      Buffer.from(approval.signature),
      approval.approvedAt,
    ],
  })

export const findDelegationApproval = (tx: Transaction, tenantId: string, delegationId: string) =>
  firstRow<DelegationApproval>(tx, {
    name: 'delegation_approval.find',
    text: `select ${columnsOf(`statement credential_id public_key authenticator_data
             client_data_json signature approved_at`)}
           from delegation_approvals where tenant_id = $1 and delegation_id = $2`,
    values: [tenantId, delegationId],
  })
