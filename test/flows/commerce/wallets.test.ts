/** Wallets of agents over HTTP: payments to a test seller on a local chain, and the refusals of the policy. */
import test from 'ava'
import { encodeFunctionData, parseTransaction, recoverTransactionAddress } from 'viem'
import { CHAIN_ID, NETWORK, newAccount } from '../../support/commerce/chain.js'
import { budget, expectStatus, walletAgent } from '../../support/commerce/wallet.js'
import { decode, openShop, PRICE_ATOMIC } from '../../support/commerce/x402-shop.js'
import { type Answer, apiOf, type Json } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { owned } from '../../support/identity/owner.js'
import { sharedPair } from '../../support/service.js'
import { ServiceRefusal } from '../../../runtime/clients/client/refusal.js'
import { walletFetch } from '../../../runtime/clients/client/wallet-fetch.js'
import { numberAll } from '../../support/storage/numbered.js'

const shop = await openShop({ profile: 'wallets' })
const api = apiOf(shop.running)
const workspace = await api.workspace()
const { token: owner, tenantId } = workspace
test.after.always(() => shop.close())

const asset = shop.chain.token
const roomy = () => [budget(asset, PRICE_ATOMIC, PRICE_ATOMIC * 10n)]
const payer = (policy: Parameters<typeof walletAgent>[2]) => walletAgent(api, workspace, policy)

/** The terms of a link, as a seller sends them. */
async function termsOf(link: Awaited<ReturnType<typeof shop.link>>): Promise<Json> {
  return decode((await shop.get(link)).headers.get('payment-required'))
}

type Recorded = { type: string; data: Json }

/** The wallet events of an agent, in order. */
async function eventsOf(agentId: string): Promise<readonly Recorded[]> {
  const { database } = shop.running.db
  await numberAll(database)
  return sql<Recorded>(database)`
    select type, data from all_events where tenant_id = ${tenantId} and type like 'wallet.%'
    and data ->> 'agent_id' = ${agentId} order by sequence`
}

const spentBy = async (at: string): Promise<unknown> => {
  const { budgets } = expectStatus(200, await api.get(at, owner))
  return (budgets as Json[])[0]?.['spent']
}

function refusal({ status, body }: Answer): unknown[] {
  return [status, body['error']]
}

test('an agent pays a seller: 402, signature, 200, and the tokens move', async (t) => {
  const link = await shop.link()
  const agent = await payer({ recipients: [link.payTo], budgets: roomy() })
  t.regex(agent.address, /^0x[0-9a-fA-F]{40}$/)
  await shop.chain.mint(agent.address, PRICE_ATOMIC)
  const paid = expectStatus(201, await agent.pay(await termsOf(link)))
  t.like(paid, {
    x402_version: 2,
    header_name: 'PAYMENT-SIGNATURE',
    network: NETWORK,
    asset: asset.toLowerCase(),
    amount: String(PRICE_ATOMIC),
    pay_to: link.payTo.toLowerCase(),
    payer: agent.address,
  })
  const settled = await shop.post(link, String(paid['header_value']))
  t.is(settled.status, 200, settled.text)
  const [transfer, ...more] = await shop.chain.transfersTo(link.payTo)
  t.is(more.length, 0)
  t.is(transfer!.value, PRICE_ATOMIC)
  t.is(transfer!.from.toLowerCase(), agent.address.toLowerCase())

  const own = expectStatus(200, await api.get('/api/v1/wallet', agent.token))
  t.like(own, { address: agent.address, status: 'active', recipients: [link.payTo.toLowerCase()] })
  t.like((own['budgets'] as Json[])[0], {
    spent: String(PRICE_ATOMIC),
    remaining: String(PRICE_ATOMIC * 9n),
    window_secs: 86_400,
  })
  const { rows } = await api.list(`${agent.at}/signatures`, owner)
  t.like(rows[0], {
    id: paid['id'],
    kind: 'x402_payment',
    hash: paid['hash'],
    recipient: link.payTo.toLowerCase(),
    resource: shop.running.baseUrl + link.url,
  })
  const [event, ...others] = await eventsOf(agent.agentId)
  t.is(others.length, 0)
  t.is(event!.type, 'wallet.tx.signed')
  t.like(event!.data, {
    signature_id: paid['id'],
    hash: paid['hash'],
    amount: String(PRICE_ATOMIC),
    actor: { type: 'agent', id: agent.agentId },
  })
  t.false(JSON.stringify(event).includes(String(paid['header_value'])))
})

