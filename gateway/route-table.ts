/** Every route of the build. A plane serves those whose actors sit in it. */
import { accountOperatorRoutes } from './routes/accounts.js'
import { accountRoutes } from './routes/account.js'
import { agentRoutes } from './routes/agents.js'
import { applicationRoutes } from './routes/applications.js'
import { auditRoutes } from './routes/audit.js'
import { authorizeRoutes } from './routes/authorize.js'
import { cibaRoutes } from './routes/ciba.js'
import { deviceRoutes } from './routes/device.js'
import { delegationRoutes } from './routes/delegation.js'
import { checkoutRoutes } from './routes/checkout.js'
import { commerceRoutes } from './routes/commerce.js'
import { discoveryRoutes } from './routes/discovery.js'
import { federationRoutes } from './routes/federation.js'
import { healthRoutes } from './routes/health.js'
import { inviteRoutes } from './routes/invites.js'
import { credentialRoutes } from './routes/credentials.js'
import { mailSignInRoutes } from './routes/sign-in-by-mail.js'
import { loginRoutes } from './routes/login.js'
import { oauthRoutes } from './routes/oauth.js'
import { organizationMemberRoutes } from './routes/organization-members.js'
import { organizationRecordRoutes } from './routes/organization-records.js'
import { organizationRoutes } from './routes/organizations.js'
import { passkeyRoutes } from './routes/passkeys.js'
import { registrationRoutes } from './routes/registration.js'
import { rosterRoutes } from './routes/roster.js'
import { signingKeyRoutes } from './routes/signing-keys.js'
import { webhookRoutes } from './routes/webhooks.js'
import { tenantRoutes } from './routes/tenants.js'
import { userRoutes } from './routes/users.js'
import { userinfoRoutes } from './routes/userinfo.js'
import { egressRoutes } from './routes/egress.js'
import { settlementRoutes } from './routes/settlement.js'
import { ssoRoutes } from './routes/sso.js'
import { sshcaRoutes } from './routes/sshca.js'
import { vaultRoutes } from './routes/vault.js'
import { x402PaymentRoutes } from './routes/x402-payments.js'
import { x402Routes } from './routes/x402.js'
import { workspaceRoutes } from './routes/workspaces.js'
import type { Route } from './route.js'

export const routes: readonly Route[] = [
  ...healthRoutes,
  ...discoveryRoutes,
  ...signingKeyRoutes,
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
  ...organizationRoutes,
  ...organizationRecordRoutes,
  ...organizationMemberRoutes,
  ...accountOperatorRoutes,
  ...vaultRoutes,
  ...egressRoutes,
  ...sshcaRoutes,
  ...rosterRoutes,
  ...loginRoutes,
  ...mailSignInRoutes,
  ...credentialRoutes,
  ...passkeyRoutes,
  ...ssoRoutes,
  ...federationRoutes,
  ...inviteRoutes,
  ...accountRoutes,
  ...webhookRoutes,
  ...userRoutes,
  ...tenantRoutes,
  ...auditRoutes,
  ...checkoutRoutes,
  ...commerceRoutes,
  ...settlementRoutes,
  ...x402Routes,
  ...x402PaymentRoutes,
]
