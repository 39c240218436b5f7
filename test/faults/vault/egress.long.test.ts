/** Failures around a relayed call: disconnects, paused readers, dead threads. */
import { once } from 'node:events'
import { createSecureServer, type Http2SecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { syncBuiltinESMExports } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import workers, { Worker, type WorkerOptions } from 'node:worker_threads'
import test from 'ava'
import { closeLostCalls } from '../../../actors/vault/egress/admission/lost-calls.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { UPSTREAM_CERT, UPSTREAM_KEY } from '../../actors/vault/egress/loopback-tls.js'
import {
  bodyCall,
  closedCalls,
  CREDENTIALS,
  type EgressHouse,
  ownEgressHouse,
  longAgo,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { TRANSPORTS } from '../../support/service.js'

const MIB = 2 ** 20
/** Threads of the service by name, newest last, to terminate one like a crash. */
const threads: { name: string; worker: Worker }[] = []
class WatchedWorker extends Worker {
  constructor(entry: string | URL, options: WorkerOptions = {}) {
    super(entry, options)
    threads.push({ name: options.name ?? '', worker: this })
  }
}
workers.Worker = WatchedWorker
syncBuiltinESMExports()

const houses = new Map<string, EgressHouse>()
for (const transport of TRANSPORTS) houses.set(transport, await ownEgressHouse({ transport }))
const resources = houses.get('plain_http')!
test.after.always(async () => {
  for (const each of houses.values()) await each.end()
})

for (const [transport, at] of houses) {
  test.serial(`a disconnect of the client ends the upstream call (${transport})`, async (t) => {
    const setting = await settingOf(at)
    const answer = await at.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${at.upstream.origin}/silent-after-chunk`),
    })
    answer.body.on('error', () => {})
    answer.body.destroy()
    const [closed] = await closedCalls(at, setting.tenantId, 1)
    t.is(closed!['outcome'], 'client_closed')
  })

  test.serial(`a disconnect before the response ends it too (${transport})`, async (t) => {
    const setting = await settingOf(at)
    const controller = new AbortController()
    const asked = at.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${at.upstream.origin}/silent`),
      signal: controller.signal,
    })
    asked.catch(() => {})
    const before = at.upstream.requests.length
    for (let tries = 0; at.upstream.requests.length === before && tries < 3_000; tries += 1) {
      await sleep(10)
    }
    controller.abort()
    t.true(
      await asked.then(
        () => false,
        () => true,
      ),
    )
    const [closed] = await closedCalls(at, setting.tenantId, 1)
    t.is(closed!['outcome'], 'client_closed')
  })

  test.serial(`a paused reader pauses the upstream (${transport})`, async (t) => {
    const setting = await settingOf(at)
    const before = at.upstream.pushed
    const answer = await at.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${at.upstream.origin}/bytes/${256 * MIB}`),
    })
    answer.body.on('error', () => {})
    let pushed = -1
    while (at.upstream.pushed - before !== pushed) {
      pushed = at.upstream.pushed - before
      await sleep(300)
    }
    t.log({ pushedMib: pushed / MIB })
    t.true(pushed < 48 * MIB)
    answer.body.destroy()
    await closedCalls(at, setting.tenantId, 1)
  })

  test.serial(`an upstream that breaks off aborts the response (${transport})`, async (t) => {
    const setting = await settingOf(at)
    for (const habit of ['reset-in-body', 'short-body']) {
      const answer = await at.send('/v1/proxy/body', {
        token: setting.direct,
        headers: bodyCall(setting, `${at.upstream.origin}/${habit}`),
      })
      t.is(answer.statusCode, 200)
      await t.throwsAsync(answer.body.text())
    }
    const closed = await closedCalls(at, setting.tenantId, 2)
    for (const each of closed) t.is(each['outcome'], 'upstream_error')
  })

  test.serial(`a body over the limit is a 413, announced or not (${transport})`, async (t) => {
    const setting = await settingOf(at)
    const chunk = Buffer.alloc(64 * 1024)
    async function* produce() {
      for (let sent = 0; sent < 33 * MIB; sent += chunk.length) yield chunk
    }
    for (const length of [String(33 * MIB), null]) {
      const answer = await at
        .send('/v1/proxy/body', {
          token: setting.direct,
          headers: {
            ...bodyCall(setting, `${at.upstream.origin}/hash`),
            ...(length === null ? {} : { 'content-length': length }),
          },
          body: produce() as never,
        })
        .catch((error: Error) => error)
      // After an early response the connection may be closed while the client sends.
      if (answer instanceof Error) t.pass(answer.message)
      else {
        t.is(answer.statusCode, 413)
        t.is(answer.headers['proxy-status'], 'svc-egress; error=http_request_denied')
        await answer.body.dump()
      }
    }
  })

  test.serial(`a stream may be idle for longer than a request (${transport})`, async (t) => {
    const setting = await settingOf(at)
    const answer = await at.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${at.upstream.origin}/pause/20000`),
    })
    t.is(await answer.body.text(), 'before after')
  })
}

