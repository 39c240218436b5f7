/** The public client library: `import { agentSession } from 'svc/client'`. */
export { type AgentKey, agentKeyFromJwk, createAgentKey, openAgentKey } from './agent.js'
export {
  askForDelegation,
  awaitDelegation,
  connectAccount,
  type ConnectAccountOptions,
  type ConnectedAccount,
  type DelegatedToken,
  type DelegationRequest,
  renewDelegation,
} from './delegation.js'
export { type CallApproval, NotApproved } from './approval.js'
export { egressFetch, type EgressFetchOptions, type Fetch } from './egress-fetch.js'
export { type Answer, type HttpClient, httpClient, type Request } from './http.js'
export {
  holdingIdentity,
  readIdentity,
  type StoredDelegation,
  type StoredIdentity,
  type StoredToken,
  writeIdentity,
} from './identity-file.js'
export { type AgentToken, type LoginOptions, logIn } from './login.js'
export { ServiceRefusal } from './refusal.js'
export {
  type AgentRegistrationOptions,
  type CreatedWorkspace,
  createWorkspace,
  readMetadata,
  type RegisteredAgent,
  registerAgent,
  type TenantChoice,
  type WorkProgress,
  type WorkspaceOptions,
} from './registration.js'
export {
  type AgentSession,
  type AgentSessionOptions,
  agentSession,
  type DelegateOptions,
  type Delegation,
} from './session.js'
export { solve, type SolveOptions } from './solver.js'
export { walletFetch, type WalletFetchOptions } from './wallet-fetch.js'
export {
  InvalidWebhook,
  type VerifiedWebhook,
  verifyWebhook,
  type VerifyWebhookOptions,
  type WebhookDelivery,
  type WebhookHeaders,
} from './verify-webhook.js'
