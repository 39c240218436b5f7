/** What ends in one process ends in every process. decisions.md 18, revocation everywhere. */
import test from 'ava'
import * as oidc from 'openid-client'
import { bootstrapped } from '../support/person.js'
import { relyingParty, signedIn } from '../support/relying-party.js'
import { testService } from '../support/service.js'

/** decisions.md 18 says within a second; the rest is for the test's own requests. */
const WITHIN_MS = 1_500

test('revoked, signed out or suspended here, a token of a person is refused by the next process', async (t) => {
  const here = await testService()
  const there = await testService({
    beside: here,
    environment: { SVC_OIDC__ISSUER_URL: here.baseUrl },
  })
  t.teardown(async () => {
    await there.end()
    await here.end()
  })
  const person = await bootstrapped(here)
  const party = await relyingParty(here, person)
  const port = new URL(there.service.url).port
  const statusThere = async (token: string) =>
    (
      await fetch(`http://localhost:${port}/userinfo`, {
        headers: { authorization: `Bearer ${token}` },
      })
    ).status
  const ends: [string, (of: Awaited<ReturnType<typeof signedIn>>) => Promise<unknown>][] = [
    ['access token', ({ tokens }) => oidc.tokenRevocation(party.config, tokens.access_token)],
    ['refresh token', ({ tokens }) => oidc.tokenRevocation(party.config, tokens.refresh_token!)],
    [
      'signed out',
      async ({ browser }) => browser.submit(await browser.get('/auth/account'), {}, '/auth/logout'),
    ],
    [
      'suspended',
      ({ claims }) =>
        here.db.database.tenant(person.tenantId, (tx) =>
          tx.query({
            name: 'test.suspend',
            text: `update tenant_users set status = 'suspended' where sub = $1`,
            values: [claims.sub],
          }),
        ),
    ],
  ]
  for (const [title, end] of ends) {
    const signed = await signedIn(here, party, person)
    const { access_token: token } = signed.tokens
    t.is(await statusThere(token), 200, title)
    await end(signed)
    const endedAt = performance.now()
    while ((await statusThere(token)) === 200 && performance.now() - endedAt < WITHIN_MS);
    t.is(await statusThere(token), 401, title)
    t.true(performance.now() - endedAt < WITHIN_MS, title)
    await signed.browser.close()
  }
})
