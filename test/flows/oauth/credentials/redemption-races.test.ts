/** A pre-authorized code that two processes redeem at the same moment. One process redeems one after another. */
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { sharedPair } from '../../../support/service.js'
import { until } from '../../../support/service/watch.js'
import { issuingTenant, offer, redeem } from '../../../support/oauth/wallet.js'
import { sql } from '../../../support/storage/sql.js'

const pair = await sharedPair('clients')
const apis = pair.map((each) => apiOf(each))
const [api] = apis
const { database } = pair[0].db
test.after.always(async () => {
  await Promise.all(apis.map((each) => each.close()))
  await Promise.all(pair.map((each) => each.end()))
})

/** Transactions that wait for an offer. */
async function waiting(): Promise<number> {
  const [row] = await sql<{ count: number }>(database)`
    select count(*)::int as count from pg_locks
    where locktype = 'tuple' and relation = 'credential_offers'::regclass`
  return row!.count
}

test('of two processes that read an unused code, one redeems it', async (t) => {
  const tenant = await issuingTenant(api!)
  const { id, code } = await offer(api!, tenant)
  // Both have read the offer before either may change it.
  const { asked } = await database.tenant(tenant.tenantId, async (tx) => {
    await tx.query({
      name: 'test.hold_offer',
      text: 'select from credential_offers where tenant_id = $1 and id = $2 for update',
      values: [tenant.tenantId, id],
    })
    const both = apis.map((each) => redeem(each, code))
    await until('both wait', async () => (await waiting()) >= both.length)
    return { asked: both }
  })
  const answers = await Promise.all(asked)
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400])
  t.is(answers.find(({ status }) => status === 400)!.body['error'], 'invalid_grant')
})
