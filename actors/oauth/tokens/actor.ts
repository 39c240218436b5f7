/** Issues, verifies, introspects and revokes tokens. See docs/concepts/tokens.md. */
import { boundHandlers, defineActor } from '../../../runtime/kernel/actor.js'
import { tenants } from '../../identity/users/tenants/protocol.js'
import { rateLimits } from '../../operations/rate-limits/protocol.js'
import { PolicyDenied } from './issue/access-policies.js'
import { trustedIssuers } from '../trusted-issuers/protocol.js'
import { signingKeys } from '../signing-keys/protocol.js'
import { grantAgent } from './grants/agent-login.js'
import { grantDelegated } from './grants/delegation.js'
import { issueToken } from './grants/issue.js'
import { grantOrganization } from './grants/organization-token.js'
import { type PolicyRefusal, type TokensProtocol, tokens } from './protocol.js'
import { guardedTools, type TokensNeeds, type TokenTools, tokenTools } from './tools.js'
import { identifyClient, introspectToken, revokeToken } from './verify/token-requests.js'

/** Parameters whose values can be used only once. */
const SINGLE_USE = new Set([
  'refresh_token',
  'code',
  'device_code',
  'auth_req_id',
  'pre-authorized_code',
])

export const tokensActor = defineActor<TokensProtocol, TokensNeeds>({
  address: tokens,
  asks: { keys: signingKeys, tenants, trustedIssuers, throttle: rateLimits },
  mailbox: { capacity: 8192, inflightMax: 1024 },
  lane: {
    grantDelegated: ({ delegationId }) => delegationId,
    // Concurrent uses of one refresh token or code are serialised here. Across processes the row decides.
    issueToken: ({ form }) => form.find(([name]) => SINGLE_USE.has(name))?.[1],
  },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    boundHandlers<TokensProtocol, TokenTools>(
      {
        authenticate: ({ verifier }, message, context) => verifier.authenticate(message, context),
        proveKey: ({ dpopVerifier }, proof) =>
          dpopVerifier.verify({ accessToken: null, boundTo: null, ...proof }),
        grantAgent: (tools, message, context) =>
          grantAgent(guardedTools(tools, message.address, context), message, context).catch(
            asRefusal,
          ),
        grantOrganization,
        grantDelegated: (tools, message, context) =>
          grantDelegated(guardedTools(tools, message.address, context), message, context).catch(
            asRefusal,
          ),
        issueToken,
        identifyClient,
        introspectToken,
        revokeToken,
        originListed: async ({ clients }, { origin, clientId }) => ({
          tag: (await clients.lists(origin, clientId)) ? 'listed' : 'not_listed',
        }),
        invalidate: async (tools, { ids }) => tools.invalidate(ids),
      },
      tokenTools(needs),
    ),
})

/** @throws any other error unchanged. */
function asRefusal(error: unknown): PolicyRefusal {
  if (!(error instanceof PolicyDenied)) throw error
  return { tag: 'policy_denied' }
}