test.serial(
  'when the thread is killed, its calls fail, others continue, and the budget counts',
  async (t) => {
    const setting = await settingOf(resources)
    const { operator, credentialId, agentId, direct } = setting
    await resources.api.post(`${CREDENTIALS}/${credentialId}/leases`, operator, {
      recipient_id: agentId,
      byte_budget: 10 * MIB,
    })
    const answer = await resources.send('/v1/proxy/body', {
      token: direct,
      headers: bodyCall(setting, `${resources.upstream.origin}/silent-after-chunk`),
    })
    const reading = answer.body.text()
    reading.catch(() => {})
    const waiting = resources.send('/v1/proxy/body', {
      token: direct,
      headers: bodyCall(setting, `${resources.upstream.origin}/silent`),
    })
    const before = resources.upstream.requests.length
    while (resources.upstream.requests.length === before) await sleep(10)
    const own = threads.find(({ name }) => name === 'egress')
    await own!.worker.terminate()
    await t.throwsAsync(reading)
    const failed = await waiting
    t.is(failed.statusCode, 503)
    t.is(failed.headers['proxy-status'], 'svc-egress; error=proxy_internal_error')
    await failed.body.dump()
    t.is((await resources.api.get('/health/live')).status, 200)
    // A new thread starts.
    let status = 0
    for (let tries = 0; status !== 200 && tries < 600; tries += 1) {
      const again = await resources.send('/v1/proxy/body', {
        token: direct,
        headers: bodyCall(setting, `${resources.upstream.origin}/echo`),
      })
      status = again.statusCode
      await again.body.dump()
      if (status !== 200) await sleep(100)
    }
    t.is(status, 200)
    const { rows } = await resources.api.list(`${CREDENTIALS}/${credentialId}/leases`, operator)
    const used = Number(rows[0]!['bytes_used'])
    t.true(used > 0 && used <= 10 * MIB, String(used))
    // The two running calls are closed as lost later. The end of the last one is recorded before.
    await closedCalls(resources, setting.tenantId, 1)
    await longAgo(resources, setting)
    await closeLostCalls({ database: resources.running.db.database, clock: systemClock })
    const [whole, ...lost] = await closedCalls(resources, setting.tenantId, 3)
    t.is(whole!['outcome'], 'completed')
    t.is(lost.length, 2)
    for (const each of lost) {
      t.is(each['outcome'], 'upstream_error')
      t.false('bytes' in each)
    }
  },
)

test.serial('HTTP/2 is used with concurrent calls on one connection', async (t) => {
  let sessions = 0
  const server: Http2SecureServer = createSecureServer({
    key: UPSTREAM_KEY,
    cert: UPSTREAM_CERT,
    // The upstream holds all large responses in memory.
    maxSessionMemory: 1000,
  })
  server.on('session', () => {
    sessions += 1
  })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200, 'content-type': 'text/plain', 'x-request-id': 'theirs' })
    if (headers[':method'] === 'POST') stream.pipe(stream)
    else stream.end(Buffer.alloc(Number(headers[':path']!.slice(1)), 'x'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const origin = `https://${UPSTREAM_NAME}:${(server.address() as AddressInfo).port}`
  const setting = await settingOf(resources)
  const get = async (bytes: number) => {
    const answer = await resources.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${origin}/${bytes}`, { 'x-svc-method': 'GET' }),
    })
    t.is(answer.statusCode, 200)
    return (await answer.body.arrayBuffer()).byteLength
  }
  t.is(await get(10), 10)
  const sizes = [0, 1, 1000, 100_000, 5 * MIB, 5 * MIB, 5 * MIB, 20 * MIB]
  t.deepEqual(await Promise.all(sizes.map(get)), sizes)
  t.is(sessions, 1)
  const chunk = Buffer.alloc(64 * 1024, 'y')
  async function* produce() {
    for (let sent = 0; sent < 8 * MIB; sent += chunk.length) yield chunk
  }
  const echoed = await resources.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, `${origin}/echo`),
    body: produce() as never,
  })
  t.is((await echoed.body.arrayBuffer()).byteLength, 8 * MIB)
})
