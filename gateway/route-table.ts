/** All routes. A plane serves those whose actor it runs. */
import { accountOperatorRoutes } from './routes/identity/accounts.js'
import { accountRoutes } from './routes/identity/account.js'
import { agentRoutes } from './routes/agents/agents.js'
import { identityAssertionPolicyRoutes } from './routes/oauth/identity-assertion-policies.js'
import { trustedIssuerRoutes } from './routes/oauth/trusted-issuers.js'
import { accessPolicyRoutes } from './routes/oauth/access-policies.js'
import { apiKeyRoutes } from './routes/oauth/api-keys.js'
import { apiResourceRoutes } from './routes/oauth/api-resources.js'
import { applicationRoutes } from './routes/oauth/clients.js'
import { egressCallRoutes } from './routes/vault/egress-calls.js'
import { auditRoutes } from './routes/operations/audit.js'
import { authorizeRoutes } from './routes/oauth/authorize.js'
import { cibaRoutes } from './routes/oauth/ciba.js'
import { deviceRoutes } from './routes/oauth/device.js'
import { delegationRoutes } from './routes/agents/delegation.js'
import { checkoutRoutes } from './routes/commerce/checkout.js'
import { commerceRoutes } from './routes/commerce/commerce.js'
import { discoveryRoutes } from './routes/oauth/discovery.js'
import { identityProviderRoutes } from './routes/identity/identity-providers.js'
import { healthRoutes } from './routes/operations/health.js'
import { inviteRoutes } from './routes/identity/invites.js'
import { passwordRecoveryRoutes } from './routes/identity/password-recovery.js'
import { signUpRoutes } from './routes/identity/sign-up.js'
import { mailSignInRoutes } from './routes/identity/sign-in-by-mail.js'
import { signInRoutes } from './routes/identity/login.js'
import { oauthRoutes } from './routes/oauth/oauth.js'
import { organizationMemberRoutes } from './routes/identity/organization-members.js'
import { organizationRecordRoutes } from './routes/identity/organization-records.js'
import { organizationRoutes } from './routes/identity/organizations.js'
import { billingRoutes } from './routes/identity/organization/billing.js'
import { organizationTransferRoutes } from './routes/identity/organization/transfers.js'
import { guestRoutes } from './routes/identity/guests.js'
import { siweRoutes } from './routes/identity/siwe.js'
import { phoneRoutes } from './routes/identity/phone.js'
import { passkeyRoutes } from './routes/identity/passkeys.js'
import { statusListRoutes } from './routes/oauth/status-lists.js'
import { credentialIssuanceRoutes } from './routes/oauth/credential-issuance.js'
import { credentialOfferRoutes } from './routes/oauth/credential-offers.js'
import { registrationRoutes } from './routes/oauth/client-registration.js'
import { agentDocumentRoutes } from './routes/agents/agent-documents.js'
import { observedClientRoutes } from './routes/oauth/observed-clients.js'
import { agentManagementRoutes } from './routes/agents/agent-management.js'
import { signalRoutes } from './routes/webhooks/signals.js'
import { signingKeyRoutes } from './routes/oauth/signing-keys.js'
import { webhookRoutes } from './routes/webhooks/webhooks.js'
import { scimRoutes } from './routes/identity/scim.js'
import { scimGroupRoutes } from './routes/identity/scim-groups.js'
import { scimTokenRoutes } from './routes/identity/scim-tokens.js'
import { tenantAssetRoutes } from './routes/identity/branding/tenant-assets.js'
import { tenantRoutes } from './routes/identity/tenants.js'
import { userRoutes } from './routes/identity/users.js'
import { userinfoRoutes } from './routes/oauth/userinfo.js'
import { approvalRoutes } from './routes/vault/approvals.js'
import { egressRoutes } from './routes/vault/egress.js'
import { settlementRoutes } from './routes/commerce/payouts.js'
import { federatedLoginRoutes } from './routes/identity/federated-login.js'
import { sshCertificatesRoutes } from './routes/vault/ssh-certificates.js'
import { connectedAccountRoutes } from './routes/vault/connections.js'
import { mcpServerRoutes } from './routes/vault/mcp-servers.js'
import { vaultRoutes } from './routes/vault/vault.js'
import { x402PaymentRoutes } from './routes/commerce/x402-payments.js'
import { walletRoutes } from './routes/commerce/wallets.js'
import { x402Routes } from './routes/commerce/x402.js'
import { workspaceRoutes } from './routes/agents/workspaces.js'
import type { Route } from './route.js'

export const routes: readonly Route[] = [
  ...healthRoutes,
  ...discoveryRoutes,
  ...signingKeyRoutes,
  ...statusListRoutes,
  ...credentialOfferRoutes,
  ...credentialIssuanceRoutes,
  ...oauthRoutes,
  ...authorizeRoutes,
  ...deviceRoutes,
  ...cibaRoutes,
  ...registrationRoutes,
  ...userinfoRoutes,
  ...workspaceRoutes,
  ...agentRoutes,
  ...delegationRoutes,
  ...applicationRoutes,
  ...observedClientRoutes,
  ...apiResourceRoutes,
  ...apiKeyRoutes,
  ...accessPolicyRoutes,
  ...trustedIssuerRoutes,
  ...identityAssertionPolicyRoutes,
  ...organizationRoutes,
  ...organizationRecordRoutes,
  ...organizationMemberRoutes,
  ...organizationTransferRoutes,
  ...billingRoutes,
  ...accountOperatorRoutes,
  ...vaultRoutes,
  ...approvalRoutes,
  ...connectedAccountRoutes,
  ...mcpServerRoutes,
  ...egressRoutes,
  ...sshCertificatesRoutes,
  ...agentDocumentRoutes,
  ...agentManagementRoutes,
  ...signInRoutes,
  ...mailSignInRoutes,
  ...signUpRoutes,
  ...passwordRecoveryRoutes,
  ...passkeyRoutes,
  ...phoneRoutes,
  ...siweRoutes,
  ...guestRoutes,
  ...federatedLoginRoutes,
  ...identityProviderRoutes,
  ...inviteRoutes,
  ...accountRoutes,
  ...webhookRoutes,
  ...signalRoutes,
  ...userRoutes,
  ...scimTokenRoutes,
  ...scimRoutes,
  ...scimGroupRoutes,
  ...tenantRoutes,
  ...tenantAssetRoutes,
  ...auditRoutes,
  ...egressCallRoutes,
  ...checkoutRoutes,
  ...commerceRoutes,
  ...settlementRoutes,
  ...x402Routes,
  ...x402PaymentRoutes,
  ...walletRoutes,
]
