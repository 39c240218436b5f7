/** If the native uWebSockets binary is not the pinned one, node:http serves `plain_http`. */
import test from 'ava'
import { sendRaw, statuses } from './raw.js'
import { openStage } from './stage.js'

test('a binary with another hash is not loaded, and requests that it cannot read are served', async (t) => {
  const stage = await openStage({ transport: 'uws', gateway: { nativePins: {} } })
  t.teardown(() => stage.close())
  const reply = await sendRaw(stage.port, 'GET /nowhere HTTP/1.0\r\nhost: id.test\r\n\r\n', {
    answers: 1,
  })
  t.deepEqual(statuses(reply), [404])
})
