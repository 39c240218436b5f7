/** Workspace bootstrap: proof-of-work checks, one transaction, then the first tokens. */
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import { invariant } from '../../../runtime/kernel/assert.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { findOperatorInvite } from '../../../storage/identity/operator-invites.js'
import type { Database } from '../../../storage/platform/sql.js'
import { type AgentsProtocol, type AnchorType, agents } from '../agents/protocol.js'
import { redirectUriFault } from '../../domain/redirect-uri.js'
import { agentScopes, REGISTERED_AGENT_SCOPES } from '../../domain/scopes.js'
import { sha256 } from '../../domain/secret-hashes.js'
import { type TenantsProtocol, tenants } from '../../identity/users/tenants/protocol.js'
import { type TokensProtocol, tokens } from '../../oauth/tokens/protocol.js'
import { type UsersProtocol, users } from '../../identity/users/protocol.js'
import {
  type CompleteBootstrap,
  type WorkspaceProvisioned,
  type WorkspacesProtocol,
  workspaces,
  FRAMEWORKS,
} from './protocol.js'
import { type Provisioned, provision } from './provision.js'
import { readFileSync } from 'node:fs'

type WorkspacesNeeds = {
  database: Database
  clock: Clock
  random: Random
  agents: ActorRef<AgentsProtocol>
  tenants: ActorRef<TenantsProtocol>
  tokens: ActorRef<TokensProtocol>
  users: ActorRef<UsersProtocol>
  issuer: string
  /** `server.egress_url`. */
  egressUrl: string
  /** What the deployment offers. */
  anchorTypes: readonly AnchorType[]
}

export const workspacesActor = defineActor<WorkspacesProtocol, WorkspacesNeeds>({
  address: workspaces,
  asks: { agents, tenants, tokens, users },
  mailbox: { capacity: 512, inflightMax: 32 },
  // Serialised per challenge, so that concurrent completions do not each hash a password.
  lane: { completeWorkspaceBootstrap: ({ challengeId }) => challengeId },
  create: (needs) => {
    const { database, clock, random, agents, tenants, users, issuer, anchorTypes } = needs
    return {
      async readWorkspaceBootstrap(_message, context) {
        const { tenant } = await tenants.ensureControlPlane({}, context)
        return { tag: 'metadata', issuer, controlPlaneTenantId: tenant.id, anchorTypes }
      },

      async completeWorkspaceBootstrap(message, context) {
        for (const [index, uri] of message.redirectUris.entries()) {
          const detail = redirectUriFault(uri)
          if (detail !== undefined) return { tag: 'invalid_redirect_uri', index, detail }
        }
        const { challengeId, nonce, challengeToken } = message
        const checked = await agents.checkCompletion(
          { challengeId, nonce, challengeToken, kind: 'workspace' },
          context,
        )
        if (checked.tag !== 'checked') return checked
        // Hashed before the transaction, because hashing takes longer than the transaction.
        const fixture = await users.prepareFixture({}, context)
        if (fixture.tag === 'busy') return fixture

        const { keyAlgorithm: algorithm, ...proven } = checked
        const now = clock.now()
        const agent = {
          ...proven,
          algorithm,
          id: random.uuid(),
          scopes: [...REGISTERED_AGENT_SCOPES],
          createdAt: now,
        }
        // The agent belongs to the control plane, everything else to the new tenant.
        const provisioned = await database.system(
          (tx) =>
            provision(
              tx,
              {
                challengeId,
                agent,
                organizationName: message.organizationName,
                redirectUris: message.redirectUris,
                network: message.network,
                fixture,
                invited: message.issueOperatorInvite,
                now,
                requestId: context.requestId,
              },
              random,
            ),
          context,
        )
        if (provisioned.tag !== 'provisioned') {
          const { tag } = provisioned
          return { tag: tag === 'closed' ? 'challenge_consumed' : tag }
        }
        return issueTokens(
          needs,
          message,
          agent,
          { ...provisioned, password: fixture.password },
          context,
        )
      },

      async readOperatorInvite({ token }, context) {
        // The request has only the token; the row says which tenant it belongs to.
        const invite = await database.system((tx) => findOperatorInvite(tx, sha256(token)), context)
        if (invite === undefined) return { tag: 'unknown_invite' }
        const { organizationName, expiresAt, usedAt } = invite
        return usedAt !== null || expiresAt <= clock.now()
          ? { tag: 'spent' }
          : { tag: 'valid', organizationName, expiresAt }
      },
    }
  },
})

