/** Idle and absolute lifetimes of browser sessions. */
import test from 'ava'
import { sql } from '../../../support/storage/sql.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { bootstrapped, signIn, type Workspace } from '../../../support/identity/person.js'
import {
  authorized,
  callbackOf,
  pathOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { SESSION } from '../../../support/fleet/profiles.js'
import { sharedService } from '../../../support/service.js'

let person: Workspace
const running = await sharedService('people')
test.beforeEach(async () => {
  person = await bootstrapped(running)
})

/** Moves the sessions of the tenant into the past, as if this time had passed. */
const passes = (secs: number) =>
  sql(
    running.db.database,
    `update browser_sessions set created_at = created_at - make_interval(secs => $2),
       last_seen_at = last_seen_at - make_interval(secs => $2),
       expires_at = expires_at - make_interval(secs => $2)
     where tenant_id = $1`,
    [person.tenantId, secs],
  )

test.serial(
  'a session in use outlives its idle time, and ends with its absolute one',
  async (t) => {
    const browser = openBrowser(running)
    await signIn(browser, person)
    const step = SESSION.idleSecs - 60
    for (let age = step; age < SESSION.absoluteSecs; age += step) {
      await passes(step)
      t.is((await browser.get('/auth/account')).status, 200, `${age} seconds old`)
    }
    await passes(step)
    const ended = await browser.get('/auth/account').gives(303)
    t.regex(ended.location ?? '', /^\/auth\/login/)
  },
)

test.serial('an unused session ends, and its tokens keep their lifetime', async (t) => {
  const party = await relyingParty(running, person)
  const browser = openBrowser(running)
  const begun = await party.journey()
  const callback = callbackOf(await authorized(browser, person, begun.url))
  t.truthy(callback.searchParams.get('code'))
  await passes(SESSION.idleSecs)
  t.regex((await browser.get('/auth/account')).location ?? '', /^\/auth\/login/)
  const silent = await party.journey({ prompt: 'none' })
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
