/** Own service: it is stopped, its log is read, and its chain has reorganizations. Events about agents on chains. */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import type { Hex } from 'viem'
import { chainAt, NETWORK } from '../../support/commerce/chain.js'
import { openNode, RawAnswer } from '../../support/commerce/chain-node.js'
import { startMarket } from '../../support/commerce/market.js'
import {
  onChainRegistration,
  registerOnChain,
  registriesOf,
  registryEnvironment,
} from '../../support/commerce/registries.js'
import { callAt, type Json } from '../../support/identity/tenant-agent.js'
import { ownService } from '../../support/service/own-service.js'
import { sql } from '../../support/storage/sql.js'
import { REACHES_RECEIVERS, startReceiver } from '../../support/webhooks/receiver.js'
import { subscriber } from '../../support/webhooks/webhooks.js'

const CONFIRMATIONS = 3
/** Tests count what the monitor asks, so they take as long as that many readings. */
const READ_EVERY_MS = 100

// Reorganizations would move the blocks of other files, so the chain is not shared.
const market = await startMarket()
const chain = await chainAt(market.places)
const registries = registriesOf(chain)
const node = await openNode(market.places.rpcUrl)
const receiver = await startReceiver()
const log: Json[] = []
const environment = {
  ...registryEnvironment({ ...market.places, rpcUrl: node.url }, CONFIRMATIONS, READ_EVERY_MS),
  ...REACHES_RECEIVERS,
}
const onLog = (line: string) => void log.push(JSON.parse(line) as Json)
const running = await ownService({ transport: 'plain_http', environment, onLog })
/** A second process of the deployment. */
let second = await ownService({ transport: 'plain_http', environment, onLog, peerOf: running })
test.after.always(async () => {
  await second.end()
  await running.end()
  node.close()
  await receiver.close()
  await market.end()
})

const register = (body: Json) => registerOnChain(running.baseUrl, body)

/** A tenant with a receiver of its events. */
async function tenantWithReceiver() {
  const tenant = await subscriber(running, receiver)
  const { path, at } = await tenant.subscribe({ event_types: ['chain.*'] })
  const target = { issuer: running.issuer, tenantId: tenant.tenantId }
  return {
    ...tenant,
    target,
    /** Registers a new agent of the chain. */
    async agent(token?: string) {
      const owner = registries.owner()
      const id = token ?? (await registries.agent(owner))
      if (token !== undefined) await registries.identity('register', BigInt(id), owner.address)
      const { body, key } = await onChainRegistration(target, { owner, token: id })
      const done = await register(body)
      if (done.status !== 200) throw new Error(done.text)
      return { owner, key, token: id, agentId: String(done.body['agent_id']), body: done.body }
    },
    /** The events that arrived, once each, in the order of the chain. */
    told(): Json[] {
      const events = receiver.at(path).map(({ body }) => JSON.parse(body.toString()) as Json)
      return [...new Map(events.map((event) => [event['event_id'], event])).values()].toSorted(
        (a, b) => orderOf(a) - orderOf(b),
      )
    },
    /** Waits until the chain has told a log after all others, and returns the events before it. */
    async upToNow(token: string): Promise<Json[]> {
      const last = await registries.identity('setAgentURI', BigInt(token), 'last')
      await registries.mine(CONFIRMATIONS)
      for (let turn = 0; turn < 600; turn += 1) {
        if (this.told().some(({ data }) => (data as Json)['transaction_hash'] === last)) {
          // Deliveries overtake each other.
          await tenant.settled(at)
          return this.told().filter(({ data }) => (data as Json)['uri'] !== 'last')
        }
        await sleep(50)
      }
      throw new Error('the event does not arrive')
    },
  }
}

const orderOf = ({ data }: Json) => {
  const { block_number: block, log_index: index } = data as Record<string, number>
  return block! * 1_000 + index!
}
const typesOf = (events: readonly Json[]) => events.map(({ type }) => type)
const dataOf = (event: Json | undefined) => event!['data'] as Json

