/** The agent and workspace routes behind a gateway on a real socket, with client functions. */
import type { GatewayOptions } from '../../../gateway/gateway.js'
import { agentRoutes } from '../../../gateway/routes/agents/agents.js'
import { inviteRoutes } from '../../../gateway/routes/identity/invites.js'
import { workspaceRoutes } from '../../../gateway/routes/agents/workspaces.js'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { watchContract } from '../../support/contract.js'
import { type IdentityOptions, identityFixture, ISSUER } from '../../support/identity/identity.js'
import { nonceFor } from '../../support/identity/nonce.js'
import { openStage } from '../stage.js'

export const BOOTSTRAP = '/api/v1/agents/workspace/bootstrap'
export const REGISTER = '/api/v1/agents/auth/register'

export type Json = Record<string, unknown>

export async function openDoors(options: IdentityOptions = {}) {
  watchContract()
  const resources = await identityFixture(options)
  const refs = new Map<string, never>([
    ['agents', resources.agents as never],
    ['workspaces', resources.workspaces as never],
  ])
  const stage = await openStage({
    transport: 'uws',
    issuer: ISSUER,
    server: { endpoint_throttle: { enabled: false } },
    gateway: {
      routes: [...agentRoutes, ...workspaceRoutes, ...inviteRoutes],
      refs: refs as GatewayOptions['refs'],
    },
  })

  async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
    const answer = await stage.call({
      method: 'POST',
      path,
      headers: { host: 'auth.svc.example', 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    return { ...answer, body: JSON.parse(answer.text) as Json }
  }
  const get = (path: string) => stage.call({ path, headers: { host: 'auth.svc.example' } })

  /** A key and the body of a registration start that it signed. */
  function registrationBody(tenantId = resources.controlPlane.id, change: Json = {}) {
    const key = createAgentKey()
    const sent = key.registration({ issuer: ISSUER, tenantId })
    return { key, body: { name: 'Agent', ...sent, ...change } }
  }

  /** A start, and the nonce that completes it. */
  async function started(path: string) {
    const { key, body } = registrationBody()
    const answer = await post(path, body)
    if (answer.status !== 200) throw new Error(answer.text)
    const nonce = nonceFor({
      challengeToken: String(answer.body['challenge_token']),
      difficultyBits: Number(answer.body['difficulty_bits']),
    })
    return { key, answer, challenge_id: String(answer.body['challenge_id']), nonce }
  }

  async function close() {
    await stage.close()
    await resources.close()
  }
  return { resources, post, get, registrationBody, started, close }
}
