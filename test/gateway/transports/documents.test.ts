/** Own service: it chooses the parser, and measures the memory of the process. */
/** Clients that ask for documents many times on one connection and read nothing. */
import { connect } from 'node:net'
import test from 'ava'
import { callerOf } from '../../support/agents/journey.js'
import { ownService } from '../../support/service/own-service.js'
import { metric, METRICS_TOKEN } from '../../support/service/watch.js'
import { IS_LONG } from '../../support/runs.js'

const MIB = 1024 * 1024
const COUNT = 1_000

/** The daily run floods the parser of the defaults. The other one has its bounds tested without a service (unread, pipelining). */
const PARSERS = IS_LONG ? ['node', 'uwebsockets'] : ['node']

for (const parser of PARSERS) {
  test.serial(`${parser}: 1,000 unread requests for a document cost no memory`, async (t) => {
    const running = await ownService({
      environment: {
        SVC_SERVER__HTTP1_PARSER: parser,
        SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
      },
    })
    t.teardown(() => running.end())
    const api = callerOf(running.baseUrl)
    const { host, port } = new URL(running.baseUrl)
    const documents = ['/api/docs', '/openapi.json', '/docs', '/llms.txt', '/auth.md']
    for (const path of documents) {
      const first = await fetch(running.baseUrl + path)
      t.is(first.status, 200, path)
      const etag = first.headers.get('etag')!
      t.regex(etag, /^"[\w-]+"$/)
      const again = await fetch(running.baseUrl + path, { headers: { 'if-none-match': etag } })
      t.is(again.status, 304)
    }
    const search = '/docs/search?q=the+token+of+an+agent'
    t.is((await fetch(running.baseUrl + search)).status, 200)
    const before = process.memoryUsage()
    for (const path of ['/api/docs', search]) {
      const socket = connect(Number(port), '127.0.0.1').pause()
      socket.on('error', () => undefined)
      t.teardown(() => void socket.destroy())
      const sent = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n\r\n`.repeat(COUNT)
      await new Promise((resolve) => socket.write(sent, resolve))
      // An answer has arrived, so the requests have been read.
      await new Promise((resolve) => socket.once('readable', resolve))
    }
    for (let call = 0; call < 5; call += 1) {
      t.is((await fetch(`${running.baseUrl}/health/live`)).status, 200)
    }
    t.true((await metric(api, 'svc_gateway_exchanges_in_progress')) <= 33)
    t.true((await metric(api, 'svc_gateway_unsent_bytes')) < 17 * MIB)
    const after = process.memoryUsage()
    const more = after.heapUsed + after.external - before.heapUsed - before.external
    t.true(more < 32 * MIB, `${Math.round(more / MIB)} MiB more`)
  })
}
