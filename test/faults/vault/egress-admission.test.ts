/** Own service: it loses answers of its database. */
/** Admission with lost commit responses: each call end is stored once. */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { APPENDING } from '../../../storage/platform/outbox.js'
import { apiOf } from '../../support/api.js'
import { relayTo } from '../../support/storage/database-relay.js'
import {
  bodyCall,
  closedCalls,
  egressHouse,
  ownEgressHouse,
  settingOf,
} from '../../support/vault/egress.js'
import { sql } from '../../support/storage/sql.js'
import { ownService } from '../../support/service/own-service.js'
import { until } from '../../support/service/watch.js'

test('a call end with a lost commit response is stored once, and calls continue', async (t) => {
  const first = await ownService()
  t.teardown(() => first.end())
  const relay = await relayTo(t, first.db.url)
  const resources = await ownEgressHouse({
    beside: first,
    environment: { DATABASE_URL: relay.url },
  })
  t.teardown(() => resources.end())
  const setting = await settingOf(
    { ...resources, running: first, api: apiOf(first) },
    {},
    { max_bytes: 4_000_000 },
  )
  const call = async () => {
    const { statusCode, body } = await resources.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${resources.upstream.origin}/echo`),
      body: 'hello',
    })
    await body.dump()
    return statusCode
  }
  const used = async () => {
    const [row] = await sql<{ used: number }>(
      first.db.database,
      // What a block holds is not used.
      `select (bytes_used - coalesce((select sum(bytes_held) from egress_blocks where authority_id = g.id), 0))::integer as used
       from vault_grants g where tenant_id = $1 and id = $2`,
      [setting.tenantId, setting.grantId],
    )
    return row!.used
  }
  t.is(await call(), 200)
  await closedCalls(resources, setting.tenantId, 1)
  const each = await used()
  t.true(each > 0 && each < 1_000, String(each))
  relay.loseAnswerTo({ name: 'outbox.append', text: APPENDING })
  t.is(await call(), 200)
  await closedCalls(resources, setting.tenantId, 2)
  // Longer than the retry delay.
  await sleep(2_000)
  t.is(await call(), 200)
  t.is((await closedCalls(resources, setting.tenantId, 3)).length, 3)
  await sleep(200)
  t.is((await closedCalls(resources, setting.tenantId, 3)).length, 3)
  t.is(await used(), each * 3)
})

test('an invalid call end does not block others', async (t) => {
  const resources = await egressHouse()
  t.teardown(() => resources.end())
  const setting = await settingOf(resources, {}, { max_bytes: 4_000_000 })
  const call = async (path: string) => {
    const { statusCode, body } = await resources.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${resources.upstream.origin}${path}`),
      body: 'hello',
    })
    await body.dump()
    return statusCode
  }
  const odd = call('/pause/1500')
  await until('the call has taken its bytes', 30_000, async () =>
    resources.upstream.requests.some(({ url }) => url === '/pause/1500'),
  )
  // The bytes cannot be returned, because the stored usage is smaller.
  await sql(
    resources.running.db.database,
    'update vault_grants set bytes_used = 0 where tenant_id = $1 and id = $2 returning id',
    [setting.tenantId, setting.grantId],
  )
  t.is(await odd, 200)
  t.is(await call('/echo'), 200)
  const [closed] = await closedCalls(resources, setting.tenantId, 1)
  t.is(closed!['outcome'], 'completed')
  t.is(await call('/echo'), 200)
  t.is((await closedCalls(resources, setting.tenantId, 2)).length, 2)
})
