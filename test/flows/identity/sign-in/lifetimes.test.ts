/** Idle and absolute lifetimes of browser sessions, measured as they pass. */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { openBrowser } from '../../../support/pages/browser.js'
import { bootstrapped, signIn, type Workspace } from '../../../support/identity/person.js'
import {
  authorized,
  callbackOf,
  journey,
  pathOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { testService, type TestService } from '../../../support/service.js'

const IDLE_SECS = 8
const ABSOLUTE_SECS = 20

let running: TestService
let person: Workspace
test.before(async () => {
  running = await testService({
    environment: {
      SVC_SESSION_COOKIE__IDLE_SECS: String(IDLE_SECS),
      SVC_SESSION_COOKIE__ABSOLUTE_SECS: String(ABSOLUTE_SECS),
    },
  })
  person = await bootstrapped(running)
})
test.after.always(() => running?.end())

test('a session in use outlives its idle time, and ends with its absolute one', async (t) => {
  const browser = openBrowser(running)
  t.teardown(() => browser.close())
  await signIn(browser, person)
  const began = performance.now()
  const ageSecs = () => (performance.now() - began) / 1000
  let endedSecs = 0
  while (endedSecs === 0) {
    const { status, location } = await browser.get('/auth/account')
    if (status !== 200) {
      t.is(status, 303)
      t.regex(location ?? '', /^\/auth\/login/)
      endedSecs = ageSecs()
    }
    await sleep(200)
  }
  // The session started slightly before our clock.
  t.true(endedSecs > ABSOLUTE_SECS - 1, `ended after ${endedSecs} s`)
  t.true(endedSecs < ABSOLUTE_SECS + 5, `ended after ${endedSecs} s`)
})

test('an unused session ends, and its tokens keep their lifetime', async (t) => {
  const party = await relyingParty(running, person)
  const browser = openBrowser(running)
  t.teardown(() => browser.close())
  const begun = await journey(party)
  const callback = callbackOf(await authorized(browser, person, begun.url))
  t.truthy(callback.searchParams.get('code'))
  await sleep((IDLE_SECS + 0.5) * 1000)
  t.regex((await browser.get('/auth/account')).location ?? '', /^\/auth\/login/)
  const silent = await journey(party, { prompt: 'none' })
  const refused = callbackOf(await browser.get(pathOf(silent.url)))
  t.is(refused.searchParams.get('error'), 'login_required')
  // A code issued before is redeemed, and its tokens are valid: the sign-in did happen.
  const answer = await fetch(`${running.baseUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: callback.searchParams.get('code') ?? '',
      code_verifier: begun.verifier,
      redirect_uri: callback.origin + callback.pathname,
      client_id: party.clientId,
      client_secret: party.secret,
    }),
  })
  t.is(answer.status, 200)
})