test('the payment has the identifier of the signature, and version 1 works too', async (t) => {
  const link = await shop.link()
  const agent = await payer({ recipients: null, budgets: roomy() })
  await shop.chain.mint(agent.address, PRICE_ATOMIC)
  const terms = await termsOf(link)
  const two = expectStatus(201, await agent.pay(terms))
  const payload = decode(String(two['header_value']))
  t.deepEqual(payload['accepted'], (terms['accepts'] as Json[])[0])
  t.like(payload, { extensions: { 'payment-identifier': { info: { id: two['id'] } } } })
  const body = (await shop.get(link)).body
  t.is(body['x402Version'], 1)
  const one = expectStatus(201, await agent.pay(body))
  t.is(one['header_name'], 'X-PAYMENT')
  const header = { 'x-payment': String(one['header_value']) }
  const settled = await shop.post(link, undefined, header)
  t.is(settled.status, 200, settled.text)
})

test('a retry with the same key gets the same signature and spends once', async (t) => {
  const link = await shop.link()
  const agent = await payer({ recipients: null, budgets: roomy() })
  const terms = await termsOf(link)
  const headers = { 'idempotency-key': 'pay-once' }
  const first = await agent.pay(terms, headers)
  const [again, other] = await Promise.all([agent.pay(terms, headers), agent.pay(terms)])
  t.is(again.headers['idempotency-replayed'], 'true')
  t.deepEqual(again.body, first.body)
  t.not(other.body['nonce'], first.body['nonce'])
  t.is(await spentBy(agent.at), String(PRICE_ATOMIC * 2n))
  const changed = await agent.pay({ ...terms, error: 'another body' }, headers)
  t.is(changed.status, 422)
})

test('the policy refuses with its codes, writes events and spends nothing', async (t) => {
  const link = await shop.link()
  const terms = await termsOf(link)
  const [offer] = terms['accepts'] as Json[]
  const agent = await payer({ recipients: [link.payTo], budgets: roomy() })
  const pay = (change: Json) => agent.pay({ ...terms, accepts: [{ ...offer, ...change }] })
  const stranger = newAccount().address

  t.deepEqual(refusal(await pay({ payTo: stranger })), [403, 'recipient_not_allowed'])
  t.deepEqual(refusal(await pay({ asset: stranger })), [403, 'contract_not_allowed'])
  t.deepEqual(refusal(await pay({ network: 'eip155:999' })), [403, 'contract_not_allowed'])
  const dear = String(PRICE_ATOMIC + 1n)
  t.deepEqual(refusal(await pay({ amount: dear })), [403, 'budget_exceeded'])
  expectStatus(200, await api.post(`${agent.at}/freeze`, owner))
  t.deepEqual(refusal(await pay({})), [403, 'wallet_frozen'])
  const none = await payer(null)
  t.deepEqual(refusal(await none.pay(terms)), [404, 'wallet_not_provisioned'])
  t.deepEqual(refusal(await api.get('/api/v1/wallet', none.token)), [404, 'wallet_not_provisioned'])

  t.is(await spentBy(agent.at), '0')
  t.deepEqual(
    (await eventsOf(agent.agentId)).map(({ type, data }) => [type, data['reason']]),
    [
      ['wallet.tx.rejected', 'recipient_not_allowed'],
      ['wallet.tx.rejected', 'contract_not_allowed'],
      ['wallet.tx.rejected', 'contract_not_allowed'],
      ['wallet.tx.rejected', 'budget_exceeded'],
      ['wallet.budget.exceeded', undefined],
      ['wallet.tx.rejected', 'wallet_frozen'],
    ],
  )
  t.deepEqual(
    (await eventsOf(none.agentId)).map(({ data }) => data['reason']),
    ['wallet_not_provisioned'],
  )
  expectStatus(200, await api.post(`${agent.at}/unfreeze`, owner))
  expectStatus(201, await pay({}))
})