test.serial('an agent of a chain registers with a signature of its owner', async (t) => {
  const { target, ask } = await tenantWithReceiver()
  const owner = registries.owner()
  const token = await registries.agent(owner)
  const { body, key } = await onChainRegistration(target, { owner, token })
  const done = await register(body)
  t.is(done.status, 200, done.text)
  const agent = done.body['agent'] as Json
  t.is(agent['did'], key.did)
  const [did, onChain, ...more] = agent['anchors'] as Json[]
  t.is(more.length, 0)
  t.like(did, { type: 'did_key', value: key.did, status: 'active' })
  const anchor = registries.anchorOf(token)
  t.like(onChain, { type: 'erc8004', value: anchor, status: 'active' })

  const again = await onChainRegistration(target, { owner, token })
  const refused = await register(again.body)
  t.is(refused.status, 409, 'an anchor is of one agent')
  t.is(refused.body['error'], 'conflict')

  const path = `/api/v1/agents/${String(done.body['agent_id'])}/anchors`
  const revoked = await ask('POST', `${path}/${encodeURIComponent(anchor)}/revoke`)
  t.is(revoked.status, 200, revoked.text)
  t.like(revoked.body, { type: 'erc8004', value: anchor, status: 'revoked' })
})

test.serial('a contract account is an owner (EIP-1271)', async (t) => {
  const { target } = await tenantWithReceiver()
  const owner = await registries.contractOwner()
  const token = await registries.agent(owner)
  const { body } = await onChainRegistration(target, { owner, token })
  const forged = { ...body, anchor_proof: await registries.owner().sign('another') }
  t.is((await register(forged)).status, 400)
  t.is((await register(body)).status, 200)
})

test.serial('a proof of another owner, chain, agent, tenant or key is refused', async (t) => {
  const { target } = await tenantWithReceiver()
  const other = await tenantWithReceiver()
  const owner = registries.owner()
  const token = await registries.agent(owner)
  const strange = await registries.agent(registries.owner())
  const honest = await onChainRegistration(target, { owner, token })
  const elsewhere = await onChainRegistration(other.target, { owner, token })
  const signed = (message: string) => owner.sign(message)
  const { body, ownership } = honest
  const chainOf = (chain: string, agent_id: unknown = token) => ({
    anchor_value: { chain, agent_id },
  })
  const changes: Record<string, Json> = {
    'no proof': { anchor_proof: undefined },
    'no signature': { anchor_proof: '0x00' },
    'no digits': { anchor_proof: 'signed' },
    'another signer': { anchor_proof: await registries.owner().sign(ownership) },
    'the string with more': { anchor_proof: await signed(`${ownership}\n`) },
    'an agent of another owner': chainOf(NETWORK, strange),
    'the proof for another tenant': { anchor_proof: elsewhere.body.anchor_proof },
    'the proof for another issuer': {
      anchor_proof: await signed(ownership.replace(/http\S+/, 'https://id.test')),
    },
    'the proof for another key': {
      anchor_proof: (await onChainRegistration(target, { owner, token })).body.anchor_proof,
    },
    'an unknown chain': chainOf('eip155:1'),
    'no chain': chainOf('solana:mainnet'),
    'an agent that does not exist': chainOf(NETWORK, '99999999999999'),
    'an agent id above 2^256': chainOf(NETWORK, String(2n ** 256n)),
    'an agent id with a sign': chainOf(NETWORK, -1),
    'a DID in its place': { anchor_value: honest.key.did },
    'nothing in its place': { anchor_value: undefined },
    'an agent in place of a DID': { anchor_type: 'did_key' },
    'a key that did not sign': { key_ownership_proof: elsewhere.body.key_ownership_proof },
  }
  for (const [title, change] of Object.entries(changes)) {
    const answer = await register({ ...body, ...change })
    t.is(answer.status, 400, `${title}: ${answer.text}`)
    t.is(answer.body['error'], 'bad_request', title)
  }
  t.is((await register(body)).status, 200, 'the proof itself is valid')
  await registries.identity(
    'transferFrom',
    owner.address,
    registries.owner().address,
    BigInt(token),
  )
  t.is((await register(body)).status, 400, 'a former owner')
})

