/** Workspace bootstrap: an agent creates its own organization, sandbox tenant and application. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type {
  AgentRecord,
  AnchorType,
  CompletionRefused,
  CompleteRegistration,
} from '../agents/protocol.js'
import type { ApplicationId, OrganizationId, TenantId } from '../../domain/ids.js'
import type { Environment } from '../../domain/tenants/tenancy.js'

export type WorkspacesProtocol = {
  /** What the ownership proof of a bootstrap must sign. Has no side effect. */
  readWorkspaceBootstrap: Ask<Record<never, never>, BootstrapMetadata>
  /** Spends a challenge of kind `workspace` and provisions everything in one transaction. */
  completeWorkspaceBootstrap: Ask<CompleteBootstrap, WorkspaceProvisioned | BootstrapRefused>
  /** The status of an operator invite. */
  readOperatorInvite: Ask<
    { token: string },
    InviteValid | { tag: 'unknown_invite' } | { tag: 'spent' }
  >
}

export type BootstrapMetadata = {
  tag: 'metadata'
  issuer: string
  controlPlaneTenantId: TenantId
  anchorTypes: readonly AnchorType[]
}

export const FRAMEWORKS = [
  'nextjs',
  'express',
  'fastify',
  'remix',
  'sveltekit',
  'python',
  'go',
  'generic',
] as const

export type CompleteBootstrap = CompleteRegistration & {
  readonly organizationName: string
  readonly redirectUris: readonly string[]
  readonly issueOperatorInvite: boolean
  /** An unknown value counts as `generic`. */
  readonly framework: string
  /** The client's network. Null where it is not counted. */
  readonly network: string | null
}
export type BootstrapRefused =
  | CompletionRefused
  | { tag: 'invalid_redirect_uri'; index: number; detail: string }
  /** The password workers are busy; the challenge is not spent. */
  | { tag: 'busy' }

export type WorkspaceProvisioned = {
  tag: 'provisioned'
  agent: AgentRecord
  organization: { id: OrganizationId; name: string; slug: string }
  tenant: { id: TenantId; name: string; slug: string; environment: Environment }
  application: {
    id: ApplicationId
    clientId: string
    /** Shown once; null for a public application. */
    clientSecret: string | null
    audience: string
    redirectUris: readonly string[]
    tokenEndpointAuthMethod: string
  }
  fixtureUser: {
    id: string
    email: string
    /** Shown once. */
    password: string
    status: string
    createdAt: Date
  }
  controlPlaneAccessToken: string
  controlPlaneExpiresInSeconds: number
  tenantAccessToken: string
  tenantExpiresInSeconds: number
  startSnippet: string
  envBlock: string
  operatorInvite: { url: string; expiresAt: Date } | null
  issuer: string
  /** `server.egress_url`. */
  egressUrl: string
  discoveryUrl: string
}

export type InviteValid = { tag: 'valid'; organizationName: string; expiresAt: Date }

export const workspaces = address<WorkspacesProtocol>('workspaces', {
  idempotent: ['readWorkspaceBootstrap', 'readOperatorInvite'],
})
