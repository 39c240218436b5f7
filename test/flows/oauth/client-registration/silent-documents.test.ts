/** Hosts of documents that never answer hold few places of registration, and none of other tenants. */
import test from 'ava'
import { registering } from '../../../support/identity/registering.js'
import { tenantAgent } from '../../../support/identity/tenant-agent.js'
import { documentServer } from '../../../support/oauth/document-server.js'
import { CALLBACK } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const CHANGES = 24

const host = await documentServer()
const running = await sharedService('hosts')

test('a client whose document never comes does not hold the registration of others', async (t) => {
  const hostile = registering(running.baseUrl, await tenantAgent(running.baseUrl))
  const honest = registering(running.baseUrl, await tenantAgent(running.baseUrl))
  const { body, path, token } = await hostile.registered()
  const change = (nth: number) =>
    hostile.send('PUT', path, token, {
      client_id: body['client_id'],
      redirect_uris: [CALLBACK],
      sector_identifier_uri: host.serve(`/silent/${nth}`, () => undefined),
    })
  const attack = Promise.all(Array.from({ length: CHANGES }, (_, nth) => change(nth)))
  const document = host.serve('/good.json', { body: JSON.stringify([CALLBACK]) })
  const mine = await honest.registered({ sector_identifier_uri: document })
  t.is(mine.body['sector_identifier_uri'], document)
  const statuses = (await attack).map(({ status }) => status)
  const fetched = host.asked.filter((asked) => asked.startsWith('/silent/')).length
  t.is(statuses.filter((status) => status === 400).length, fetched, statuses.join())
  t.is(statuses.filter((status) => status === 503).length, CHANGES - fetched)
  t.true(fetched < CHANGES / 2, String(fetched))
})