test.serial(
  'each log is one event of the tenant of the agent, after its confirmations',
  async (t) => {
    const [mine, other] = [await tenantWithReceiver(), await tenantWithReceiver()]
    const agent = await mine.agent()
    const theirs = await other.agent()
    const stranger = await registries.agent(registries.owner())
    const { token, owner } = agent
    const buyer = registries.owner()
    await registries.identity('setAgentURI', BigInt(stranger), 'https://not.ours')
    const sent: Hex[] = []
    sent.push(
      await registries.identity('transferFrom', owner.address, buyer.address, BigInt(token)),
      await registries.identity('setAgentURI', BigInt(token), 'https://agents.test/é\0.json'),
      await registries.identity('setMetadata', BigInt(token), 'agentWallet', '0x0102'),
      await registries.reputation(
        'giveFeedback',
        BigInt(token),
        -87n,
        2,
        'starred',
        '',
        'https://agents.test/mcp',
        'ipfs://x',
        `0x${'ab'.repeat(32)}`,
      ),
      await registries.reputation('revokeFeedback', BigInt(token), 2n ** 64n - 1n),
    )
    // The first two logs have enough confirmations. The monitor looks again before the others have.
    const transactions = () => mine.told().map((event) => dataOf(event)['transaction_hash'])
    while (!sent.slice(0, 2).every((each) => transactions().includes(each))) await sleep(50)
    const from = node.heads()
    while (node.heads() < from + 3) await sleep(50)
    for (const each of sent.slice(2)) t.false(transactions().includes(each), 'not confirmed')
    const told = await mine.upToNow(token)
    t.deepEqual(
      told.map((event) => dataOf(event)['transaction_hash']),
      sent,
    )
    t.deepEqual(typesOf(told), [
      'chain.ownership.changed',
      'chain.metadata.changed',
      'chain.metadata.changed',
      'chain.reputation.updated',
      'chain.reputation.updated',
    ])
    for (const event of told) {
      t.is(event['tenant_id'], mine.tenantId)
      t.like(dataOf(event), {
        actor: { type: 'chain', id: NETWORK },
        resource: { type: 'agent', id: agent.agentId },
        chain: NETWORK,
        anchor: registries.anchorOf(token),
        chain_agent_id: token,
      })
    }
    t.like(dataOf(told[0]), {
      previous_owner: owner.address.toLowerCase(),
      owner: buyer.address.toLowerCase(),
    })
    t.like(dataOf(told[1]), { change: 'uri', uri: 'https://agents.test/é\uFFFD.json' })
    t.like(dataOf(told[2]), { change: 'metadata', key: 'agentWallet', value: '0x0102' })
    t.like(dataOf(told[3]), {
      change: 'feedback',
      value: '-87',
      value_decimals: 2,
      tag1: 'starred',
    })
    t.like(dataOf(told[4]), { change: 'revoked', feedback_index: '18446744073709551615' })
    t.deepEqual(await other.upToNow(theirs.token), [], 'another tenant learns nothing')

    const feed = await mine.ask('GET', '/api/v1/events?limit=100')
    t.is(feed.status, 200, feed.text)
  },
)

test.serial(
  'an agent of two tenants causes an event in each, and none after the end',
  async (t) => {
    const [first, later] = [await tenantWithReceiver(), await tenantWithReceiver()]
    const { token } = await first.agent()
    await registries.identity('setAgentURI', BigInt(token), 'before')
    const also = await later.agent(token)
    await registries.identity('setAgentURI', BigInt(token), 'both')
    t.deepEqual(
      (await first.upToNow(token)).map((event) => dataOf(event)['uri']),
      ['before', undefined, 'both'],
      'with the change of owner',
    )
    t.deepEqual(
      (await later.upToNow(token)).map((event) => dataOf(event)['uri']),
      ['both'],
      'nothing from before it was an anchor',
    )
    const path = `/api/v1/agents/${also.agentId}/anchors`
    const anchor = encodeURIComponent(registries.anchorOf(token))
    t.is((await later.ask('POST', `${path}/${anchor}/revoke`)).status, 200)
    await registries.identity('setAgentURI', BigInt(token), 'ended')
    t.is((await first.upToNow(token)).length, 4)
    t.is(later.told().filter((event) => dataOf(event)['uri'] === 'ended').length, 0)
  },
)

