/** SIGTERM during a request: the request is finished, unless the deadline ends first. */
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { shown, svc } from '../../flows/vault/command.js'
import { freshDatabase } from '../../support/storage/database.js'
import { callerOf, complete, demand, start } from '../../support/agents/journey.js'
import { freePort } from '../../support/service.js'
import { until } from '../../support/service/watch.js'

const DEADLINE_SECS = 60

/** The command on its own database, and a request that hangs until the test releases it. */
async function hanging(t: ExecutionContext, deadlineSecs: number) {
  const db = await freshDatabase(t)
  const service = svc(t, {
    environment: {
      DATABASE_URL: db.url,
      SVC_SERVER__PORT: String(await freePort()),
      SVC_SERVER__SHUTDOWN_DEADLINE_SECS: String(deadlineSecs),
      // Only the test ends the request that hangs.
      SVC_SERVER__REQUEST_TIMEOUT_SECS: '120',
      SVC_DATABASE__STATEMENT_TIMEOUT_SECS: '120',
      SVC_CHALLENGE__POW_DIFFICULTY_BITS: '8',
      SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
      SVC_AUTH__ARGON2_MEMORY_KIB: '64',
      SVC_AUTH__ARGON2_ITERATIONS: '1',
    },
  })
  await service.ready()
  const http = callerOf(shown(service.output(), 'base URL'))
  const begun = await start(http)
  const superuser = new Client({ connectionString: db.superuserUrl })
  await superuser.connect()
  t.teardown(() => superuser.end())
  await superuser.query('begin')
  await superuser.query('lock table pow_challenges in access exclusive mode')
  const answer = complete(http, begun).catch((error: unknown) => error as Error)
  await until('the request hangs in the database', async () => {
    // The retention sweep may wait at the same time.
    const { rowCount } = await superuser.query(
      `select from pg_locks join pg_stat_activity using (pid)
        where not granted and relation = 'pow_challenges'::regclass and query !~ '^\\s*delete'
          and datname = current_database()`,
    )
    return rowCount === 1
  })
  const refusesConnections = async () => {
    const response = await fetch(`${shown(service.output(), 'base URL')}/health/live`, {
      headers: { connection: 'close' },
    }).catch(() => undefined)
    return response === undefined
  }
  return { service, superuser, answer, refusesConnections }
}

test('a request in flight is answered after SIGTERM, and the end is clean', async (t) => {
  const { service, superuser, answer, refusesConnections } = await hanging(t, DEADLINE_SECS)
  service.child.kill('SIGTERM')
  await until('new connections are refused', refusesConnections)
  await sleep(200)
  t.is(service.child.exitCode, null, 'it waits for the request')
  await superuser.query('rollback')
  const answered = await answer
  if (answered instanceof Error) throw answered
  demand(answered, 201)
  t.is(await service.ended(), 0)
})

test('a request that outlasts the deadline is cut off, and leaves nothing half-made', async (t) => {
  const { service, superuser, answer } = await hanging(t, 1)
  service.child.kill('SIGTERM')
  t.is(await service.ended(), 1, 'the end was not clean, and says so')
  const answered = await answer
  t.true(answered instanceof Error || answered.status >= 500)
  await superuser.query('rollback')
  const { rows } = await superuser.query<{ agents: number; open: number }>(
    `select (select count(*) from agents)::int as agents,
            (select count(*) from pow_challenges where status = 'issued')::int as open`,
  )
  t.deepEqual(rows, [{ agents: 0, open: 1 }])
})
