import { randomUUID } from 'node:crypto'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import test from 'ava'
import { sweepExpired } from '../../../../actors/operations/retention/sweeps.js'
import {
  buildTokensFixture,
  request,
  type TokensFixture,
} from '../../oauth/tokens/tokens-fixture.js'

let fixture: TokensFixture
test.before(async () => {
  fixture = await buildTokensFixture()
})
test.after.always(() => fixture?.close())

const DAY_MS = 86_400_000
const retention = {
  delivery_retention_days: 30,
  checkout_retention_days: 90,
  guest_retention_secs: 86_400,
}
const sweep = () => {
  const { database, clock, registry } = fixture
  const needs = { database, clock, random: systemRandom(clock), registry, retention }
  return sweepExpired(needs, new AbortController().signal)
}

test.serial('a replaced session stays while the one that replaced it does', async (t) => {
  const tenantId = await fixture.tenant('replaced')
  const session = (id: string, next: string | null, days: number) =>
    fixture.sql(
      `with account as (insert into accounts (id, email, email_key, created_at, updated_at)
         values (gen_random_uuid(), $1 || '@svc.example', $1 || '@svc.example', now(), now()) returning id)
       insert into browser_sessions (tenant_id, id, account_id, token_sha256, level, pending, amr, auth_time,
         password_at, idle_secs, user_agent, address, created_at, last_seen_at, expires_at, replaced_by)
       select $2, $1::uuid, id, sha256($1::bytea), 1, false, '{}', now(), now(), 60, '', '', now(), now(),
         now() + make_interval(days => $3), $4 from account`,
      [id, tenantId, days, next],
    )
  const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()]
  await session(first, second, -5)
  await session(second, third, -4)
  await session(third, null, 1)
  await sweep()
  const { rows } = await fixture.sql('select id from browser_sessions where tenant_id = $1', [
    tenantId,
  ])
  t.is(rows.length, 3)
  await fixture.sql(
    'update browser_sessions set expires_at = now() - interval $$5 days$$ where id = $1',
    [third],
  )
  for (const left of [2, 1, 0]) {
    await sweep()
    const now = await fixture.sql('select id from browser_sessions where tenant_id = $1', [
      tenantId,
    ])
    t.true(now.rows.length <= left)
  }
})

test.serial('a round removes what ran out and leaves what did not', async (t) => {
  const { clock } = fixture
  const tenantId = await fixture.tenant('upkeep')
  const agent = await fixture.agent(tenantId)
  const old = await fixture.login(tenantId, agent)
  const refresh = (refresh_token: string) =>
    fixture.tokens.issueToken(
      request({ grant_type: 'refresh_token', client_id: agent.id, refresh_token }),
    )
  await refresh(old.refreshToken)
  await fixture.sql(`insert into coordination_values (key, value, expires_at)
    values ('over', '', now() - interval '1 s'), ('not yet', '', now() + interval '1 h')`)

  const first = await sweep()
  t.like(first, { sessions: 0, refresh_answers: 0, coordination: 1 })

  clock.advance(31_000)
  const second = await sweep()
  t.like(second, { sessions: 0, refresh_answers: 1, coordination: 0 })

  clock.advance(4 * DAY_MS)
  const young = await fixture.login(tenantId, agent)
  const third = await sweep()
  t.like(third, { sessions: 1 })
  const { rows } = await fixture.sql('select session_id as "sessionId" from refresh_families')
  t.deepEqual(rows, [{ sessionId: young.sessionId }], 'families went with their session')
  const left = await fixture.sql('select count(*)::int as n from refresh_tokens')
  t.deepEqual(left.rows, [{ n: 1 }])

  await fixture.sql(
    `with wallet as (
       insert into wallets (tenant_id, id, agent_id, address, key_sealed, contracts, created_at, updated_at)
       values ($1, gen_random_uuid(), $2, '0x' || repeat('1', 40), '', '{}', now(), now()) returning tenant_id, id, agent_id),
     signed as (
       insert into wallet_signatures (tenant_id, id, wallet_id, agent_id, kind, network, recipient, asset,
         amount, fee_max, hash, nonce, created_at)
       select tenant_id, gen_random_uuid(), id, agent_id, 'transaction', 'eip155:1', '0x02', 'native',
         1, 0, '', '', now() from wallet, generate_series(1, 2)
       returning tenant_id, id, wallet_id)
     insert into wallet_spends (tenant_id, signature_id, wallet_id, network, asset, amount, spent_at)
     select tenant_id, id, wallet_id, 'eip155:1', 'native', row_number() over (),
       $3::timestamptz - row_number() over () * interval '364 days' from signed`,
    [tenantId, agent.id, clock.now()],
  )
  t.like(await sweep(), { wallet_spends: 1 })
  const spends = await fixture.sql('select amount from wallet_spends')
  t.deepEqual(spends.rows, [{ amount: '1' }], 'what a window still reaches stays')
})
