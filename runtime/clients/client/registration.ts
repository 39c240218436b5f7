/** Registers an agent, alone or with a workspace (docs/reference/agents.md). */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentKey } from './agent.js'
import type { HttpClient } from './http.js'
import { expectAnswer, type Members, numberMember, ServiceRefusal, textMember } from './refusal.js'
import { solve } from './solver.js'

const BOOTSTRAP = '/api/v1/agents/workspace/bootstrap'
const REGISTER = '/api/v1/agents/auth/register'

/** The progress of the proof of work. */
export type WorkProgress = {
  readonly difficultyBits: number
  /** Nonces tried so far. */
  readonly tried: number
  /** The average number of nonces. A run may take several times as many. */
  readonly expected: number
}

/** A tenant by its UUID or its slug. Without either: the default tenant of the service. */
export type TenantChoice = { readonly tenantId?: string; readonly tenantSlug?: string }

export type RegistrationOptions = {
  readonly http: HttpClient
  readonly key: AgentKey
  /** A did:web whose document lists the key, as the agent's identifier in place of its did:key. */
  readonly didWeb?: string | undefined
  /** 1 to 120 characters, for display. */
  readonly name: string
  readonly onProgress?: ((progress: WorkProgress) => void) | undefined
  readonly signal?: AbortSignal | undefined
  /** Threads of the solver. Default: one per processor. */
  readonly threads?: number | undefined
}

export type AgentRegistrationOptions = RegistrationOptions & {
  /**
   * The UUID of the tenant, which the proof of ownership signs. Default: the control plane. A slug
   * is not enough, because no public endpoint returns its UUID.
   */
  readonly tenantId?: string | undefined
  /** Without proof of work, where the tenant trusts the caller's network. */
  readonly direct?: boolean | undefined
}

export type RegisteredAgent = {
  readonly agentId: string
  readonly tenantId: string
  readonly issuer: string
  /** The whole response. */
  readonly body: Members
}

export type WorkspaceOptions = RegistrationOptions & {
  readonly organizationName: string
  readonly redirectUris?: readonly string[] | undefined
  readonly framework?: string | undefined
  readonly issueOperatorInvite?: boolean | undefined
}

export type CreatedWorkspace = {
  readonly agentId: string
  /** The agent's home tenant is the control plane. */
  readonly homeTenantId: string
  readonly organizationId: string
  /** The new sandbox tenant. */
  readonly tenantId: string
  readonly tenantSlug: string
  readonly issuer: string
  /** The whole response. Some values are shown only once. */
  readonly body: Members
}

/** The values that a proof of ownership must name. Creates nothing. @throws ServiceRefusal. */
export async function readMetadata(
  http: HttpClient,
): Promise<{ issuer: string; controlPlaneTenantId: string }> {
  const body = await expectAnswer(http, 200, { method: 'GET', path: BOOTSTRAP })
  return {
    issuer: textMember(body, 'issuer'),
    controlPlaneTenantId: textMember(body, 'control_plane_tenant_id'),
  }
}

/** @throws ServiceRefusal; the signal's reason when it is aborted. */
export async function registerAgent(options: AgentRegistrationOptions): Promise<RegisteredAgent> {
  const { http, key, name, tenantId, didWeb, direct = false } = options
  const { issuer, controlPlaneTenantId } = await readMetadata(http)
  const home = (tenantId ?? controlPlaneTenantId).toLowerCase()
  const json = { name, tenant_id: home, ...key.registration({ issuer, tenantId: home, didWeb }) }
  const body = direct
    ? await expectAnswer(http, 201, { method: 'POST', path: REGISTER, json })
    : await work(options, `${REGISTER}/pow`, json, 200, {})
  return {
    agentId: textMember(body, 'agent_id'),
    tenantId: textMember(body, 'tenant_id'),
    issuer,
    body,
  }
}

/** @throws ServiceRefusal; the signal's reason when it is aborted. */
export async function createWorkspace(options: WorkspaceOptions): Promise<CreatedWorkspace> {
  const { http, key, name, didWeb, organizationName, redirectUris = [] } = options
  const { issuer, controlPlaneTenantId: homeTenantId } = await readMetadata(http)
  const start = { name, ...key.registration({ issuer, tenantId: homeTenantId, didWeb }) }
  const body = await work(options, `${BOOTSTRAP}/pow`, start, 201, {
    organization_name: organizationName,
    redirect_uris: redirectUris,
    issue_operator_invite: options.issueOperatorInvite ?? false,
    framework: options.framework ?? 'generic',
  })
  return {
    agentId: textMember(body['agent'], 'id'),
    homeTenantId,
    organizationId: textMember(body, 'organization_id'),
    tenantId: textMember(body, 'tenant_id'),
    tenantSlug: textMember(body, 'tenant_slug'),
    issuer,
    body,
  }
}

/** Starts, solves and completes, and waits when the service says that it is too early. */
async function work(
  { http, onProgress, signal, threads }: RegistrationOptions,
  path: string,
  start: Members,
  status: number,
  rest: Members,
): Promise<Members> {
  const challenge = await expectAnswer(http, 200, { method: 'POST', path, json: start })
  const difficultyBits = numberMember(challenge, 'difficulty_bits')
  const nonce = await solve({
    challengeToken: textMember(challenge, 'challenge_token'),
    difficultyBits,
    threads,
    signal,
    onProgress: (tried) => onProgress?.({ difficultyBits, tried, expected: 2 ** difficultyBits }),
  })
  const json = { challenge_id: textMember(challenge, 'challenge_id'), nonce, ...rest }
  for (;;) {
    try {
      return await expectAnswer(http, status, { method: 'POST', path: `${path}/complete`, json })
    } catch (error) {
      // The challenge and the nonce stay valid. Any other error is final.
      if (!(error instanceof ServiceRefusal) || !PASSING.has(error.status)) throw error
      if (error.retryAfterSecs === null || error.retryAfterSecs > WAIT_SECS_MAX) throw error
      await sleep(error.retryAfterSecs * 1000, undefined, signal === undefined ? {} : { signal })
    }
  }
}

/**
 * Too early (425) and busy password workers (503): the challenge is unused, and the response says
 * how long to wait.
 */
const PASSING: ReadonlySet<number> = new Set([425, 503])
const WAIT_SECS_MAX = 60
