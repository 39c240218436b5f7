import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { Fleet } from '../support/fleet/fleet.js'
import { type FleetPool, poolOf } from '../support/fleet/pool.js'
import { takeFleet, type WantedFleet } from '../support/fleet/take.js'
import { until } from '../support/service/watch.js'

/** A pool of fleets without processes, each with a number as its address. */
async function open(
  t: ExecutionContext,
  begin?: (number: number) => void,
  unusedMs?: number,
): Promise<{
  pool: FleetPool
  take(settings: Record<string, string>, isShared?: boolean): ReturnType<typeof takeFleet>
  /** The numbers of those that run. */
  running: Set<number>
  unclean: Set<number>
}> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-pool-'))
  const running = new Set<number>()
  const unclean = new Set<number>()
  let last = 0
  const pool = await poolOf(
    folder,
    async () => {
      const number = (last += 1)
      begin?.(number)
      running.add(number)
      return {
        baseUrl: String(number),
        ca: 'a CA',
        db: { url: 'a database', superuserUrl: 'as superuser' },
        kms: { environment: {} },
        coordination: { environment: {} },
        processes: [{ logPath: 'a log' }],
        async end() {
          running.delete(number)
          if (unclean.has(number)) throw new Error(`process of ${number} ended with 1`)
        },
      } as unknown as Fleet
    },
    true,
    unusedMs,
  )
  t.teardown(async () => {
    await pool.end()
    rmSync(folder, { recursive: true })
  })
  const take = (environment: WantedFleet['environment'], isShared = false) =>
    takeFleet(pool.socketPath, { environment, isShared })
  return { pool, take, running, unclean }
}

test('a fleet with settings serves one test', async (t) => {
  const { pool, take, running } = await open(t)
  const first = await take({ a: '1' })
  await first.giveBack()
  await until('the end of the first', () => running.size === 0)
  const second = await take({ a: '1' })
  t.not(second.fleet.baseUrl, first.fleet.baseUrl)
  t.is(pool.started(), 2)
})

test('tests that share have one fleet for each profile', async (t) => {
  const { pool, take, running } = await open(t)
  const [one, other] = await Promise.all([take({ a: '1' }, true), take({ a: '1' }, true)])
  t.is(one.fleet.baseUrl, other.fleet.baseUrl)
  const second = await take({ a: '2' }, true)
  t.not(second.fleet.baseUrl, one.fleet.baseUrl)
  await Promise.all([one, other, second].map(({ giveBack }) => giveBack()))
  const later = await take({ a: '1' }, true)
  t.is(later.fleet.baseUrl, one.fleet.baseUrl)
  t.is(running.size, 2)
  t.is(pool.started(), 2)
})

test('a fleet that no test shares any more ends, and a later test gets another', async (t) => {
  const { take, running } = await open(t, undefined, 1)
  const [one, other] = [await take({}, true), await take({}, true)]
  await one.giveBack()
  t.is((await take({}, true)).fleet.baseUrl, other.fleet.baseUrl)
  const [second, third] = [await take({ a: '1' }, true), await take({ a: '1' }, true)]
  await Promise.all([second.giveBack(), third.giveBack()])
  await until('the end of the second', () => running.size === 1)
  t.is((await take({ a: '1' }, true)).fleet.baseUrl, '3')
})

test('a repeated file finds nothing of its run before', async (t) => {
  const { pool, take, running } = await open(t)
  const before = await take({}, true)
  await before.giveBack()
  pool.renew()
  const after = await take({}, true)
  t.not(after.fleet.baseUrl, before.fleet.baseUrl)
  await until('the end of the first', () => !running.has(Number(before.fleet.baseUrl)))
})

test('a process that does not end cleanly fails the run', async (t) => {
  const { pool, take, unclean } = await open(t)
  const { fleet, giveBack } = await take({ a: '1' })
  unclean.add(Number(fleet.baseUrl))
  await giveBack()
  t.deepEqual(await pool.end(), ['Error: process of 1 ended with 1'])
})

test('a fleet that does not start fails its test alone', async (t) => {
  const { take } = await open(t, (number) => {
    if (number === 1) throw new Error('no database')
  })
  await t.throwsAsync(take({}, true), { message: 'Error: no database' })
  t.is((await take({}, true)).fleet.baseUrl, '2')
})

test('the end of a pool ends fleets that tests have, and their logs', async (t) => {
  const { pool, take, running } = await open(t)
  await take({ a: '1' })
  await take({}, true)
  t.deepEqual(await pool.end(), [])
  t.is(running.size, 0)
  t.deepEqual(
    readdirSync(join(pool.socketPath, '..')).filter((name) => name.startsWith('fleet-')),
    [],
  )
})
