/** Related origins (WebAuthn Level 3 section 5.11): pages at another domain use the passkeys of the relying party. */
import test from 'ava'
import { softAuthenticator } from '../../../support/identity/authenticator.js'
import {
  ADD,
  loginPage,
  optionsOf,
  passkeysOf,
  useKey,
} from '../../../support/identity/passkeys.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { testService } from '../../../support/service.js'

const ORIGINS = ['https://id.example.com', 'https://id.example.de']
const running = await testService({
  environment: {
    SVC_PASSKEY__ENABLED: 'true',
    SVC_PASSKEY__RP_ID: 'id.example.com',
    SVC_PASSKEY__ORIGINS: JSON.stringify(ORIGINS),
  },
})

test('the document lists the origins', async (t) => {
  const answer = await fetch(`${running.baseUrl}/.well-known/webauthn`)
  t.is(answer.status, 200)
  t.is(answer.headers.get('content-type'), 'application/json')
  t.is(answer.headers.get('access-control-allow-origin'), '*')
  t.deepEqual(await answer.json(), { origins: ORIGINS })
})

test('a passkey is added at one origin and used at another, not at a third', async (t) => {
  const workspace = await bootstrapped(running)
  const owner = openBrowser(running)
  await owner.follow(await signIn(owner, workspace))
  const page = await owner.get(`${ADD}/new`)
  const key = softAuthenticator({ origin: ORIGINS[0]!, rpId: 'id.example.com' })
  const options = await optionsOf(owner, page, ADD)
  const added = await owner.submit(page, { credential: key.create(options), name: 'Key' }, ADD)
  t.is(added.status, 200)
  t.is((await passkeysOf({ running, workspace })).length, 1)
  const usedAt = async (origin: string) => {
    const browser = openBrowser(running)
    return (await useKey(browser, await loginPage(browser, workspace), key, { origin })).status
  }
  t.is(await usedAt(ORIGINS[1]!), 303)
  t.is(await usedAt('https://id.example.fr'), 200, 'the sign-in page again')
})
