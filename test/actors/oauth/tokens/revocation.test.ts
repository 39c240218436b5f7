import test from 'ava'
import {
  buildTokensFixture,
  byAssertion,
  ISSUER,
  request,
  type TokensFixture,
} from './tokens-fixture.js'

let fixture: TokensFixture
let tenantId: string
test.before(async () => {
  fixture = await buildTokensFixture()
  tenantId = await fixture.tenant('revocations')
})
test.after.always(() => fixture?.close())

type App = Awaited<ReturnType<TokensFixture['application']>>

const authenticates = async (token: string, process = fixture.tokens) => {
  const judged = await process.authenticate({
    token,
    scheme: 'Bearer',
    dpopProof: null,
    httpMethod: 'GET',
    httpUrl: `${ISSUER}/api/v1/applications`,
  })
  return judged.tag === 'refused' ? judged.error : judged.tag
}
const tokenOf = async (app: App) => {
  const outcome = await fixture.tokens.issueToken(
    request({ grant_type: 'client_credentials' }, { authorization: app.authorization }),
  )
  if (outcome.tag !== 'issued') throw new Error(outcome.tag)
  return outcome.accessToken
}
const revoke = (token: string, who: Record<string, string>) =>
  fixture.tokens.revokeToken(request({ token, ...who }))
const secretOf = (app: App) => ({ client_id: app.clientId, client_secret: app.secret })
const DONE = { tag: 'revoked' } as const

test.serial(
  'a revoked access token is refused from the next request on, and no other token is',
  async (t) => {
    const app = await fixture.application(tenantId)
    const [one, other] = [await tokenOf(app), await tokenOf(app)]
    t.is(await authenticates(one), 'authenticated')
    t.deepEqual(await revoke(one, secretOf(app)), DONE)
    t.is(await authenticates(one), 'token_revoked')
    t.is(await authenticates(other), 'authenticated')
    t.deepEqual(await revoke(one, secretOf(app)), DONE, 'again')
    const { rows } = await fixture.sql(
      `select data->>'client_id' as client from all_events where type = 'auth.token.revoked'
     and data->'actor'->>'id' = $1`,
      [app.clientId],
    )
    t.is(rows.length, 1, 'told once')
  },
)

test.serial(
  'another process refuses it after the notification, and within a second at the latest',
  async (t) => {
    const app = await fixture.application(tenantId)
    const token = await tokenOf(app)
    const elsewhere = fixture.spawnTokens()
    t.is(await authenticates(token, elsewhere.ref), 'authenticated')
    await revoke(token, secretOf(app))
    fixture.clock.advance(900)
    t.is(await authenticates(token, elsewhere.ref), 'token_revoked')
    await elsewhere.stop()
  },
)

test.serial('a refresh token revokes its family and its access tokens', async (t) => {
  const agent = await fixture.agent(tenantId)
  const login = await fixture.login(tenantId, agent)
  const refreshed = await fixture.tokens.issueToken(
    request({
      grant_type: 'refresh_token',
      refresh_token: login.refreshToken,
      ...byAssertion(await fixture.assertion(agent.id, agent.privateKey)),
    }),
  )
  if (refreshed.tag !== 'issued') return t.fail(refreshed.tag)
  t.deepEqual(await revoke(login.refreshToken, { client_id: agent.id }), DONE, 'a rotated one too')
  t.is(await authenticates(login.accessToken), 'token_revoked')
  t.is(await authenticates(refreshed.accessToken), 'token_revoked')
  t.like(
    await fixture.tokens.issueToken(
      request({
        grant_type: 'refresh_token',
        refresh_token: refreshed.refreshToken!,
        client_id: agent.id,
      }),
    ),
    { tag: 'oauth_refused', error: 'invalid_grant' },
  )
})

test.serial('a token of another client is refused and stays valid', async (t) => {
  const [mine, theirs] = [await fixture.application(tenantId), await fixture.application(tenantId)]
  const token = await tokenOf(theirs)
  t.like(await revoke(token, secretOf(mine)), { tag: 'oauth_refused', error: 'invalid_grant' })
  t.is(await authenticates(token), 'authenticated')
  const agent = await fixture.agent(tenantId)
  const login = await fixture.login(tenantId, agent)
  t.like(await revoke(login.refreshToken, secretOf(mine)), { error: 'invalid_grant' })
  t.is(await authenticates(login.accessToken), 'authenticated')
})

test.serial('an unknown token gets the response of a revoked one', async (t) => {
  const app = await fixture.application(tenantId)
  const token = await tokenOf(app)
  const forged = `${token.slice(0, -8)}AAAAAAAA`
  for (const unknown of ['x', 'a.b.c', '...', forged, 'ä', '\0', 'x'.repeat(16_384)])
    t.deepEqual(await revoke(unknown, secretOf(app)), DONE)
  t.is(await authenticates(token), 'authenticated')
  t.like(await fixture.tokens.revokeToken(request(secretOf(app))), { error: 'invalid_request' })
  t.like(await revoke(token, { client_id: app.clientId, client_secret: 'wrong' }), {
    error: 'invalid_client',
  })
})

test.serial('a revocation is stored until its token would have expired, not longer', async (t) => {
  const { removeEndedRevocations } = await import('../../../../storage/oauth/revoked-tokens.js')
  const app = await fixture.application(tenantId)
  await revoke(await tokenOf(app), secretOf(app))
  const sweep = (ms: number) =>
    fixture.database.system((tx) =>
      removeEndedRevocations(tx, new Date(fixture.clock.now().getTime() + ms), 1000),
    )
  t.is(await sweep(0), 0)
  t.true((await sweep(301_000)) >= 1)
})
