/** A tenant is served beside a group of free tenants that hold all they get. `bench/noisy/groups.ts` measures it. */
import test from 'ava'
import { notThrough } from '../../../support/fleet/through.js'
import { besideGroup } from '../../../support/vault/hostile-group.js'

test('a tenant beside a group of 8 hostile tenants is served', async (t) => {
  notThrough('each process counts for itself')
  t.timeout(180_000)
  await besideGroup(t, 8)
})