test('offers that no wallet can pay are a bad request, and of several the allowed one is paid', async (t) => {
  const link = await shop.link()
  const terms = await termsOf(link)
  const [offer = {}] = terms['accepts'] as Json[]
  const agent = await payer({ recipients: [link.payTo], budgets: roomy() })
  const unpayable: readonly Json[] = [
    { ...offer, scheme: 'upto' },
    { ...offer, network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' },
    { ...offer, amount: '0' },
    { ...offer, amount: '1e6' },
    { ...offer, payTo: 'not an address' },
    { ...offer, extra: { name: 'Another coin', version: '2' } },
    { ...offer, extra: { ...(offer['extra'] as Json), assetTransferMethod: 'permit2' } },
  ]
  t.is((await agent.pay({ ...terms, accepts: unpayable })).status, 400)
  const elsewhere = { ...offer, payTo: newAccount().address }
  const paid = await agent.pay({ ...terms, accepts: [...unpayable, elsewhere, offer] })
  t.is(expectStatus(201, paid)['pay_to'], link.payTo.toLowerCase())
  t.is(
    (await agent.pay({ ...terms, accepts: [{ ...offer, note: 'x'.repeat(20_000) }] })).status,
    413,
  )
})

test('a used up window is 429 with the time until it frees', async (t) => {
  const terms = await termsOf(await shop.link())
  const budgets = [budget(asset, PRICE_ATOMIC, PRICE_ATOMIC * 2n, 3_600)]
  const agent = await payer({ recipients: null, budgets })
  expectStatus(201, await agent.pay(terms))
  expectStatus(201, await agent.pay(terms))
  const { status, body, headers } = await agent.pay(terms)
  t.deepEqual([status, body['error']], [429, 'budget_exceeded'])
  const wait = Number(headers['retry-after'])
  t.true(wait > 3_000 && wait <= 3_600, String(wait))
  t.is(body['retry_after'], wait)
  const exceeded = (await eventsOf(agent.agentId)).at(-1)!
  t.is(exceeded.type, 'wallet.budget.exceeded')
  t.like(exceeded.data, {
    window_max: String(PRICE_ATOMIC * 2n),
    spent: String(PRICE_ATOMIC * 2n),
    amount: String(PRICE_ATOMIC),
  })
  // What has left the window counts no more.
  await sql(shop.running)`
    update wallet_spends set spent_at = spent_at - interval '1 hour' where tenant_id = ${tenantId}
    and signature_id in (select id from wallet_signatures
    where agent_id = ${agent.agentId} limit 1)`
  expectStatus(201, await agent.pay(terms))
  t.is((await agent.pay(terms)).status, 429)
  // A larger budget counts what was spent under the old one.
  const larger = { budgets: [budget(asset, PRICE_ATOMIC, PRICE_ATOMIC * 3n, 3_600)] }
  expectStatus(200, await api.patch(agent.at, owner, larger))
  expectStatus(201, await agent.pay(terms))
  t.is((await agent.pay(terms)).status, 429)
})

test('two processes race for the last of a budget: exactly that much is signed', async (t) => {
  const [, peer] = await sharedPair('wallets')
  const other = apiOf(peer)
  t.teardown(() => other.end())
  const terms = await termsOf(await shop.link())
  const agent = await payer({
    recipients: null,
    budgets: [budget(asset, PRICE_ATOMIC, PRICE_ATOMIC * 5n)],
  })
  const json = { payment_required: terms }
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, turn) =>
      (turn % 2 === 0 ? api : other).post('/api/v1/wallet/x402-payments', agent.token, json),
    ),
  )
  const signed = answers.filter(({ status }) => status === 201)
  t.is(signed.length, 5)
  t.is(new Set(signed.map(({ body }) => body['nonce'])).size, 5)
  t.true(answers.every(({ status }) => status === 201 || status === 429))
  t.is(await spentBy(agent.at), String(PRICE_ATOMIC * 5n))
})

