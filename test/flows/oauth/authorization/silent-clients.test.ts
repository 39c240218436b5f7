/** Hosts of client metadata that never answer do not hold the places of all clients. */
import test from 'ava'
import { bootstrapped } from '../../../support/identity/person.js'
import { begin, DEFAULT_SLUG, makeDefault, post } from '../../../support/oauth/documented-client.js'
import { documentServer } from '../../../support/oauth/document-server.js'
import { testService } from '../../../support/service.js'

/** More than the places of a site. */
const REQUESTS = 96

test('requests of clients whose document never comes have few places, and others fail at once', async (t) => {
  const host = await documentServer()
  const slug = { SVC_TENANT__DEFAULT_TENANT_SLUG: DEFAULT_SLUG }
  const running = await testService({ environment: { ...host.environment, ...slug } })
  t.teardown(async () => {
    await running.end()
    await host.close()
  })
  await makeDefault(running, await bootstrapped(running))
  const pushed = (nth: number) => {
    const silent = host.serve(`/silent/${nth % 3}.json`, () => undefined)
    const { path } = begin(silent)
    const form = new URLSearchParams(path.slice(path.indexOf('?')))
    return post(running.baseUrl, '/oauth/par', Object.fromEntries(form))
  }
  const answers = await Promise.all(Array.from({ length: REQUESTS }, (_, nth) => pushed(nth)))
  const faults = answers.map(({ body }) => String(body['error_description']).split(': ').at(-1))
  t.deepEqual(new Set(faults), new Set(['timeout', 'share_exhausted']))
})
