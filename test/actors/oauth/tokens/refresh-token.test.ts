import test from 'ava'
import { judgeRefresh } from '../../../../actors/oauth/tokens/grants/refresh-token.js'
import { eventsAfter } from '../../../../storage/platform/outbox.js'
import type { RefreshTokenRow } from '../../../../storage/oauth/refresh-tokens.js'
import { buildTokensFixture, byAssertion, request, type TokensFixture } from './tokens-fixture.js'

let fixture: TokensFixture
let tenantId: string
test.before(async () => {
  fixture = await buildTokensFixture()
  tenantId = await fixture.tenant('refreshing')
})
test.after.always(() => fixture?.close())

const refresh = (clientId: string, refreshToken: string, more: Record<string, string> = {}) =>
  request({
    grant_type: 'refresh_token',
    client_id: clientId,
    refresh_token: refreshToken,
    ...more,
  })

const reuses = async (sessionId: string) => {
  const events = await fixture.database.tenant(tenantId, (tx) =>
    eventsAfter(tx, tenantId, 0, 10_000),
  )
  return events.filter(
    ({ type, data }) => type === 'security.refresh_token.reuse' && data['session_id'] === sessionId,
  )
}

const at = (second: number) => new Date(Date.UTC(2030, 0, 1, 0, 0, second))
const live: RefreshTokenRow = {
  tenantId: 't',
  familyId: 'f',
  generation: 3,
  tokenSha256: new Uint8Array(32),
  issuedAt: at(0),
  rotatedAt: null,
  successorAnswer: null,
  successorUsed: false,
  clientId: 'c',
  scopes: [],
  audience: [],
  resourceIds: null,
  jkt: null,
  expiresAt: at(3600),
  revokedAt: null,
  browserSessionId: null,
  sessionId: 's',
  accessSessionId: 's',
  subject: 'c',
  subjectType: 'agent',
  agentId: 'c',
  organizationId: null,
  amr: [],
  authTime: at(0),
  sessionEndedAt: null,
  tenantActive: true,
  clientActive: true,
  level: null,
  authorizationDetails: null,
  claims: null,
  delegationId: null,
  delegation: null,
}
const rotated = { rotatedAt: at(20), successorAnswer: new Uint8Array(1) }
for (const [title, change, clientId, jkt, verdict] of [
  ['a live token', {}, 'c', null, 'live'],
  ['a live token from another client', {}, 'd', null, 'refused'],
  ['a live token at its expiry', { expiresAt: at(30) }, 'c', null, 'refused'],
  ['a live token of a revoked family', { revokedAt: at(1) }, 'c', null, 'refused'],
  ['a live token of an ended session', { sessionEndedAt: at(1) }, 'c', null, 'refused'],
  ['a live token of a suspended tenant', { tenantActive: false }, 'c', null, 'refused'],
  ['a live token of a suspended client', { clientActive: false }, 'c', null, 'refused'],
  ['a bound token with its key', { jkt: 'k' }, 'c', 'k', 'live'],
  ['a bound token with another key', { jkt: 'k' }, 'c', 'l', 'wrong_key'],
  ['a bound token without a proof', { jkt: 'k' }, 'c', null, 'wrong_key'],
  ['a token rotated 10 s ago', rotated, 'c', null, 'repeated'],
  ['a token rotated 11 s ago', { ...rotated, rotatedAt: at(19) }, 'c', null, 'replayed'],
  [
    'a rotated token whose successor was used',
    { ...rotated, successorUsed: true },
    'c',
    null,
    'replayed',
  ],
  [
    'a rotated token whose answer was wiped',
    { ...rotated, successorAnswer: null },
    'c',
    null,
    'replayed',
  ],
  ['a rotated token from another client', rotated, 'd', null, 'replayed'],
  ['a rotated bound token without its key', { ...rotated, jkt: 'k' }, 'c', null, 'replayed'],
  ['a rotated bound token with its key', { ...rotated, jkt: 'k' }, 'c', 'k', 'repeated'],
  ['a rotated token of a revoked family', { ...rotated, revokedAt: at(21) }, 'c', null, 'refused'],
] as const) {
  test.serial(`${title} is ${verdict}`, (t) =>
    t.is(judgeRefresh({ ...live, ...change }, clientId, jkt, at(30)), verdict),
  )
}

