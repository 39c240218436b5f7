/** Answers of providers that stretch the standards: words for truth, null members, a key that was just made. */
import test from 'ava'
import { openBrowser } from '../../../support/pages/browser.js'
import { hostileProvider, type Mood } from '../../../support/identity/hostile-provider.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { testService } from '../../../support/service.js'
import { departed, reachable } from '../../../support/vault/upstream.js'

const provider = await hostileProvider()
const way = await reachable([provider.pem])
const running = await testService({
  environment: {
    ...way.environment,
    SVC_GENERIC_OAUTH__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ISSUER: provider.issuer,
    SVC_GENERIC_OAUTH__CLIENT_ID: 'rp',
    SVC_GENERIC_OAUTH__CLIENT_SECRET: 'the client secret of the relying party',
  },
})
const workspace = await bootstrapped(running)
await sql(running.db.database, 'update tenants set settings = $2 where id = $1', [
  workspace.tenantId,
  JSON.stringify({ social: { provision: true } }),
])
test.after.always(async () => {
  await running.end()
  await provider.close()
  await way.remove()
})

let people = 0

/** True if a new user gets a session. */
async function signsIn(mood: Mood): Promise<boolean> {
  people += 1
  const claims = { sub: `subject-${people}`, email: `n${people}@people.example`, ...mood.claims }
  provider.mood = { ...mood, claims }
  const browser = openBrowser(running)
  try {
    const away = await departed(browser, workspace, 'oidc')
    const url = new URL(away.location!)
    provider.nonce = url.searchParams.get('nonce')!
    const state = url.searchParams.get('state')!
    const query = new URLSearchParams({ code: 'abc', state, iss: provider.issuer })
    await browser.get(`/auth/sso/callback/oidc?${query.toString()}`)
    return (await browser.get('/auth/account')).status === 200
  } finally {
    await browser.close()
  }
}

for (const [said, signs] of [
  [true, true],
  ['true', true],
  ['false', false],
  [false, false],
  ['TRUE', false],
  [1, false],
  [null, false],
] as const)
  test.serial(
    `email_verified ${JSON.stringify(said)}: ${signs ? 'a session' : 'none'}`,
    async (t) => {
      t.is(await signsIn({ claims: { email_verified: said } }), signs)
    },
  )

test.serial('null members of a token response count as absent', async (t) => {
  const nulls = { refresh_token: null, scope: null, expires_in: null, 'not-before-policy': null }
  t.true(await signsIn({ tokenMembers: nulls }))
  t.false(await signsIn({ tokenMembers: { access_token: null } }))
  t.false(await signsIn({ tokenMembers: { id_token: null } }))
})

test.serial('a provider that turned its key after the last fetch signs users in', async (t) => {
  t.true(await signsIn({}))
  t.true(await signsIn({ turnedKey: true }))
  t.true(await signsIn({}), 'and back')
  t.false(await signsIn({ foreignKey: true }))
})
