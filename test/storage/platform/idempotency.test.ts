import { createHash } from 'node:crypto'
import test from 'ava'
import { Client } from 'pg'
import type { IdempotencyClaim } from '../../../actors/domain/idempotency.js'
import { idempotently, sweepIdempotencyKeys } from '../../../storage/platform/idempotency.js'
import { type FreshDatabase, freshDatabase } from '../../support/storage/database.js'

const A = '018f0000-0000-7000-8000-00000000000a'
const B = '018f0000-0000-7000-8000-00000000000b'

type Created = { tag: 'created'; id: number; at: Date; bytes: Uint8Array; secret?: string }
type Refused = { tag: 'refused' }

const claim = (key: string, body = 'body'): IdempotencyClaim => ({
  scope: 'caller POST /things',
  key,
  fingerprint: createHash('sha256').update(body).digest(),
})

async function freshThings(t: Parameters<typeof freshDatabase>[0]): Promise<FreshDatabase> {
  const fresh = await freshDatabase(t)
  await fresh.database.single({
    name: 'things',
    text: 'create table things (id integer generated always as identity, tenant_id uuid)',
  })
  return fresh
}

/** Creates an object. The outcome contains a secret that must not be stored. */
function create(
  fresh: FreshDatabase,
  tenant: string,
  key: IdempotencyClaim | null,
  refuse = false,
) {
  return fresh.database.tenant(tenant, (tx) =>
    idempotently<Created | Refused, Created>(
      tx,
      key,
      async () => {
        if (refuse) return { tag: 'refused' }
        const { rows } = await tx.query<{ id: number }>({
          name: 'things.add',
          text: 'insert into things (tenant_id) values ($1) returning id',
          values: [tenant],
        })
        const at = new Date(Date.UTC(2030, 0, 1))
        return { tag: 'created', id: rows[0]!.id, at, bytes: new Uint8Array([1, 2]), secret: 's3' }
      },
      (outcome) => {
        if (outcome.tag === 'refused') return undefined
        const { secret: _, ...kept } = outcome
        return kept
      },
    ),
  )
}

const countThings = async ({ database }: FreshDatabase) =>
  (await database.single<{ n: number }>({ name: 'n', text: 'select count(*) as n from things' }))
    .rows[0]!.n

test('the second request with a key gets the first answer, without its secret', async (t) => {
  const fresh = await freshThings(t)
  const first = await create(fresh, A, claim('k'))
  t.like(first, { tag: 'created', id: 1, secret: 's3' })
  const second = await create(fresh, A, claim('k'))
  t.like(second, { tag: 'created', id: 1, replayed: true, at: new Date(Date.UTC(2030, 0, 1)) })
  t.false('secret' in second)
  t.deepEqual([...(second as Created).bytes], [1, 2])
  t.is(await countThings(fresh), 1)
})

test('of 50 concurrent requests with one key one creates, and all get its answer', async (t) => {
  const fresh = await freshThings(t)
  const answers = await Promise.all(Array.from({ length: 50 }, () => create(fresh, A, claim('k'))))
  t.is(await countThings(fresh), 1)
  t.is(answers.filter((answer) => !('replayed' in answer)).length, 1)
  t.true(answers.every((answer) => answer.tag === 'created' && answer.id === 1))
})

test('the same key with another body is a mismatch and creates nothing', async (t) => {
  const fresh = await freshThings(t)
  await create(fresh, A, claim('k'))
  t.deepEqual(await create(fresh, A, claim('k', 'other')), { tag: 'idempotency_mismatch' })
  t.is(await countThings(fresh), 1)
})

test('the same key of another tenant or of another scope is another key', async (t) => {
  const fresh = await freshThings(t)
  await create(fresh, A, claim('k'))
  t.false('replayed' in (await create(fresh, B, claim('k'))))
  t.false('replayed' in (await create(fresh, A, { ...claim('k'), scope: 'caller POST /others' })))
  t.is(await countThings(fresh), 3)
})

test('a refusal is not kept: the corrected request may use its key', async (t) => {
  const fresh = await freshThings(t)
  t.deepEqual(await create(fresh, A, claim('k'), true), { tag: 'refused' })
  t.like(await create(fresh, A, claim('k', 'corrected')), { tag: 'created', id: 1 })
})

test('a crash between effect and answer leaves neither', async (t) => {
  const fresh = await freshThings(t)
  const crashed = fresh.database.tenant(A, (tx) =>
    idempotently<Created, Created>(
      tx,
      claim('k'),
      async () => {
        await tx.query({ name: 'things.crash', text: 'insert into things default values' })
        const { rows } = await tx.query<{ pid: number }>({
          name: 'pid',
          text: 'select pg_backend_pid() as pid',
        })
        const killer = new Client({ connectionString: fresh.superuserUrl })
        await killer.connect()
        await killer.query('select pg_terminate_backend($1)', [rows[0]!.pid])
        await killer.end()
        return { tag: 'created', id: 0, at: new Date(), bytes: new Uint8Array() }
      },
      (outcome) => outcome,
    ),
  )
  await t.throwsAsync(crashed)
  t.is(await countThings(fresh), 0)
  t.false('replayed' in (await create(fresh, A, claim('k'))))
})

test('a duplicate that waits too long for the first request is refused and can be repeated', async (t) => {
  const fresh = await freshThings(t)
  let finish: () => void = () => undefined
  let begun: () => void = () => undefined
  const running = new Promise<void>((resolve) => (begun = resolve))
  const first = fresh.database.tenant(A, (tx) =>
    idempotently<Refused, Refused>(
      tx,
      claim('k'),
      () =>
        new Promise((resolve) => {
          begun()
          finish = () => resolve({ tag: 'refused' })
        }),
      (outcome) => outcome,
    ),
  )
  await running
  t.deepEqual(await create(fresh, A, claim('k')), { tag: 'idempotency_in_progress' })
  finish()
  await first
  t.like(await create(fresh, A, claim('k')), { tag: 'refused', replayed: true })
})

test('after 24 hours a key is free, and the sweep removes it', async (t) => {
  const fresh = await freshThings(t)
  await create(fresh, A, claim('k'))
  await create(fresh, A, claim('other'))
  const age = (key: string) =>
    fresh.database.tenant(A, (tx) =>
      tx.query({
        name: 'age',
        text: `update idempotency_keys set expires_at = expires_at - interval '24 hours' where key_sha256 = $1`,
        values: [createHash('sha256').update(`caller POST /things\n${key}`).digest()],
      }),
    )
  t.is((await age('k')).rowCount, 1)
  t.false('replayed' in (await create(fresh, A, claim('k', 'another body'))))
  await age('k')
  t.is(await fresh.database.system((tx) => sweepIdempotencyKeys(tx, 100)), 1)
  t.true('replayed' in (await create(fresh, A, claim('other'))))
})

test('without a key the effect simply runs each time', async (t) => {
  const fresh = await freshThings(t)
  await create(fresh, A, null)
  await create(fresh, A, null)
  t.is(await countThings(fresh), 2)
})