test('a person needs a recent sign-in with two factors, except to freeze', async (t) => {
  const scope = 'openid wallet:manage agents:manage wallet:sign'
  const weak = await owned(api, { factor: false, scope })
  const strong = await owned(api, { scope })
  const registered = async ({ made, token }: typeof weak) => {
    const { agentId } = await api.register(made.tenantId)
    return { token, at: `/api/v1/agents/${agentId}/wallet` }
  }
  const one = await registered(weak)
  const none = [401, 'insufficient_user_authentication']
  t.deepEqual(refusal(await api.post(one.at, one.token, {})), none)
  t.deepEqual(refusal(await api.post(`${one.at}/freeze`, one.token)), [
    404,
    'wallet_not_provisioned',
  ])
  const two = await registered(strong)
  expectStatus(201, await api.post(two.at, two.token, {}))
  expectStatus(200, await api.post(`${two.at}/freeze`, two.token))
  // Another tenant's person sees neither agent nor wallet.
  t.deepEqual(refusal(await api.post(`${two.at}/unfreeze`, one.token)), [404, 'not_found'])
  expectStatus(200, await api.post(`${two.at}/unfreeze`, two.token))
})

test('the client package pays a 402, and reports the refusal of a wallet', async (t) => {
  const link = await shop.link()
  const agent = await payer({ recipients: [link.payTo], budgets: roomy() })
  await shop.chain.mint(agent.address, PRICE_ATOMIC)
  const { baseUrl } = shop.running
  const paying = walletFetch({ baseUrl, token: agent.token })
  const at = (one: typeof link) => `${baseUrl}${one.url}?buyer_country=US&buyer_region=CA`
  const paid = await paying(at(link), { method: 'POST' })
  t.is(paid.status, 200, await paid.text())
  t.is((await paying(`${baseUrl}/health/live`)).status, 200)
  const other = await shop.link()
  const refused = await t.throwsAsync(() => paying(at(other), { method: 'POST' }), {
    instanceOf: ServiceRefusal,
  })
  t.is((refused as ServiceRefusal).code, 'recipient_not_allowed')
})

test('an agent cannot widen its own policy, and may freeze itself', async (t) => {
  const scopes = ['wallet:sign', 'wallet:read', 'wallet:manage']
  const agent = await walletAgent(api, workspace, null, scopes)
  const ask = (method: string, path: string, json?: Json) =>
    api.call(method, path, { token: agent.token, json })
  t.deepEqual(refusal(await ask('POST', agent.at, {})), [403, 'policy_denied'])
  expectStatus(201, await api.post(agent.at, owner, { budgets: roomy() }))
  t.is((await api.post(agent.at, owner, {})).status, 409)
  t.deepEqual(refusal(await ask('PATCH', agent.at, { recipients: null })), [403, 'policy_denied'])
  expectStatus(200, await ask('POST', `${agent.at}/freeze`))
  t.deepEqual(refusal(await ask('POST', `${agent.at}/unfreeze`)), [403, 'policy_denied'])
  t.is(expectStatus(200, await ask('GET', agent.at))['status'], 'frozen')
  const signer = await payer(null)
  t.is((await api.post(agent.at, signer.token, {})).status, 403)
  t.is((await api.get('/api/v1/wallets', signer.token)).status, 403)
})