/**
 * Issues the agent's first tokens after the commit. If this fails, the workspace exists and the agent
 * logs in by challenge.
 */
async function issueTokens(
  { agents, tokens, issuer, egressUrl }: WorkspacesNeeds,
  message: CompleteBootstrap,
  agent: { id: string; tenantId: string; fingerprint: string },
  provisioned: Provisioned & { readonly password: string },
  context: MessageContext,
): Promise<WorkspaceProvisioned> {
  const token = async (tenantId: string, controlPlane: boolean) => {
    const granted = await tokens.grantAgent(
      {
        tenantId,
        organizationId: null,
        agentId: agent.id,
        scopes: agentScopes({ controlPlane, role: 'owner', granted: [] }),
        keyFingerprint: agent.fingerprint,
        jkt: null,
        challengeId: null,
        address: null,
      },
      context,
    )
    invariant(granted.tag === 'granted', 'no challenge or access policy applies to a new workspace')
    return granted
  }
  const [controlPlane, sandbox, read] = await Promise.all([
    token(agent.tenantId, true),
    token(provisioned.tenant.id, false),
    agents.readOwnAgent({ agentId: agent.id }, context),
  ])
  invariant(read.tag === 'found', 'a registered agent exists')
  const { organization, tenant, application, clientSecret, fixtureUser, invite, password } =
    provisioned
  const environment = {
    issuer,
    egressUrl,
    tenant: {
      id: tenant.id,
      name: tenant.name,
      slug: tenant.slug,
      environment: tenant.environment,
    },
    application: {
      id: application.id,
      clientId: application.id,
      clientSecret,
      audience: application.audience,
      redirectUris: application.redirectUris,
      tokenEndpointAuthMethod: application.tokenEndpointAuthMethod,
    },
  }
  return {
    tag: 'provisioned',
    ...environment,
    agent: read.agent,
    organization: { id: organization.id, name: organization.name, slug: organization.slug },
    fixtureUser: {
      id: fixtureUser.id,
      email: fixtureUser.email,
      password,
      status: 'active',
      createdAt: fixtureUser.createdAt,
    },
    controlPlaneAccessToken: controlPlane.accessToken,
    controlPlaneExpiresInSeconds: controlPlane.expiresInSecs,
    tenantAccessToken: sandbox.accessToken,
    tenantExpiresInSeconds: sandbox.expiresInSecs,
    startSnippet: startSnippet(message.framework),
    envBlock: envBlock(environment),
    operatorInvite:
      invite === null
        ? null
        : { url: `${issuer}/auth/invites/${invite.token}`, expiresAt: invite.expiresAt },
    discoveryUrl: `${issuer}/.well-known/openid-configuration`,
  }
}

/** Relative to dist/actors/agents/workspaces: the samples are not compiled. */
const SAMPLES = new URL('../../../../actors/agents/workspaces/samples/', import.meta.url)

const samples = new Map<string, string>(
  FRAMEWORKS.map((framework) => [
    framework,
    readFileSync(new URL(`${framework}.txt`, SAMPLES), 'utf8'),
  ]),
)

/** A runnable sample: a client_credentials request and the verification of a token with the JWKS. */
export function startSnippet(framework: string): string {
  return samples.get(framework) ?? samples.get('generic')!
}

/** dotenv lines; without SVC_CLIENT_SECRET for a public application. */
export function envBlock({
  issuer,
  egressUrl,
  tenant,
  application,
}: Pick<WorkspaceProvisioned, 'issuer' | 'egressUrl' | 'tenant' | 'application'>): string {
  const { clientId, clientSecret, audience, redirectUris } = application
  const lines: [name: string, value: string | null][] = [
    ['SVC_ISSUER', issuer],
    ['SVC_EGRESS_URL', egressUrl],
    ['SVC_CLIENT_ID', clientId],
    ['SVC_CLIENT_SECRET', clientSecret],
    ['SVC_TENANT_ID', tenant.id],
    ['SVC_TENANT_SLUG', tenant.slug],
    ['SVC_AUDIENCE', audience],
    ['SVC_REDIRECT_URI', redirectUris[0] ?? ''],
  ]
  return lines
    .flatMap(([name, value]) => (value === null ? [] : [`${name}=${dotenvValue(value)}\n`]))
    .join('')
}

/** Unquoted where every dotenv parser and shell reads the value literally, else quoted. */
function dotenvValue(value: string): string {
  if (/^[A-Za-z0-9_.:/@%+,=-]*$/.test(value)) return value
  return value.includes("'") ? `"${value.replace(/["$\\`]/g, '\\$&')}"` : `'${value}'`
}
