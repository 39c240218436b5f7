/** Own service: it stops, and starts where a port is taken. */
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { createServer } from 'node:net'
import workers, { Worker, type WorkerOptions } from 'node:worker_threads'
import test from 'ava'
import { StartRefused } from '../../../runtime/process/startup.js'
import { notThrough } from '../../support/fleet/through.js'
import { freePort } from '../../support/service.js'
import { ownService } from '../../support/service/own-service.js'
import { until } from '../../support/service/watch.js'
import { bodyCall, ownEgressHouse, settingOf } from '../../support/vault/egress.js'
import { addressedHouse } from '../../support/vault/egress-address.js'

notThrough('it stops a process')
/** Threads of the services, to end one like a crash. */
const threads: { name: string; worker: Worker }[] = []
class WatchedWorker extends Worker {
  constructor(entry: string | URL, options: WorkerOptions = {}) {
    super(entry, options)
    threads.push({ name: options.name ?? '', worker: this })
  }
}
workers.Worker = WatchedWorker
syncBuiltinESMExports()

test.serial('a stop finishes the calls of the egress address, and closes its port', async (t) => {
  const lines: string[] = []
  const house = await addressedHouse(
    { transport: 'plain_http', onLog: (line) => lines.push(line) },
    ownEgressHouse,
  )
  const { egressUrl, running, upstream } = house
  const [before] = lines.join('').split('"msg":"ready"')
  t.regex(before!, /"listener":"egress","transport":"http1","parser":"node"/)
  const setting = await settingOf(house)
  const call = await house.send(`${egressUrl}/v1/proxy/body`, {
    token: setting.direct,
    headers: bodyCall(setting, `${upstream.origin}/pause/held`, { 'x-svc-method': 'GET' }),
  })
  t.is(call.statusCode, 200)
  const stopping = running.service.stop()
  const isClosed = async () => {
    const probe = await fetch(`${egressUrl}/health/live`).catch(() => null)
    await probe?.body?.cancel()
    return probe === null
  }
  await until('the port is closed', isClosed)
  upstream.releaseEvents()
  t.true((await call.body.text()).startsWith('before '))
  t.true(await stopping, 'the stop was clean')
  await house.end()
})

test.serial('a new egress thread listens again', async (t) => {
  const house = await addressedHouse({ transport: 'plain_http' }, ownEgressHouse)
  t.teardown(() => house.end())
  const setting = await settingOf(house)
  const call = () =>
    house.atEgress.post('/v1/proxy', setting.delegated, {
      credential_id: setting.credentialId,
      method: 'GET',
      url: `${house.upstream.origin}/echo`,
    })
  t.is((await call()).status, 200)
  await threads.findLast(({ name }) => name === 'egress')!.worker.terminate()
  t.is((await house.api.get('/health/live')).status, 200)
  const isBack = async () => (await call().catch(() => null))?.status === 200
  await until('the address answers', isBack)
})

test.serial('a start is refused where the port of the egress address is taken', async (t) => {
  const other = createServer()
  const port = await freePort()
  other.listen(port, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const error = await t.throwsAsync(
    ownService({ environment: { SVC_SERVER__EGRESS_PORT: String(port) } }),
    { instanceOf: StartRefused },
  )
  t.is(error.message, `cannot listen on 127.0.0.1 port ${port}: it is taken by another program`)
})
