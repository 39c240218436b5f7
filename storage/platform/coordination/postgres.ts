/** Coordination in PostgreSQL: no further server, one round trip per command. */
import { randomBytes } from 'node:crypto'
import { together } from '../../../runtime/kernel/batched-asks.js'
import type { OpenDatabase } from '../database.js'
import type { Statement } from '../sql.js'
import {
  checkLifetime,
  type Coordination,
  CoordinationUnavailable,
  storedKey,
  taken,
  type Window,
} from './port.js'

const LOCK_TOKEN_BYTES = 16

type Asked = { readonly key: string; readonly cost: number; readonly window: Window }
type Counted = { allowed: boolean; used: number; resetSecs: number }
type SingleStatements = Pick<OpenDatabase, 'single'>

export function postgresCoordination(database: SingleStatements): Coordination {
  async function run<Row extends object>(statement: Statement) {
    try {
      return await database.single<Row>(statement)
    } catch (error) {
      throw new CoordinationUnavailable('postgres', error)
    }
  }

  // Under load concurrent calls share one statement.
  const takeTogether = together(async (asked: readonly Asked[]): Promise<readonly Counted[]> => {
    const { rows } = await run<Counted & { asked: string }>({
      name: 'coordination.take',
      text: `select asked, allowed, used, reset_secs as "resetSecs" from svc_take($1, $2, $3, $4)
             order by asked`,
      values: [
        asked.map(({ key }) => key),
        asked.map(({ cost }) => cost),
        asked.map(({ window }) => window.limit),
        asked.map(({ window }) => window.windowSecs),
      ],
    })
    return rows
  })

  /** Claims a key that is free or expired. The row lock decides between concurrent claims. */
  async function claim(key: string, value: Uint8Array, ttlSecs: number): Promise<boolean> {
    const { rowCount } = await run({
      name: 'coordination.claim',
      text: `insert into coordination_values as v (key, value, expires_at)
             values ($1, $2, clock_timestamp() + make_interval(secs => $3))
             on conflict (key) do update
               set value = excluded.value, expires_at = excluded.expires_at
               where v.expires_at <= clock_timestamp()`,
      values: [key, value, ttlSecs],
    })
    return rowCount === 1
  }

  return {
    async take(key, window, cost = 1) {
      checkLifetime(window.windowSecs)
      const { allowed, used, resetSecs } = await takeTogether({
        key: storedKey('take', key),
        cost,
        window,
      })
      return taken(allowed, used, window, resetSecs)
    },

    async once(key, ttlSecs) {
      checkLifetime(ttlSecs)
      return claim(storedKey('once', key), new Uint8Array(), ttlSecs)
    },

    async lock(key, ttlSecs) {
      checkLifetime(ttlSecs)
      const name = storedKey('lock', key)
      const token = randomBytes(LOCK_TOKEN_BYTES)
      if (!(await claim(name, token, ttlSecs))) return undefined
      return async () => {
        await run({
          name: 'coordination.release',
          text: 'delete from coordination_values where key = $1 and value = $2',
          values: [name, token],
        })
      }
    },

    async get(key) {
      const { rows } = await run<{ value: Uint8Array }>({
        name: 'coordination.get',
        text: `select value from coordination_values
               where key = $1 and expires_at > clock_timestamp()`,
        values: [storedKey('value', key)],
      })
      return rows[0]?.value
    },

    async put(key, value, ttlSecs) {
      checkLifetime(ttlSecs)
      await run({
        name: 'coordination.put',
        text: `insert into coordination_values (key, value, expires_at)
               values ($1, $2, clock_timestamp() + make_interval(secs => $3))
               on conflict (key) do update
                 set value = excluded.value, expires_at = excluded.expires_at`,
        values: [storedKey('value', key), value, ttlSecs],
      })
    },

    async forget(key) {
      await run({
        name: 'coordination.forget',
        text: 'delete from coordination_values where key = $1',
        values: [storedKey('value', key)],
      })
    },

    // The pools belong to the database.
    close: async () => undefined,
  }
}

/** Removes up to `limit` expired rows. @returns their number. */
export async function sweepCoordination(
  database: SingleStatements,
  limit: number,
): Promise<number> {
  const counters = await database.single({
    name: 'coordination.sweep_counters',
    text: `delete from coordination_counters where key in (
             select key from coordination_counters where ends_at <= statement_timestamp()
             limit $1 for update skip locked)`,
    values: [limit],
  })
  const values = await database.single({
    name: 'coordination.sweep_values',
    text: `delete from coordination_values where key in (
             select key from coordination_values where expires_at <= statement_timestamp()
             limit $1 for update skip locked)`,
    values: [limit],
  })
  return counters.rowCount + values.rowCount
}
