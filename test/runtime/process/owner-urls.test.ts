/** `migration_url` and `maintenance_url` name the owner of the schema. A process of the service does not use them. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import test from 'ava'
import { apiOf } from '../../support/api.js'
import { testService } from '../../support/service.js'

test('a process of the service opens no connection of the owner', async (t) => {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.destroy()
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const owner = `postgres://owner:secret@127.0.0.1:${(server.address() as AddressInfo).port}/svc`
  const running = await testService({
    environment: { MIGRATION_DATABASE_URL: owner, MAINTENANCE_DATABASE_URL: owner },
  })
  const api = apiOf(running)
  t.teardown(() => api.end())
  t.is((await api.get('/health/ready')).status, 200)
  t.truthy((await api.workspace()).token)
  t.is(connections, 0)
})
