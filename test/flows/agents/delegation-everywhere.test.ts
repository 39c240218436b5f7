/** A delegation that ends in one process has ended in all. The long form repeats it with every coordination backend. */
import type { ExecutionContext } from 'ava'
import test from 'ava'
import {
  ask,
  decide,
  fixtureOf,
  delegate,
  ownToken,
  poll,
  present,
} from '../../support/agents/delegation.js'
import { testWithProgram } from '../../support/service/programs.js'
import { startMemcached, startRedis } from '../../support/service/servers.js'
import { sharedTwo, twoServices } from '../../support/service/two-services.js'
import { IS_LONG } from '../../support/runs.js'

const ROUNDS = IS_LONG ? 5 : 2
const VAULT = '/api/v1/vault/credentials'

async function scene(
  t: ExecutionContext,
  { first, second, end }: Awaited<ReturnType<typeof twoServices>>,
) {
  t.timeout(120_000)
  t.teardown(end)
  const workspace = await first.workspace()
  const person = await present(first, fixtureOf(workspace))
  const own = await ownToken(first, workspace, person)
  const usable = async (token: string) => (await second.get(VAULT, token)).status === 200

  // Requested and approved here, polled there.
  const asked = await ask(first, workspace.token, { scope: 'openid vault:list' })
  t.is((await poll(second, workspace.token, asked)).body['error'], 'authorization_pending')
  await decide(person, asked)
  const both = await Promise.all(
    [first, second, first, second].map((api) => poll(api, workspace.token, asked)),
  )
  t.is(both.filter(({ status }) => status === 200).length, 1)

  for (let round = 0; round < ROUNDS; round += 1) {
    const delegated = await delegate(first, workspace.token, person)
    t.true(await usable(delegated.token))
    await first.post(`/api/v1/delegations/${delegated.delegationId}/revoke`, own).gives(200)
    // The next request, without delay.
    await second.get(VAULT, delegated.token).gives(401, 'token_revoked')
    const refreshed = await second.form('/oauth/token', {
      grant_type: 'refresh_token',
      client_id: workspace.agentId,
      refresh_token: delegated.refreshToken,
    })
    t.is(refreshed.body['error'], 'invalid_grant')
  }

  const { key, agentId } = await first.register(workspace.tenantId)
  const login = await first.login(key, { agent_id: agentId, tenant_id: workspace.tenantId })
  const borrowed = await delegate(first, String(login.body['access_token']), person)
  t.true(await usable(borrowed.token))
  t.is((await first.post(`/api/v1/agents/${agentId}/suspend`, workspace.token)).status, 200)
  t.false(await usable(borrowed.token))

  const last = await delegate(first, workspace.token, person)
  const users = await first.list(
    `/api/v1/tenant-users?email=${encodeURIComponent(person.human.email)}`,
    workspace.token,
  )
  const user = `/api/v1/tenant-users/${String(users.rows[0]!['id'])}`
  t.true(await usable(last.token))
  t.is((await first.post(`${user}/suspend`, workspace.token)).status, 200)
  t.false(await usable(last.token))
}

test('a delegation ends immediately in both of two processes: postgres', async (t) =>
  scene(t, await sharedTwo()))

if (IS_LONG) {
  testWithProgram(
    'redis-server',
    'a delegation ends immediately in both of two processes: redis',
    async (t, path) => {
      const redis = await startRedis(path)
      t.teardown(() => redis.stop())
      await scene(
        t,
        await twoServices({
          SVC_DEPLOYMENT__COORDINATION_BACKEND: 'redis',
          SVC_REDIS__URL: `redis://127.0.0.1:${redis.port}`,
        }),
      )
    },
  )

  testWithProgram(
    'memcached',
    'a delegation ends immediately in both of two processes: memcached',
    async (t, path) => {
      const memcached = await startMemcached(path)
      t.teardown(() => memcached.stop())
      await scene(
        t,
        await twoServices({
          SVC_DEPLOYMENT__COORDINATION_BACKEND: 'memcached',
          SVC_MEMCACHED__ADDRESS: `127.0.0.1:${memcached.port}`,
        }),
      )
    },
  )
}