test.serial('a refresh returns a new pair that works, with the claims of the login', async (t) => {
  const agent = await fixture.agent(tenantId)
  const first = await fixture.login(tenantId, agent)
  const second = await fixture.tokens.issueToken(refresh(agent.id, first.refreshToken))
  t.is(second.tag, 'issued')
  if (second.tag !== 'issued') return
  t.not(second.refreshToken, first.refreshToken)
  t.is(second.tokenType, 'Bearer')
  t.is(second.expiresInSecs, 300)
  t.deepEqual(second.scopes, ['vault:list', 'vault:read'])
  const judged = await fixture.tokens.authenticate({
    token: second.accessToken,
    scheme: 'Bearer',
    dpopProof: null,
    httpMethod: 'GET',
    httpUrl: 'https://auth.svc.example/x',
  })
  t.like(judged, {
    tag: 'authenticated',
    principal: { subject: agent.id, subjectType: 'agent', tenantId, sessionId: first.sessionId },
  })
  const third = await fixture.tokens.issueToken(refresh(agent.id, second.refreshToken!))
  t.is(third.tag, 'issued')
})

test.serial(
  'an agent can also refresh with an assertion signed by its registered key',
  async (t) => {
    for (const kind of ['ed25519', 'es256'] as const) {
      const agent = await fixture.agent(tenantId, kind)
      const { refreshToken } = await fixture.login(tenantId, agent)
      const signed = await fixture.assertion(agent.id, agent.privateKey)
      const outcome = await fixture.tokens.issueToken(
        request({
          grant_type: 'refresh_token',
          refresh_token: refreshToken,
          ...byAssertion(signed),
        }),
      )
      t.is(outcome.tag, 'issued', kind)
    }
  },
)

test.serial('of 50 parallel refreshes one rotates, and all get the same response', async (t) => {
  const agent = await fixture.agent(tenantId)
  const { refreshToken, sessionId } = await fixture.login(tenantId, agent)
  // Five processes, so that the order within a process does not matter.
  const processes = Array.from({ length: 5 }, () => fixture.spawnTokens())
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      processes[i % 5]!.ref.issueToken(refresh(agent.id, refreshToken)),
    ),
  )
  await Promise.all(processes.map((process) => process.stop()))
  const answers = new Set(outcomes.map((outcome) => JSON.stringify(outcome)))
  t.deepEqual([...new Set(outcomes.map(({ tag }) => tag))], ['issued'])
  t.is(answers.size, 1)
  const { rows } = await fixture.sql(
    `select count(*)::int as n, count(rotated_at)::int as rotated from refresh_tokens t
     join refresh_families f on f.tenant_id = t.tenant_id and f.id = t.family_id
     where f.session_id = $1`,
    [sessionId],
  )
  t.deepEqual(rows, [{ n: 2, rotated: 1 }])
  t.deepEqual(await reuses(sessionId), [])
})

test.serial(
  'a replay after the grace period revokes the family, its session and its access tokens',
  async (t) => {
    const agent = await fixture.agent(tenantId)
    const first = await fixture.login(tenantId, agent)
    const second = await fixture.tokens.issueToken(refresh(agent.id, first.refreshToken))
    t.is(second.tag, 'issued')
    if (second.tag !== 'issued') return
    fixture.clock.advance(10_001)
    const replay = await fixture.tokens.issueToken(refresh(agent.id, first.refreshToken))
    t.like(replay, { tag: 'oauth_refused', error: 'invalid_grant' })
    const successor = await fixture.tokens.issueToken(refresh(agent.id, second.refreshToken!))
    t.like(successor, { tag: 'oauth_refused', error: 'invalid_grant' })
    const judged = await fixture.tokens.authenticate({
      token: second.accessToken,
      scheme: 'Bearer',
      dpopProof: null,
      httpMethod: 'GET',
      httpUrl: 'https://auth.svc.example/x',
    })
    t.like(judged, { tag: 'refused', error: 'token_revoked' })
    const events = await reuses(first.sessionId)
    t.is(events.length, 1, 'told once')
    t.is(events[0]!.data['reason'], 'replay')
  },
)

test.serial(
  'a replay in the grace period but after the use of the successor revokes the family',
  async (t) => {
    const agent = await fixture.agent(tenantId)
    const first = await fixture.login(tenantId, agent)
    const second = await fixture.tokens.issueToken(refresh(agent.id, first.refreshToken))
    if (second.tag !== 'issued') return t.fail(second.tag)
    const third = await fixture.tokens.issueToken(refresh(agent.id, second.refreshToken!))
    if (third.tag !== 'issued') return t.fail(third.tag)
    const replay = await fixture.tokens.issueToken(refresh(agent.id, first.refreshToken))
    t.like(replay, { error: 'invalid_grant' })
    const last = await fixture.tokens.issueToken(refresh(agent.id, third.refreshToken!))
    t.like(last, { error: 'invalid_grant' })
    t.is((await reuses(first.sessionId)).length, 1)
  },
)