test.serial(
  'an agent of the control plane has its events in the tenants of its organizations',
  async (t) => {
    const path = '/api/v1/agents/workspace/bootstrap'
    const { body: metadata } = await callAt(running.baseUrl, path)
    t.true((metadata['anchor_types_supported'] as string[]).includes('erc8004'))
    const controlPlane = String(metadata['control_plane_tenant_id'])
    const target = { issuer: String(metadata['issuer']), tenantId: controlPlane }
    const owner = registries.owner()
    const token = await registries.agent(owner)
    const { body } = await onChainRegistration(target, { owner, token })
    const done = await registerOnChain(running.baseUrl, body, path, {
      organization_name: 'On a chain',
      redirect_uris: [],
      issue_operator_invite: false,
      framework: 'generic',
    })
    t.is(done.status, 201, done.text)
    const created = await callAt(running.baseUrl, '/api/v1/webhooks', {
      method: 'POST',
      headers: {
        authorization: `Bearer ${String(done.body['tenant_access_token'])}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ url: `${receiver.origin}/workspace`, event_types: ['chain.*'] }),
    })
    t.is(created.status, 201, created.text)
    await registries.identity('setAgentURI', BigInt(token), 'of a workspace')
    await registries.mine(CONFIRMATIONS)
    const [received] = await receiver.until('/workspace', 1)
    const event = JSON.parse(received!.body.toString()) as Json
    t.is(event['tenant_id'], done.body['tenant_id'])
    t.is(dataOf(event)['uri'], 'of a workspace')
  },
)

test.serial('a restart and a second process double nothing and lose nothing', async (t) => {
  const tenant = await tenantWithReceiver()
  const { token } = await tenant.agent()
  const sent: string[] = []
  const change = async (count: number) => {
    for (let each = 0; each < count; each += 1) {
      const uri = `change ${sent.length}`
      sent.push(uri)
      await registries.identity('setAgentURI', BigInt(token), uri)
    }
  }
  await change(5)
  await second.service.stop()
  await change(5)
  second = await ownService({ transport: 'plain_http', environment, onLog, peerOf: running })
  await change(5)
  // Equal logs of one transaction are two.
  await registries.identity('setAgentURITwice', BigInt(token), 'twice')
  sent.push('twice', 'twice')
  t.deepEqual(
    (await tenant.upToNow(token)).map((event) => dataOf(event)['uri']),
    sent,
  )
})

test.serial('logs that a reorganization moves are sent once, and new ones are sent', async (t) => {
  const tenant = await tenantWithReceiver()
  const { token } = await tenant.agent()
  const uris = async () => (await tenant.upToNow(token)).map((event) => dataOf(event)['uri'])
  const change = (uri: string) => registries.identity('setAgentURI', BigInt(token), uri)
  // A shallow one: the log is in no block when it would be sent.
  const revertShallow = await chain.snapshot()
  await change('shallow')
  await revertShallow()
  await change('shallow again')
  t.deepEqual(await uris(), ['shallow again'])

  // A deep one: the log was sent, and its transaction is in another block afterwards.
  const revertDeep = await chain.snapshot()
  const moved = await registries.signed('setAgentURI', BigInt(token), 'moved')
  await chain.sendSigned(moved)
  t.deepEqual(await uris(), ['shallow again', 'moved'])
  await revertDeep()
  await registries.mine(2)
  await chain.sendSigned(moved)
  await change('on the other branch')
  await registries.mine(CONFIRMATIONS)
  t.deepEqual(
    (await uris()).toSorted(),
    ['moved', 'on the other branch', 'shallow again'],
    'the moved log is not told twice',
  )
})

test.serial('what a broken node answers changes nothing and is logged seldom', async (t) => {
  const tenant = await tenantWithReceiver()
  const { token } = await tenant.agent()
  await tenant.upToNow(token)
  const warnings = () =>
    log.filter(({ msg }) => msg === 'chain monitor: no blocks were read, retrying')
  const warned = warnings().length
  const startedMs = Date.now()
  const ofLogs = (change: (one: Json) => unknown) => (method: string, result: unknown) =>
    method === 'eth_getLogs' ? (result as Json[]).map(change) : undefined
  const lies: Record<string, (method: string, result: unknown) => unknown> = {
    'no list': (method) => (method === 'eth_getLogs' ? { length: 1 } : undefined),
    'null in the list': ofLogs(() => null),
    'a number as address': ofLogs((one) => ({ ...one, address: 7 })),
    'another contract': ofLogs((one) => ({ ...one, address: `0x${'11'.repeat(20)}` })),
    'no topics': ofLogs((one) => ({ ...one, topics: undefined })),
    'missing topics': ofLogs((one) => ({ ...one, topics: (one['topics'] as []).slice(0, 1) })),
    'a topic too few': ofLogs((one) => ({ ...one, topics: (one['topics'] as []).slice(0, -1) })),
    'a topic too many': ofLogs((one) => ({
      ...one,
      topics: [...(one['topics'] as string[]), `0x${'00'.repeat(32)}`, `0x${'00'.repeat(32)}`],
    })),
    'broken data': ofLogs((one) => ({ ...one, data: '0x01' })),
    'data that points outside': ofLogs((one) => ({ ...one, data: `0x${'ff'.repeat(64)}` })),
    'a removed log': ofLogs((one) => ({ ...one, removed: true })),
    'a huge block number': ofLogs((one) => ({ ...one, blockNumber: `0x${'f'.repeat(40)}` })),
    'a block outside of the range': ofLogs((one) => ({ ...one, blockNumber: '0x1' })),
    'a huge index': ofLogs((one) => ({ ...one, logIndex: `0x${'f'.repeat(64)}` })),
    'no transaction': ofLogs((one) => ({ ...one, transactionHash: null })),
    'a huge latest block': (method) =>
      method === 'eth_blockNumber' ? `0x${'f'.repeat(40)}` : undefined,
    'a latest block that is not there': (method) =>
      method === 'eth_blockNumber' ? '0xfffffffffffff' : undefined,
    'an earlier latest block': (method) => (method === 'eth_blockNumber' ? '0x1' : undefined),
    'another chain': (method) => (method === 'eth_chainId' ? '0x1' : undefined),
    'another block': (method, result) =>
      method === 'eth_getBlockByNumber' ? { ...(result as Json), number: '0x1' } : undefined,
    'no hash': (method, result) =>
      method === 'eth_getBlockByNumber' ? { ...(result as Json), hash: '' } : undefined,
    'no JSON': () => new RawAnswer('<html>'),
    'no object': () => new RawAnswer('7'),
    'an error': () => new RawAnswer('{"error":{"code":-32005,"message":"limit exceeded"}}'),
  }
  const uris: string[] = []
  for (const [title, lie] of Object.entries(lies)) {
    uris.push(title)
    node.misbehave(({ method }, result) => lie(method, result))
    await registries.identity('setAgentURI', BigInt(token), title)
    await registries.mine(CONFIRMATIONS)
    const from = node.lies()
    while (node.lies() < from + 2) await sleep(20)
    const isTold = tenant.told().some((event) => dataOf(event)['uri'] === title)
    node.misbehave(undefined)
    t.false(isTold, title)
  }
  const told = await tenant.upToNow(token)
  t.deepEqual(
    told.map((event) => dataOf(event)['uri']),
    uris,
    'once each when the node is well again',
  )
  const minutes = (Date.now() - startedMs) / 60_000
  t.true(warnings().length > warned)
  // Each of two processes logs at most once a minute.
  t.true(warnings().length - warned <= 2 * (minutes + 1), `${warnings().length - warned} warnings`)
  t.false(
    log.some((line) => JSON.stringify(line).includes(node.url)),
    'the URL is a secret',
  )
})

test.serial('logs that a lagging node does not have are sent when it has them', async (t) => {
  const tenant = await tenantWithReceiver()
  const { token } = await tenant.agent()
  // A node behind the others answers for blocks that it does not have, as if nothing was in them.
  node.misbehave(({ method }) => (method === 'eth_getLogs' ? [] : undefined))
  await registries.identity('setAgentURI', BigInt(token), 'withheld')
  const logged = Number(await chain.ask('eth_blockNumber'))
  await registries.mine(CONFIRMATIONS)
  const cursor = async () => {
    const [row] = await sql<{ block: number }>(running)`
      select block::int as block from registry_cursors where network = ${NETWORK}`
    return row!.block
  }
  while ((await cursor()) < logged) await sleep(50)
  node.misbehave(undefined)
  t.deepEqual(
    (await tenant.upToNow(token)).map((event) => dataOf(event)['uri']),
    ['withheld'],
  )
})

test.serial('logs of any size stop no reader', async (t) => {
  const [tenant, other] = [await tenantWithReceiver(), await tenantWithReceiver()]
  const [agent, neighbour] = [await tenant.agent(), await other.agent()]
  await registries.identity('setAgentURI', BigInt(agent.token), 'x'.repeat(5_000))
  node.misbehave(({ method, params }, result) => {
    const filter = params[0] as { topics: unknown[] }
    const isAbout = JSON.stringify(filter?.topics ?? []).includes(
      BigInt(agent.token).toString(16).padStart(64, '0'),
    )
    if (method !== 'eth_getLogs' || !isAbout || (result as Json[]).length === 0) return undefined
    const [one] = result as Json[]
    return [{ ...one, data: `0x${'00'.repeat(3 * 1024 * 1024)}` }]
  })
  await registries.identity('setAgentURI', BigInt(neighbour.token), 'heard')
  t.deepEqual(
    (await other.upToNow(neighbour.token)).map((event) => dataOf(event)['uri']),
    ['heard'],
  )
  node.misbehave(undefined)
  await registries.identity('setAgentURI', BigInt(agent.token), 'y'.repeat(5_000))
  // The others are read again now that the node answers.
  const told = (await tenant.upToNow(agent.token)).at(-1)
  t.like(dataOf(told), { uri: 'y'.repeat(2_048), truncated: true })
  t.true(log.some(({ msg }) => String(msg).includes('too large, skipped')))
})
