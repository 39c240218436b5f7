/** Issues, verifies, introspects and revokes tokens. See docs/concepts/tokens.md. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { tenants } from '../../identity/tenants/protocol.js'
import { rateLimits } from '../../operations/rate-limits/protocol.js'
import { PolicyDenied } from '../access-policies/enforcement.js'
import { signingKeys } from '../signing-keys/protocol.js'
import { grantAgent } from './grants/agent-login.js'
import { grantDelegated } from './grants/delegation.js'
import { issueToken } from './grants/issue.js'
import { grantOrganization } from './grants/organization-token.js'
import { type PolicyRefusal, type TokensProtocol, tokens } from './protocol.js'
import { guardedTools, type TokensNeeds, tokenTools } from './tools.js'
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
  asks: { keys: signingKeys, tenants, throttle: rateLimits },
  mailbox: { capacity: 8192, inflightMax: 1024 },
  lane: {
    grantDelegated: ({ delegationId }) => delegationId,
    // Concurrent uses of one refresh token or code are serialised here. Across processes the row decides.
    issueToken: ({ form }) => form.find(([name]) => SINGLE_USE.has(name))?.[1],
  },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const tools = tokenTools(needs)
    const { verifier, dpopVerifier, clients } = tools
    return {
      authenticate: (message, context) => verifier.authenticate(message, context),
      proveKey: (proof) => dpopVerifier.verify({ accessToken: null, boundTo: null, ...proof }),
      grantAgent: (message, context) =>
        grantAgent(guardedTools(tools, message.address, context), message, context).catch(
          asRefusal,
        ),
      grantOrganization: (message, context) => grantOrganization(tools, message, context),
      grantDelegated: (message, context) =>
        grantDelegated(guardedTools(tools, message.address, context), message, context).catch(
          asRefusal,
        ),
      issueToken: (message, context) => issueToken(tools, message, context),
      identifyClient: (message, context) => identifyClient(tools, message, context),
      introspectToken: (message, context) => introspectToken(tools, message, context),
      revokeToken: (message, context) => revokeToken(tools, message, context),
      originListed: async ({ origin, clientId }) => ({
        tag: (await clients.lists(origin, clientId)) ? 'listed' : 'not_listed',
      }),
      invalidate: async ({ ids }) => tools.invalidate(ids),
    }
  },
})

/** @throws any other error unchanged. */
function asRefusal(error: unknown): PolicyRefusal {
  if (!(error instanceof PolicyDenied)) throw error
  return { tag: 'policy_denied' }
}