test('a policy is checked: checksums, chains, assets, amounts', async (t) => {
  const agent = await payer(null)
  const pointer = async (policy: Json) => {
    const { status, body } = await api.post(agent.at, owner, policy)
    const [first] = (body['errors'] ?? []) as Json[]
    return [status, first?.['pointer']]
  }
  const right = newAccount().address
  // The example of EIP-55 with one letter in the other case.
  const wrong = '0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
  t.deepEqual(await pointer({ recipients: [wrong] }), [400, '#/recipients/0'])
  t.deepEqual(await pointer({ recipients: ['0x12'] }), [400, '#/recipients/0'])
  t.deepEqual(await pointer({ contracts: [`${NETWORK}:${asset}`] }), [400, '#/contracts/0'])
  t.deepEqual(await pointer({ contracts: [`eip155:999:${right}`] }), [400, '#/contracts/0'])
  t.deepEqual(await pointer({ budgets: [budget(right, 1n, 1n)] }), [400, '#/budgets/0/asset'])
  t.deepEqual(await pointer({ budgets: [budget(asset, 2n, 1n)] }), [400, '#/budgets/0/payment_max'])
  t.deepEqual(await pointer({ budgets: [budget(asset, 1n, 1n), budget(asset, 1n, 1n)] }), [
    400,
    '#/budgets/1',
  ])
  t.deepEqual(await pointer({ budgets: [budget(asset, 1n, 1n, 59)] }), [
    400,
    '#/budgets/0/window_secs',
  ])
})

test('an agent that is suspended signs nothing, and its wallet outlives it', async (t) => {
  const terms = await termsOf(await shop.link())
  const agent = await payer({ recipients: null, budgets: roomy() })
  const path = `/api/v1/agents/${agent.agentId}`
  expectStatus(200, await api.post(`${path}/suspend`, owner))
  t.is((await agent.pay(terms)).status, 401)
  t.is(await spentBy(agent.at), '0')
  t.is((await api.delete(path, owner)).status, 204)
  t.is(expectStatus(200, await api.get(agent.at, owner))['address'], agent.address)
  const { rows } = await api.list('/api/v1/wallets', owner)
  const left = rows.find(({ agent_id: id }) => id === agent.agentId)
  t.truthy(left)

  // The key goes on with another agent.
  const assign = `/api/v1/wallets/${String(left?.['id'])}/assign`
  const heir = await payer(null)
  const rich = await payer({ budgets: roomy() })
  const give = (to: { agentId: string }, by = owner) =>
    api.post(assign, by, { agent_id: to.agentId })
  t.deepEqual(refusal(await give(rich)), [409, 'conflict'])
  t.is((await give({ agentId: 'unknown' })).status, 404)
  const assigned = expectStatus(200, await give(heir))
  t.like(assigned, { address: agent.address, status: 'frozen', agent_id: heir.agentId })
  t.deepEqual(refusal(await give(await payer(null))), [409, 'conflict'])
  t.deepEqual(refusal(await heir.pay(terms)), [403, 'wallet_frozen'])
  expectStatus(200, await api.post(`${heir.at}/unfreeze`, owner))
  t.is(expectStatus(201, await heir.pay(terms))['payer'], agent.address)
})

