/** What a deployment offers of agents on chains, with and without registries. */
import test from 'ava'
import { EVENT_CATALOGUE } from '../../../actors/domain/event-catalogue.js'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { NETWORK } from '../../support/commerce/chain.js'
import { sharedMarket } from '../../support/commerce/market.js'
import { registryEnvironment } from '../../support/commerce/registries.js'
import { callAt, type Json, tenantAgent } from '../../support/identity/tenant-agent.js'
import { sharedService, type TestService, testService } from '../../support/service.js'
import { REACHES_RECEIVERS } from '../../support/webhooks/receiver.js'

const plain = await sharedService('plain')
/** With chains that have no registry. */
const chains = await sharedService('onChain')
const full = await testService({
  environment: { ...registryEnvironment(await sharedMarket(), 12), ...REACHES_RECEIVERS },
})
test.after.always(() => Promise.all([plain, chains, full].map((each) => each.end())))

const read = async ({ baseUrl }: TestService, path: string) => (await callAt(baseUrl, path)).body

const subscribe = async (to: TestService, event_types: readonly string[]) => {
  const { ask } = await tenantAgent(to.baseUrl)
  return ask('POST', '/api/v1/webhooks', { url: 'https://hooks.example.com/x', event_types })
}

test('a subscription to chain events is accepted where chains are configured', async (t) => {
  for (const filters of [['chain.*'], Object.keys(EVENT_CATALOGUE.Chain)]) {
    for (const to of [chains, full]) {
      const { status, text } = await subscribe(to, filters)
      t.is(status, 201, text)
    }
    const refused = await subscribe(plain, filters)
    t.like(refused, { status: 400, body: { error: 'bad_request' } })
    t.is((refused.body['errors'] as Json[])[0]!['pointer'], '#/event_types/0')
  }
})

test('anchors of chains appear only where a registry is configured', async (t) => {
  for (const [at, isOn] of [
    [plain, false],
    [chains, false],
    [full, true],
  ] as const) {
    const capabilities = await read(at, '/api/v1/capabilities')
    t.is((capabilities['capabilities'] as string[]).includes('agents.erc8004'), isOn)
    const features = capabilities['features'] as Record<string, Json>
    t.deepEqual(
      features['agents.erc8004'],
      isOn ? { enabled: true, chains: [NETWORK], events: true } : undefined,
    )
    const bootstrap = await read(at, '/api/v1/agents/workspace/bootstrap')
    t.is((bootstrap['anchor_types_supported'] as string[]).includes('erc8004'), isOn)
    const { components } = (await read(at, '/openapi.json')) as {
      components: { schemas: Record<string, Json> }
    }
    t.is('ChainAgent' in components.schemas, isOn)
    const start = JSON.stringify(components.schemas['AgentRegistrationStart'])
    t.is(start.includes('erc8004'), isOn)
    const target = {
      issuer: String(bootstrap['issuer']),
      tenantId: String(bootstrap['control_plane_tenant_id']),
    }
    const answer = await callAt(at.baseUrl, '/api/v1/agents/auth/register/pow', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        name: 'Agent',
        ...createAgentKey().registration(target),
        anchor_type: 'erc8004',
        anchor_value: { chain: NETWORK, agent_id: '1' },
      }),
    })
    t.is(answer.status, 400, answer.text)
  }
})
