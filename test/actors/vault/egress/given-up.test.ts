/** Calls that give their place or their memory up to a tenant that has none. */
import test from 'ava'
import { packPrincipal } from '../../../../actors/domain/packed-principal.js'
import type { Principal } from '../../../../actors/domain/principal.js'
import { createEgressShares, HeldBytes } from '../../../../actors/vault/egress/admission/shares.js'
import { createProxy, type ProxyNeeds } from '../../../../actors/vault/egress/proxy.js'
import type { ProxyRequest } from '../../../../actors/vault/egress/protocol.js'
import { FairShare } from '../../../../runtime/kernel/fairness/fair-share.js'

const shares = () =>
  createEgressShares({
    egress_calls_per_agent_max: 8,
    egress_calls_per_tenant_max: 8,
    egress_buffered_bytes_max: 1000,
    egress_buffered_bytes_per_tenant_max: 1000,
  })

function requestOf(tenantId: string): ProxyRequest {
  const principal = { tenantId, subject: 'agent', subjectType: 'agent', actors: [] }
  return {
    principal: packPrincipal(principal as unknown as Principal),
    clientAddress: '127.0.0.1',
    credentialId: '00000000-0000-4000-8000-000000000001',
    method: 'GET',
    url: 'https://upstream.example/',
    headers: [],
    body: null,
    bodyBytes: null,
    authScheme: null,
    stream: true,
  }
}

test('a call that waits for a token gives its place up at once', async (t) => {
  const calls = new FairShare({
    resource: 'egress_calls',
    total: 2,
    levels: [
      { name: 'tenant', max: 2 },
      { name: 'agent', max: 2 },
    ],
  })
  const closed: unknown[] = []
  const released: string[] = []
  let waiting = 0
  const late: ((credential: object) => void)[] = []
  const proxy = createProxy({
    calls,
    groups: { of: () => [] },
    memoryOf: (tenantId: string, giveUp: () => boolean) =>
      new HeldBytes(shares().bytes, tenantId, [], giveUp),
    rules: { privateNetworks: true, nonStandardPorts: true },
    bodyBytesMax: 1000,
    admission: {
      admit: () => ({ tag: 'admitted', row: {}, facts: {}, allowRange: false, budget: null }),
      close: (end: object) => closed.push(end),
    },
    credentialCache: {
      // The token endpoint is silent.
      unseal: () => {
        waiting += 1
        return new Promise((resolve) => late.push(resolve))
      },
    },
  } as unknown as ProxyNeeds)
  const context = { requestId: 'r' } as Parameters<typeof proxy>[1]
  const [first] = [proxy(requestOf('hostile'), context), proxy(requestOf('hostile'), context)]
  t.is(waiting, 2)
  void proxy(requestOf('honest'), context)
  t.deepEqual(await first, { tag: 'busy' })
  t.is(waiting, 3, 'the other tenant has the place')
  t.is(closed.length, 1)
  t.is(calls.usedBy(0, 'hostile'), 1)
  late[0]!({ release: () => released.push('first') })
  await new Promise(setImmediate)
  t.deepEqual(released, ['first'], 'a token that comes too late is wiped')
})

test('memory is taken back from the oldest calls of the tenant that holds most', (t) => {
  const { bytes } = shares()
  const ended: string[] = []
  const call = (tenantId: string, name: string, canEnd = true) => {
    const held: HeldBytes = new HeldBytes(bytes, tenantId, [], () => {
      if (!canEnd) return false
      ended.push(name)
      held.release()
      return true
    })
    return held
  }
  const answered = call('hostile', 'answered', false)
  t.true(answered.take(100))
  const [first, second] = [call('hostile', 'first'), call('hostile', 'second')]
  for (const held of [first, second])
    for (let times = 0; times < 4; times += 1) t.true(held.take(100))
  t.true(call('small', 'small').take(100))
  const honest = call('honest', 'honest')
  t.true(honest.take(300))
  t.deepEqual(ended, ['first'])
  t.false(first.take(1), 'it holds nothing from then on')
  t.is(bytes.usedBy(0, 'hostile'), 500)
  t.true(honest.take(100))
  t.false(honest.take(100), 'a tenant that holds memory takes none back')
  t.false(call('other', 'other').take(900), 'more than the largest holder has')
  t.deepEqual(ended, ['first'])
})
