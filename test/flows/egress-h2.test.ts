/** Upstreams that speak HTTP/2 and do not keep to it. docs/egress.md, What comes back. */
import { once } from 'node:events'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import test from 'ava'
import { UPSTREAM_CERT, UPSTREAM_KEY } from '../actors/egress/loopback-tls.js'
import { bodyCall, closedCalls, egressHouse, settingOf, UPSTREAM_NAME } from '../support/egress.js'

const NO_ERROR = 0
const CANCEL = 8
const INTERNAL_ERROR = 2

const house = await egressHouse()
const server = createSecureServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT })
server.on('stream', (stream, { ':path': path = '', ':method': method }) => {
  stream.on('error', () => {})
  const code = Number(path.slice(1))
  stream.respond({ ':status': 200, 'content-length': 7 }, { endStream: method === 'HEAD' })
  if (method === 'HEAD') return
  if (path === '/whole') return void stream.end('partial')
  stream.write('part')
  setTimeout(() => (code === NO_ERROR ? stream.destroy() : stream.close(code)), 50)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `https://${UPSTREAM_NAME}:${(server.address() as AddressInfo).port}`
test.after.always(async () => {
  await house.end()
  server.close()
})

test.serial('an answer that ends before what it announced does not look complete', async (t) => {
  const setting = await settingOf(house)
  const call = (path: string, stream: boolean, method = 'GET') =>
    house.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, origin + path, {
        'x-svc-method': method,
        'x-svc-stream-response': String(stream),
      }),
    })
  const whole = await call('/whole', false)
  t.is(await whole.body.text(), 'partial')
  const head = await call('/whole', false, 'HEAD')
  t.is(head.statusCode, 200)
  await head.body.dump()
  for (const code of [NO_ERROR, CANCEL, INTERNAL_ERROR]) {
    const buffered = await call(`/${code}`, false)
    t.is(buffered.statusCode, 502, `${code}: ${await buffered.body.text()}`)
    t.is(buffered.headers['proxy-status'], 'svc-egress; error=http_response_incomplete')
    const streamed = await call(`/${code}`, true)
    t.is(streamed.statusCode, 200)
    await t.throwsAsync(streamed.body.text(), undefined, String(code))
  }
  const closed = await closedCalls(house, setting.tenantId, 8)
  const outcomes = closed.map(({ outcome }) => outcome)
  t.deepEqual(outcomes, ['completed', 'completed', ...Array<string>(6).fill('upstream_error')])
})