test.serial('scopes are downscoped for one token and never grow', async (t) => {
  const agent = await fixture.agent(tenantId)
  const first = await fixture.login(tenantId, agent)
  const wider = refresh(agent.id, first.refreshToken, { scope: 'vault:read tenant:manage' })
  t.like(await fixture.tokens.issueToken(wider), { error: 'invalid_scope' })
  const narrow = refresh(agent.id, first.refreshToken, { scope: 'vault:read' })
  const second = await fixture.tokens.issueToken(narrow)
  t.like(second, { tag: 'issued', scopes: ['vault:read'] })
  if (second.tag !== 'issued') return
  const third = await fixture.tokens.issueToken(refresh(agent.id, second.refreshToken!))
  t.like(third, { tag: 'issued', scopes: ['vault:list', 'vault:read'] })
})

test.serial('only the audience of the grant can be requested', async (t) => {
  const agent = await fixture.agent(tenantId)
  const first = await fixture.login(tenantId, agent)
  const foreign = refresh(agent.id, first.refreshToken, { resource: 'https://other.example' })
  t.like(await fixture.tokens.issueToken(foreign), { error: 'invalid_target' })
  const same = refresh(agent.id, first.refreshToken, { resource: 'https://auth.svc.example' })
  t.is((await fixture.tokens.issueToken(same)).tag, 'issued')
})

test.serial('the lifetime of a family is fixed', async (t) => {
  const agent = await fixture.agent(tenantId)
  let { refreshToken } = await fixture.login(tenantId, agent)
  for (let hour = 0; hour < 24; hour += 6) {
    const outcome = await fixture.tokens.issueToken(refresh(agent.id, refreshToken))
    if (outcome.tag !== 'issued') return t.fail(`after ${hour} hours`)
    refreshToken = outcome.refreshToken!
    fixture.clock.advance(6 * 3600_000)
  }
  t.like(await fixture.tokens.issueToken(refresh(agent.id, refreshToken)), {
    error: 'invalid_grant',
  })
})

test.serial('another agent cannot use a refresh token, and it stays valid', async (t) => {
  const agent = await fixture.agent(tenantId)
  const thief = await fixture.agent(tenantId)
  const { refreshToken } = await fixture.login(tenantId, agent)
  t.like(await fixture.tokens.issueToken(refresh(thief.id, refreshToken)), {
    error: 'invalid_grant',
  })
  t.is((await fixture.tokens.issueToken(refresh(agent.id, refreshToken))).tag, 'issued')
})

test.serial('a suspended agent cannot refresh', async (t) => {
  const agent = await fixture.agent(tenantId)
  const { refreshToken } = await fixture.login(tenantId, agent)
  await fixture.sql(`update agents set status = 'suspended' where id = $1`, [agent.id])
  t.like(await fixture.tokens.issueToken(refresh(agent.id, refreshToken)), {
    error: 'invalid_client',
  })
})

test.serial(
  'a bound refresh token needs a proof by its key, and returns a bound token',
  async (t) => {
    const agent = await fixture.agent(tenantId)
    const jkt = agent.fingerprint
    const { refreshToken } = await fixture.login(tenantId, agent, jkt)
    const bare = await fixture.tokens.issueToken(refresh(agent.id, refreshToken))
    t.like(bare, { tag: 'proof_refused', error: 'invalid_dpop_proof' })
    const other = await fixture.agent(tenantId, 'es256')
    const wrong = { ...refresh(agent.id, refreshToken), dpopProof: await fixture.proof(other) }
    t.like(await fixture.tokens.issueToken(wrong), { error: 'invalid_dpop_proof' })
    const right = { ...refresh(agent.id, refreshToken), dpopProof: await fixture.proof(agent) }
    t.like(await fixture.tokens.issueToken(right), { tag: 'issued', tokenType: 'DPoP' })
  },
)

test.serial('an unknown token and a missing one get different errors', async (t) => {
  const agent = await fixture.agent(tenantId)
  const unknown = refresh(agent.id, 'A'.repeat(43))
  t.like(await fixture.tokens.issueToken(unknown), { error: 'invalid_grant' })
  const missing = request({ grant_type: 'refresh_token', client_id: agent.id })
  t.like(await fixture.tokens.issueToken(missing), { error: 'invalid_request' })
})
