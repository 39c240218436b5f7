/** How an HTTP/2 client sees a response that the service cannot finish. */
import { connect } from 'node:http2'
import test from 'ava'
import { bodyCall, ownEgressHouse, settingOf } from '../../support/vault/egress.js'

test('a response cut off by a shutdown does not look complete', async (t) => {
  const resources = await ownEgressHouse({
    transport: 'tls_h2_only',
    environment: { SVC_SERVER__SHUTDOWN_DEADLINE_SECS: '1' },
  })
  t.teardown(() => resources.end())
  const setting = await settingOf(resources)
  const session = connect(resources.running.baseUrl, { ca: resources.running.ca! })
  session.on('error', () => {})
  const stream = session.request({
    ':method': 'POST',
    ':path': '/v1/proxy/body',
    authorization: `Bearer ${setting.direct}`,
    ...bodyCall(setting, `${resources.upstream.origin}/silent-after-chunk`),
  })
  stream.end()
  await new Promise((resolve) => stream.once('data', resolve))
  const failed = new Promise<Error>((resolve, reject) => {
    stream.once('error', resolve)
    stream.once('close', () => reject(new Error('it ended')))
  })
  await resources.running.service.stop()
  t.regex((await failed).message, /error code (2|NGHTTP2_INTERNAL_ERROR)/)
})
