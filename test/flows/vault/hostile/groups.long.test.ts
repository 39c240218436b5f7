/** A tenant is served beside groups of free tenants that hold all they get. `bench/noisy/groups.ts` measures it. */
import test from 'ava'
import { notThrough } from '../../../support/fleet/through.js'
import { besideGroup } from '../../../support/vault/hostile-group.js'

for (const tenants of [8, 16, 64]) {
  test.serial(`a tenant beside a group of ${tenants} hostile tenants is served`, async (t) => {
    notThrough('each process counts for itself')
    t.timeout(600_000)
    await besideGroup(t, tenants)
  })
}
