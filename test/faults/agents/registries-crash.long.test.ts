/** Own service: it kills a process of its deployment. */
/**
 * The chain monitor is killed repeatedly while an agent's listing changes. Each change is one event, in order. 60 changes
 * and 4 kills. With TEST_LONG 600 and 30.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { svcBeside } from '../../flows/vault/command.js'
import { apiOf } from '../../support/api.js'
import { chainAt } from '../../support/commerce/chain.js'
import { startMarket } from '../../support/commerce/market.js'
import {
  onChainRegistration,
  registerOnChain,
  registriesOf,
  registryEnvironment,
} from '../../support/commerce/registries.js'
import { IS_LONG } from '../../support/runs.js'
import { ownService } from '../../support/service/own-service.js'
import { numberAll } from '../../support/storage/numbered.js'
import { sql } from '../../support/storage/sql.js'

const CHANGES = IS_LONG ? 600 : 60
const KILLS = IS_LONG ? 30 : 4
const EVERY = Math.floor(CHANGES / (KILLS + 1))
const CONFIRMATIONS = 2
const READ_EVERY_MS = 100

test(`${CHANGES} changes are one event each, in order, in ${KILLS} kills`, async (t) => {
  t.timeout(IS_LONG ? 1_800_000 : 240_000)
  const market = await startMarket()
  const registries = registriesOf(await chainAt(market.places))
  const monitoring = registryEnvironment(market.places, CONFIRMATIONS, READ_EVERY_MS)
  // Holds the database and the keys, and registers the agent. The process that reads the chain is killed.
  const holder = await ownService({
    transport: 'plain_http',
    environment: { ...monitoring, SVC_DEPLOYMENT__EMBEDDED_CHAIN_MONITOR: 'false' },
  })
  const api = apiOf(holder)
  t.teardown(async () => {
    await api.end()
    await market.end()
  })
  const { tenantId } = await api.workspace()
  const owner = registries.owner()
  const token = await registries.agent(owner)
  const target = { issuer: holder.issuer, tenantId }
  const { body } = await onChainRegistration(target, { owner, token })
  t.is((await registerOnChain(holder.baseUrl, body)).status, 200)

  const start = () => svcBeside(t, holder, monitoring)
  let monitor = await start()
  let restarting: Promise<void> = Promise.resolve()
  let kills = 0
  /** While it reads what the last changes logged. The changes go on before it is back. */
  async function kill(): Promise<void> {
    await restarting
    await sleep(Math.random() * 3 * READ_EVERY_MS)
    kills += 1
    monitor.child.kill('SIGKILL')
    restarting = monitor.ended().then(async () => {
      monitor = await start()
    })
  }
  const sent: string[] = []
  while (sent.length < CHANGES) {
    const uri = `change ${sent.length}`
    sent.push(uri)
    await registries.identity('setAgentURI', BigInt(token), uri)
    if (kills < KILLS && sent.length >= (kills + 1) * EVERY) await kill()
  }
  await restarting
  await registries.mine(CONFIRMATIONS)

  const told = async () => {
    await numberAll(holder.db.database)
    const rows = await sql<{ uri: string }>(holder)`
      select data ->> 'uri' as uri from all_events
      where tenant_id = ${tenantId} and type = 'chain.metadata.changed'
      order by (data ->> 'block_number')::int, (data ->> 'log_index')::int`
    return rows.map(({ uri }) => uri)
  }
  while (!(await told()).includes(sent.at(-1)!)) await sleep(READ_EVERY_MS)
  // The next readings would send what is sent twice.
  await registries.mine(1)
  await sleep(5 * READ_EVERY_MS)
  t.is(kills, KILLS)
  t.deepEqual(await told(), sent)
})