test('transactions: transfers within the budget are signed and accepted by the chain', async (t) => {
  const payee = newAccount().address
  const agent = await payer({
    recipients: [payee],
    budgets: [...roomy(), budget('native', 10n ** 16n, 10n ** 17n)],
  })
  await shop.chain.mint(agent.address, PRICE_ATOMIC)
  const fund = { to: agent.address as `0x${string}`, value: 10n ** 17n }
  await shop.chain.inTurn(async () => {
    const hash = await shop.chain.wallet.sendTransaction(fund)
    await shop.chain.wallet.waitForTransactionReceipt({ hash })
  })
  const abi = shop.chain.abi
  const data = (to: string, amount: bigint, functionName = 'transfer') =>
    encodeFunctionData({ abi, functionName, args: [to, amount] })
  const fees = { max_fee_per_gas: '10000000000', max_priority_fee_per_gas: '1000000000' }
  const terms = { network: NETWORK, nonce: 0, to: asset, gas: '100000', ...fees }
  const paid = expectStatus(201, await agent.transact({ ...terms, data: data(payee, 1_000n) }))
  const raw = String(paid['raw']) as `0x02${string}`
  t.like(parseTransaction(raw), { chainId: CHAIN_ID, nonce: 0, gas: 100_000n })
  t.is(await recoverTransactionAddress({ serializedTransaction: raw }), agent.address as never)
  const hash = await shop.chain.wallet.sendRawTransaction({ serializedTransaction: raw })
  t.is(hash, paid['hash'] as never)
  await shop.chain.wallet.waitForTransactionReceipt({ hash })
  t.is(await shop.chain.balanceOf(payee), 1_000n)

  const { budgets } = expectStatus(200, await api.get(agent.at, owner))
  const spent = Object.fromEntries((budgets as Json[]).map((one) => [one['asset'], one['spent']]))
  t.deepEqual(spent, { [asset.toLowerCase()]: '1000', native: String(10n ** 15n) })

  const refused = async (change: Json) => refusal(await agent.transact({ ...terms, ...change }))
  const other = newAccount().address
  t.deepEqual(await refused({ data: data(other, 1n) }), [403, 'recipient_not_allowed'])
  t.deepEqual(await refused({ data: data(payee, PRICE_ATOMIC + 1n) }), [403, 'budget_exceeded'])
  t.deepEqual(await refused({ data: `0x095ea7b3${'0'.repeat(128)}` }), [400, 'bad_request'])
  t.deepEqual(await refused({ data: data(payee, 1n), value: '1' }), [400, 'bad_request'])
  t.deepEqual(await refused({ to: other, data: '0x12345678' }), [403, 'contract_not_allowed'])
  t.deepEqual(await refused({ to: payee, value: String(10n ** 16n) }), [403, 'budget_exceeded'])
  t.deepEqual(await refused({ to: other, value: '1' }), [403, 'recipient_not_allowed'])
  expectStatus(201, await agent.transact({ ...terms, to: payee, nonce: 1, value: '5' }))

  const allowed = { contracts: [`${NETWORK}:${other}`] }
  expectStatus(200, await api.patch(agent.at, owner, allowed))
  expectStatus(201, await agent.transact({ ...terms, to: other, nonce: 2, data: '0x12345678' }))
})

test('the key is sealed, and no answer of the service has it', async (t) => {
  const agent = await payer({ budgets: roomy() })
  const [row] = await sql<{ sealed: Buffer }>(shop.running)`
    select key_sealed as sealed from wallets where tenant_id = ${tenantId}
    and agent_id = ${agent.agentId}`
  // Version and tag of a sealed value surround the 32 bytes.
  t.true(row!.sealed.length > 32)
  for (const path of [agent.at, '/api/v1/wallets', `${agent.at}/signatures`]) {
    t.notRegex(JSON.stringify((await api.get(path, owner)).body), /key|sealed|private/)
  }
})

test('changes of wallets are in the audit log', async (t) => {
  const agent = await payer({ budgets: roomy() })
  expectStatus(200, await api.patch(agent.at, owner, { recipients: null }))
  expectStatus(200, await api.post(`${agent.at}/freeze`, owner))
  expectStatus(200, await api.post(`${agent.at}/freeze`, owner))
  expectStatus(200, await api.post(`${agent.at}/unfreeze`, owner))
  await numberAll(shop.running.db.database)
  const rows = await sql<{ type: string }>(shop.running)`
    select type from audit_events where tenant_id = ${tenantId} and type like 'admin.wallet.%'
    and resource ->> 'id' = (select id::text from wallets where agent_id = ${agent.agentId})
    order by sequence`
  t.deepEqual(
    rows.map(({ type }) => type),
    [
      'admin.wallet.created',
      'admin.wallet.updated',
      'admin.wallet.frozen',
      'admin.wallet.unfrozen',
    ],
  )
})
