/** Codes and refresh tokens that one statement redeems: each once, also for concurrent requests. */
import { createHash, randomUUID } from 'node:crypto'
import test from 'ava'
import { Client } from 'pg'
import {
  findCodes,
  type Redemption,
  redeemingCodes,
} from '../../../storage/oauth/authorization-codes.js'
import {
  findRefreshTokens,
  type Rotation,
  rotatingRefreshTokens,
} from '../../../storage/oauth/refresh-tokens.js'
import type { Statement } from '../../../storage/platform/sql.js'
import { type FreshDatabase, freshDatabase } from '../../support/storage/database.js'

const TENANT = randomUUID()
const SESSION = randomUUID()
const CLIENT = randomUUID()
const NOW = new Date()
const LATER = new Date(NOW.getTime() + 60_000)
const sha256 = (text: string) => createHash('sha256').update(text).digest()

let fresh: FreshDatabase

/** The statement in a separate transaction. Returns true for each change that succeeded. */
async function decided(statement: Statement, count: number): Promise<boolean[]> {
  const [answer] = await fresh.database.together(TENANT, [statement])
  const places = answer!.rows.map(({ place }) => place)
  return Array.from({ length: count }, (_, at) => places.includes(at + 1))
}
const redeemCodes = (all: readonly Redemption[]) =>
  decided(redeemingCodes(TENANT, all, []), all.length)
const rotateRefreshTokens = (all: readonly Rotation[]) =>
  decided(rotatingRefreshTokens(TENANT, all, []), all.length)

test.before(async () => {
  fresh = await freshDatabase()
})
test.after.always(() => fresh?.drop())

/** Inserts rows without referenced rows, which the tested statements do not read. */
async function asItIs(text: string, values: unknown[]): Promise<void> {
  const client = new Client({ connectionString: fresh.superuserUrl })
  await client.connect()
  try {
    await client.query('set session_replication_role = replica')
    await client.query(text, values)
  } finally {
    await client.end()
  }
}

/** `count` codes ordered by id. The last one is expired. */
async function codes(count: number) {
  const made = Array.from({ length: count }, () => randomUUID())
    .toSorted()
    .map((id) => ({ id, code: `code ${id}` }))
  for (const [at, { id, code }] of made.entries()) {
    await asItIs(
      `insert into authorization_codes (tenant_id, id, code_sha256, client_id, session_id, subject,
         redirect_uri, scopes, audience, level, amr, auth_time, created_at, expires_at)
       values ($1, $2, $3, $4, $5, 'user-1', 'https://app.example/', '{openid}', '{app}', 1,
         '{pwd}', $6, $6, $7)`,
      [TENANT, id, sha256(code), CLIENT, SESSION, NOW, at === count - 1 ? NOW : LATER],
    )
  }
  return made
}

const redemption = (id: string, token: string | null, jkt: string | null = null) => ({
  id,
  jkt,
  offline: false,
  refreshTokenSha256: token === null ? null : sha256(token),
  now: NOW,
  expiresAt: LATER,
})

test('of many concurrent redemptions of many codes, one of each succeeds, with the token it brought', async (t) => {
  const made = await codes(6)
  const tries = await Promise.all(
    Array.from({ length: 4 }, (_, attempt) =>
      redeemCodes(made.map(({ id }) => redemption(id, `${attempt} ${id}`, `key ${attempt}`))),
    ),
  )
  for (const [at, { id, code }] of made.entries()) {
    const winners = tries.flatMap((won, attempt) => (won[at] ? [attempt] : []))
    const [row] = await findCodes(fresh.database, [sha256(code)])
    if (at === made.length - 1) {
      t.deepEqual(winners, [], 'it had run out')
      t.is(row?.redeemedAt, null)
      continue
    }
    t.is(winners.length, 1)
    t.deepEqual(row?.redeemedAt, NOW)
    const { rows } = await fresh.database.tenant(TENANT, (tx) =>
      tx.query<{ sha: Buffer; jkt: string; scopes: string[] }>({
        name: 'test.family',
        text: `select t.token_sha256 as sha, f.jkt, f.scopes from refresh_families f
               join refresh_tokens t on t.tenant_id = f.tenant_id and t.family_id = f.id
               where f.id = $1`,
        values: [id],
      }),
    )
    const expected = { sha: sha256(`${winners[0]} ${id}`), jkt: `key ${winners[0]}` }
    t.deepEqual(rows, [{ ...expected, scopes: ['openid'] }])
  }
})

test('a code is redeemed without a refresh token, and once in one statement too', async (t) => {
  const [first] = await codes(2)
  const twice = [redemption(first!.id, null), redemption(first!.id, 'second')]
  const won = await redeemCodes(twice)
  t.is(won.filter(Boolean).length, 1)
  const found = await findCodes(fresh.database, [sha256('nothing'), sha256(first!.code)])
  t.is(found[0], undefined)
  t.is(found[1]?.id, first!.id)
})

