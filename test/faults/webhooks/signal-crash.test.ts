/** A process is killed (SIGKILL) while it pushes a security event: another process pushes it again. */
import test from 'ava'
import { decodeJwt } from 'jose'
import { svcBeside } from '../../flows/vault/command.js'
import { fixtureOf } from '../../support/agents/delegation.js'
import { apiOf } from '../../support/api.js'
import { REACHES_LOOPBACK } from '../../support/fleet/loopback.js'
import { testService } from '../../support/service.js'
import { startReceiver } from '../../support/webhooks/receiver.js'

const PATH = '/events'
const DISABLED = 'https://schemas.openid.net/secevent/risc/event-type/account-disabled'

test('an event that a killed process was pushing is pushed by another, before the next one', async (t) => {
  t.timeout(240_000)
  // Changes commit at a process that pushes nothing.
  const running = await testService({
    environment: { ...REACHES_LOOPBACK, SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
  })
  const api = apiOf(running)
  let kill = () => {}
  const receiver = await startReceiver(() => {
    if (receiver.at(PATH).length > 1) return 202
    kill()
    return () => undefined
  })
  const workspace = await api.workspace()
  const delivery = { method: 'urn:ietf:rfc:8935', endpoint_url: receiver.origin + PATH }
  await api
    .post('/ssf/streams', workspace.token, { delivery, events_requested: [DISABLED] })
    .gives(201)
  const { email } = fixtureOf(workspace)
  const query = `email=${encodeURIComponent(email)}`
  const { rows } = await api.list(`/api/v1/tenant-users?${query}`, workspace.token)
  const user = `/api/v1/tenant-users/${String(rows[0]!['id'])}`
  for (let times = 0; times < 2; times += 1) {
    await api.post(`${user}/suspend`, workspace.token).gives(200)
    await api.post(`${user}/reactivate`, workspace.token).gives(200)
  }
  t.is(receiver.received.length, 0)

  const doomed = await svcBeside(t, running, REACHES_LOOPBACK)
  kill = () => doomed.child.kill('SIGKILL')
  // The first request may have come before `kill` was set.
  await receiver.until(PATH, 1)
  kill()
  await doomed.ended()
  await svcBeside(t, running, REACHES_LOOPBACK)
  const received = await receiver.until(PATH, 3, 120_000)
  const [first, again, next] = received.map(({ body }) => decodeJwt(body.toString()))
  t.is(again!.jti, first!.jti)
  t.not(next!.jti, first!.jti)
  t.true(Number(next!['txn']) > Number(first!['txn']))
})
