/** A process is killed (SIGKILL) after the end of a session, before the application answers: another delivers the logout. */
import test from 'ava'
import { decodeJwt } from 'jose'
import { svcBeside } from '../../flows/vault/command.js'
import { REACHES_LOOPBACK } from '../../support/fleet/loopback.js'
import { bootstrapped } from '../../support/identity/person.js'
import { relyingParty } from '../../support/oauth/relying-party.js'
import { testService } from '../../support/service.js'
import { type Received, startReceiver } from '../../support/webhooks/receiver.js'

const PATH = '/logout'

const claimsOf = ({ body }: Received) =>
  decodeJwt(new URLSearchParams(body.toString()).get('logout_token')!)

test('a logout that a killed process was delivering is delivered by another', async (t) => {
  t.timeout(240_000)
  // Sessions end at a process that delivers nothing.
  const running = await testService({
    environment: { SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
  })
  let kill = () => {}
  const receiver = await startReceiver(() => {
    if (receiver.at(PATH).length > 1) return 200
    kill()
    return () => undefined
  })
  const person = await bootstrapped(running)
  const backchannelLogoutUri = receiver.origin + PATH
  const party = await relyingParty(running, person, { backchannelLogoutUri })
  const { browser, claims } = await party.signedIn(person)
  await browser.submit(await browser.get('/auth/account'), {}, '/auth/logout')
  t.is(receiver.received.length, 0)

  const doomed = await svcBeside(t, running, REACHES_LOOPBACK)
  kill = () => doomed.child.kill('SIGKILL')
  // The first request may have come before `kill` was set.
  await receiver.until(PATH, 1)
  kill()
  await doomed.ended()
  await svcBeside(t, running, REACHES_LOOPBACK)
  const [first, second] = await receiver.until(PATH, 2, 120_000)
  const [before, after] = [claimsOf(first!), claimsOf(second!)]
  t.is(before['sid'], claims['sid'])
  t.is(after['sid'], claims['sid'])
  t.not(before.jti, after.jti)
})