test('an offline grant is created only in an open session, and keeps the session open until the commit', async (t) => {
  const [first, second] = await codes(3)
  const session = randomUUID()
  const of = { offline: true, jkt: null, refreshTokenSha256: null, now: NOW, expiresAt: LATER }
  await asItIs(
    `insert into tenants (id, organization_id, name, slug, environment, admit_agents,
       created_at, updated_at)
     values ($1, $1, 'Test', 'test', 'sandbox', true, $2, $2)`,
    [TENANT, NOW],
  )
  const open = `insert into sessions (tenant_id, id, subject, subject_type, client_id, amr, auth_time,
    created_at, expires_at) values ($1, $2, 'user-1', 'human', $3, '{pwd}', $4, $4, $5)`
  await asItIs(open, [TENANT, session, CLIENT, NOW, LATER])
  await asItIs('update authorization_codes set session_id = $2 where tenant_id = $1', [
    TENANT,
    session,
  ])
  const redeem = (id: string) => redeemCodes([{ id, ...of }])
  t.deepEqual(await redeem(first!.id), [true])
  // The statement waits for a concurrent end of the session.
  const ending = new Client({ connectionString: fresh.superuserUrl })
  await ending.connect()
  t.teardown(() => ending.end())
  await ending.query('begin')
  await ending.query(
    `update sessions set ended_at = now(), ended_reason = 'test' where tenant_id = $1 and id = $2`,
    [TENANT, session],
  )
  const state = { settled: false }
  const waiting = redeem(second!.id).finally(() => (state.settled = true))
  for (let waits = false; !waits && !state.settled; ) {
    await ending.query('select pg_stat_clear_snapshot()')
    const { rows } = await ending.query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
    )
    waits = rows.length > 0
  }
  t.false(state.settled, 'it waits for the end that is under way')
  await ending.query('commit')
  t.deepEqual(await waiting, [false])
  const { rows } = await ending.query(
    'select id from sessions where tenant_id = $1 and id = any($2)',
    [TENANT, [first!.id, second!.id]],
  )
  t.deepEqual(rows, [{ id: first!.id }])
})

test('of many concurrent rotations of many tokens, one of each succeeds and its successor is kept', async (t) => {
  await asItIs(
    `insert into sessions (tenant_id, id, subject, subject_type, client_id, amr, auth_time,
       created_at, expires_at) values ($1, $2, 'user-1', 'human', $3, '{pwd}', $4, $4, $5)`,
    [TENANT, SESSION, CLIENT, NOW, LATER],
  )
  const families = Array.from({ length: 5 }, () => randomUUID()).toSorted()
  for (const [at, family] of families.entries()) {
    await asItIs(
      `insert into refresh_families (tenant_id, id, session_id, client_id, scopes, audience,
         created_at, expires_at, revoked_at) values ($1, $2, $3, $4, '{openid}', '{app}', $5, $6, $7)`,
      [TENANT, family, SESSION, CLIENT, NOW, LATER, at === 0 ? NOW : null],
    )
    await asItIs(
      `insert into refresh_tokens (tenant_id, family_id, generation, token_sha256, issued_at)
       values ($1, $2, 0, $3, $4)`,
      [TENANT, family, sha256(family), NOW],
    )
  }
  const rotate = (generation: number, attempt: number) =>
    rotateRefreshTokens(
      families.map((familyId) => ({
        familyId,
        generation,
        successorSha256: sha256(`${generation + 1} ${attempt} ${familyId}`),
        successorAnswer: Buffer.from(`answer ${attempt}`),
        now: NOW,
      })),
    )
  const tries = await Promise.all([0, 1, 2, 3].map((attempt) => rotate(0, attempt)))
  const second = await rotate(1, 9)
  t.deepEqual(second, [false, true, true, true, true])
  t.deepEqual(await rotate(1, 8), [false, false, false, false, false])
  for (const [at, family] of families.entries()) {
    const winners = tries.flatMap((won, attempt) => (won[at] ? [attempt] : []))
    if (at === 0) {
      t.deepEqual(winners, [], 'its family was revoked')
      continue
    }
    t.is(winners.length, 1)
    const [original, first, last] = await findRefreshTokens(fresh.database, [
      sha256(family),
      sha256(`1 ${winners[0]} ${family}`),
      sha256(`2 9 ${family}`),
    ])
    t.is(original?.successorAnswer, null, 'wiped as the next was turned')
    t.true(original?.successorUsed)
    t.is(Buffer.from(first!.successorAnswer!).toString(), 'answer 9')
    t.is(last?.generation, 2)
    t.is(last?.rotatedAt, null)
  }
})
