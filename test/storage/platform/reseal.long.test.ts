/** Rotation of data keys while their values are used. Moved values cannot be opened. */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { openKeyTools } from '../../../runtime/cli/key-tools.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { countRotations } from '../../../storage/platform/sealing/data-key-rotations.js'
import { resealAll } from '../../../storage/platform/sealing/reseal.js'
import type { SealContext } from '../../../storage/platform/sealing/sealer.js'
import { SealBroken } from '../../../storage/platform/sealing/seal.js'
import { partsOf, stamped } from '../../../storage/platform/sealing/stamps.js'
import { SEALED_COLUMNS } from '../../../storage/platform/sealing/sealed-columns.js'
import { credentialSecretContext } from '../../../storage/vault/vault-credentials.js'
import { svcBeside } from '../../flows/vault/command.js'
import { apiOf } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { testService } from '../../support/service.js'

const CREDENTIALS = '/api/v1/vault/credentials'
const MANY = 4_000
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()

function insertCredentials(
  database: Parameters<typeof sql>[0],
  tenantId: string,
  ids: readonly string[],
  secrets: readonly Uint8Array[],
) {
  return sql(database)`
    insert into vault_credentials (tenant_id, id, owner_type, owner_id, provider, credential_type,
    label, auth_scheme, allowed_hosts, non_exportable, metadata, secret, secret_stamp, created_at, updated_at)
    select ${tenantId}, n.id, 'service', 'x', 'p', 'api_key', 'l', 'bearer', '{}', false, '{}',
    n.secret, n.stamp, now(), now()
    from unnest(${ids}::uuid[], ${secrets.map((one) => partsOf(one).sealed)}::bytea[],
    ${secrets.map((one) => partsOf(one).stamp)}::bytea[]) as n (id, secret, stamp)`
}

