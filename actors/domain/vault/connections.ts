/** A connected account of a person, as it is stored. */

export type ConnectionStatus =
  | 'pending'
  | 'active'
  | 'needs_reauthorization'
  | 'denied'
  | 'expired'
  | 'revoked'

export type ConnectionRow = {
  readonly tenantId: string
  readonly id: string
  readonly connectorId: string
  /** The name of the connector. */
  readonly connector: string
  readonly userId: string
  readonly subject: string
  readonly requesterType: 'agent' | 'service'
  readonly requesterId: string
  readonly agentId: string | null
  readonly status: ConnectionStatus
  readonly scopes: readonly string[]
  readonly reason: string | null
  readonly returnTo: string | null
  readonly maxBytes: number | null
  readonly grantExpiresAt: Date | null
  readonly accountLabel: string | null
  readonly credentialId: string | null
  readonly grantId: string | null
  readonly code: string | null
  readonly codeExpiresAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
}