test('a rotation while two processes read and write, one of them killed, loses nothing', async (t) => {
  t.timeout(240_000)
  const running = await testService({
    environment: { SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
  })
  const api = apiOf(running)
  const { db, kms } = running
  const environment = { DATABASE_URL: db.url, ...kms.environment }
  const resources = await openKeyTools({ environment, cwd: '/' })
  t.teardown(async () => {
    await resources.close()
    await api.close()
    await running.end()
  })
  const { token, tenantId } = await api.workspace()
  const create = async (secret: string) => {
    const { body } = await api.post(CREDENTIALS, token, {
      provider: 'p',
      credential_type: 'api_key',
      label: 'l',
      auth_scheme: 'bearer',
      allowed_hosts: [],
      non_exportable: false,
      secret,
    })
    return String(body['id'])
  }
  const used = await Promise.all(Array.from({ length: 8 }, (_, index) => create(`used-${index}`)))
  // Many more unchanged values, each different.
  const rest = Array.from({ length: MANY }, () => resources.random.uuid())
  const sealed = await Promise.all(
    rest.map((id) => resources.sealer.seal(tenantId, credentialSecretContext(id), Buffer.from(id))),
  )
  await insertCredentials(db.database, tenantId, rest, sealed)
  const left = async () => {
    const [row] = await sql<{ count: number }>(db.database)`
      select count(*)::int as count from vault_credentials
      where tenant_id = ${tenantId} and get_byte(secret, 4) < 2`
    return row!.count
  }
  const victim = await svcBeside(t, running, {})

  // At the same time secrets are read and replaced over HTTP. Each read must return the last value.
  const stop = new AbortController()
  let reads = 0
  const busy = used.map(async (id, index) => {
    let expected = `used-${index}`
    for (let round = 0; !stop.signal.aborted; round += 1) {
      const read = await api.get(`${CREDENTIALS}/${id}/secret`, token)
      t.is(read.body['secret'], expected, JSON.stringify(read.body))
      reads += 1
      if (round % 3 !== index % 3) continue
      expected = `used-${index}-${round}`
      const changed = await api.post(`${CREDENTIALS}/${id}/rotate`, token, { secret: expected })
      t.is(changed.status, 200)
    }
  })
  t.is(await resources.sealer.rotate(tenantId), 2)
  for (let turn = 0; turn < 40_000 && (await left()) > MANY - 200; turn += 1) await sleep(2)
  victim.child.kill('SIGKILL')
  await victim.ended()
  const midway = await left()
  t.true(midway > 0 && midway < MANY, `killed with ${midway} left`)
  const held = await resealAll({ ...resources, log: silentLogger })
  t.is(held, 0, 'the dead one holds its lease')

  const later = () =>
    sql(db.database)`
      update data_key_rotations set working_until = case when worker is not null then now() end,
      started_at = started_at - interval '3 minutes' where finished_at is null`
  await later()
  const both = await Promise.all([
    resealAll({ ...resources, log: silentLogger }),
    resealAll({ ...resources, log: silentLogger }),
  ])
  t.is(Math.min(...both), 0, 'one of the two does it')
  stop.abort()
  await Promise.all(busy)
  t.true(reads > 20)
  // Values that were sealed with the older key in the meantime are handled by a later rotation.
  t.is(await resources.sealer.rotate(tenantId), 3)
  await later()
  await resealAll({ ...resources, log: silentLogger })
  const rows = await sql<{ id: string; secret: Buffer; version: number }>(
    db.database,
    `select id, ${stamped('secret')} as secret, get_byte(secret, 4) as version
     from vault_credentials where tenant_id = $1 and provider = 'p'`,
    [tenantId],
  )
  t.is(rows.length, MANY + used.length)
  t.deepEqual([...new Set(rows.map(({ version }) => version))], [3])
  for (const { id, secret } of rows) {
    if (used.includes(id)) continue
    const words = text(await resources.sealer.open(tenantId, credentialSecretContext(id), secret))
    if (words !== id) t.fail(`${id} holds ${words}`)
  }
  t.is((await resources.database.system(countRotations)).open, 0)

  // Bound to tenant, row and column.
  const [one, two] = rows
  const opened = (tenant: string, context: SealContext) =>
    resources.sealer.open(tenant, context, one!.secret)
  await t.notThrowsAsync(opened(tenantId, credentialSecretContext(one!.id)))
  const other = await api.workspace()
  await resources.sealer.seal(other.tenantId, 'c', Buffer.from('x'))
  for (const [tenant, context] of [
    [other.tenantId, credentialSecretContext(one!.id)],
    [tenantId, credentialSecretContext(two!.id)],
    ...SEALED_COLUMNS.slice(1).map((column) => [tenantId, column.context(one!.id)]),
  ] as [string, SealContext][]) {
    const words = JSON.stringify(context)
    await t.throwsAsync(opened(tenant, context), { instanceOf: SealBroken }, words)
  }
})

test('values that cannot be opened are kept and logged, and the others are sealed again', async (t) => {
  const running = await testService()
  const resources = await openKeyTools({
    environment: { DATABASE_URL: running.db.url, ...running.kms.environment },
    cwd: '/',
  })
  const api = apiOf(running)
  t.teardown(async () => {
    await api.close()
    await resources.close()
    await running.end()
  })
  const { tenantId } = await api.workspace()
  const [good, bad] = [resources.random.uuid(), resources.random.uuid()]
  const sealed = await resources.sealer.seal(
    tenantId,
    credentialSecretContext(good),
    Buffer.from('x'),
  )
  await insertCredentials(running.db.database, tenantId, [good, bad], [sealed, sealed])
  await resources.sealer.rotate(tenantId)
  t.true((await resealAll({ ...resources, log: silentLogger })) >= 1)
  const rows = await sql<{ id: string; version: number }>(running)`
    select id, get_byte(secret, 4) as version from vault_credentials
    where id = any(${[good, bad]}::uuid[])`
  t.deepEqual(Object.fromEntries(rows.map(({ id, version }) => [id, version])), {
    [good]: 2,
    [bad]: 1,
  })
  t.is((await resources.database.system(countRotations)).unopened, 1)
})
