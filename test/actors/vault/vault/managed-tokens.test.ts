/** Managed access tokens in orders that calls over HTTP cannot force. */
import test from 'ava'
import { createManagedTokens } from '../../../../actors/vault/vault/managed-tokens.js'
import type { TokenAnswer } from '../../../../actors/vault/vault/token-answer.js'
import type { RejectedToken } from '../../../../actors/vault/vault/protocol.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import {
  credentialSecretContext,
  findVaultCredential,
  insertVaultCredential,
} from '../../../../storage/vault/vault-credentials.js'
import { until } from '../../../support/service/watch.js'
import { buildTokensFixture, type TokensFixture } from '../../oauth/tokens/tokens-fixture.js'

let fixture: TokensFixture
const UNCOUNTED = {
  exported: () => {},
  refreshed: () => {},
  lapsed: () => {},
  rejected: () => {},
}
test.before(async () => {
  fixture = await buildTokensFixture()
})
test.after.always(() => fixture?.close())

/** A credential whose token endpoint issues `at-1`, `at-2` and so on, and a process that has its tokens. */
async function stage(slug: string) {
  const { database, clock, random, sealer } = fixture
  const tenantId = await fixture.tenant(slug)
  const credentialId = random.uuid()
  const document = { token_url: 'https://upstream.example/token', client_id: 'c' }
  const secret = await sealer.seal(
    tenantId,
    credentialSecretContext(credentialId),
    Buffer.from(JSON.stringify({ ...document, refresh_token: 'rt-0' })),
  )
  await database.tenant(tenantId, (tx) =>
    insertVaultCredential(
      tx,
      {
        id: credentialId,
        tenantId,
        ownerType: 'agent',
        ownerId: 'owner',
        provider: 'upstream',
        credentialType: 'custom',
        label: 'Key',
        authScheme: 'oauth2_refresh',
        allowedHosts: ['upstream.example'],
        nonExportable: true,
        metadata: {},
        caPublicKey: null,
        createdAt: clock.now(),
        tokenOf: null,
        secret,
      },
      0,
    ),
  )
  /** Refresh tokens that were sent. */
  const sent: string[] = []
  let current = 'rt-0'
  const issued = (refreshToken: string): TokenAnswer => {
    if (refreshToken !== current) return { tag: 'refused', error: 'invalid_grant' }
    clock.advance(1)
    const count = sent.length
    current = `rt-${count}`
    return {
      tag: 'granted',
      accessToken: `at-${count}`,
      obtainedAt: clock.now(),
      expiresAt: new Date(clock.now().getTime() + 3_600_000),
      refreshToken: current,
      scope: null,
      clientAuth: 'basic',
    }
  }

  function process() {
    let held: Gate | null = null
    let heldAnswer: Gate | null = null
    let isAway = false
    let failed = 0
    const managed = createManagedTokens({
      database: {
        ...database,
        async tenant(...transaction) {
          if (isAway) {
            failed += 1
            throw new Error('the database is away')
          }
          const here = held
          held = null
          const value = await database.tenant(...transaction)
          await here?.pass()
          return value
        },
      },
      clock,
      random,
      sealer,
      log: silentLogger,
      connectionTtlSecs: 600,
      metrics: UNCOUNTED,
      endpoint: {
        async ask({ document: asked }) {
          const refreshToken = 'refresh_token' in asked ? String(asked.refresh_token) : ''
          sent.push(refreshToken)
          const here = heldAnswer
          heldAnswer = null
          const answer = issued(refreshToken)
          await here?.pass()
          return answer
        },
        close: async () => {},
      },
    })
    return {
      async get(rejected?: RejectedToken) {
        const outcome = await managed.get(tenantId, credentialId, rejected)
        if (outcome.tag !== 'token') throw new Error(outcome.tag)
        return outcome
      },
      reject: (rejected: RejectedToken) => managed.rejected(tenantId, credentialId, rejected),
      /** The next transaction commits, and its caller goes on after `letGo`. */
      holdNext: () => (held = gate()),
      /** The token endpoint has the next request, and its answer arrives after `letGo`. */
      holdAnswer: () => (heldAnswer = gate()),
      away(is: boolean) {
        isAway = is
      },
      failed: () => failed,
    }
  }
  const status = async () => {
    const row = await database.tenant(tenantId, (tx) =>
      findVaultCredential(tx, tenantId, credentialId),
    )
    return row?.status
  }
  return { ...process(), process, sent, status }
}

type Gate = ReturnType<typeof gate>
function gate() {
  let came = () => {}
  let letGo = () => {}
  const reached = new Promise<void>((resolve) => (came = resolve))
  const open = new Promise<void>((resolve) => (letGo = resolve))
  const pass = () => {
    came()
    return open
  }
  return { reached, letGo, pass }
}

test.serial(
  'a call does not share an attempt that had read its token before the token was rejected',
  async (t) => {
    const { get, reject, sent, holdNext } = await stage('earlier')
    await get()
    const cached = { ...(await get()), isFresh: false }
    const { reached, letGo } = holdNext()
    const early = get()
    await reached
    t.false(await reject(cached))
    const late = get(cached)
    letGo()
    t.is((await early).accessToken, 'at-1')
    t.is((await late).accessToken, 'at-2')
    t.deepEqual(sent, ['rt-0', 'rt-1'])
  },
)

test.serial(
  'a fresh token that was replaced does not protect its successor from rejections',
  async (t) => {
    const { get, reject, sent } = await stage('replaced')
    const first = await get()
    t.true(first.isFresh)
    t.false(await reject({ ...first, isFresh: false }))
    const second = await get()
    t.false(await reject(first))
    t.is((await get(first)).accessToken, 'at-2')
    t.false(await reject({ ...second, isFresh: false }))
    t.is((await get()).accessToken, 'at-3')
    t.true(await reject({ ...second, isFresh: true, obtainedAt: (await get()).obtainedAt }))
    t.is(sent.length, 3)
  },
)

test.serial(
  'a refresh token is sent once, although its answer is late and cannot be stored for a while',
  async (t) => {
    const { clock } = fixture
    const { sent, process, get, holdAnswer, away, failed } = await stage('slow')
    const { reached, letGo } = holdAnswer()
    const first = get()
    await reached
    clock.advance(29_000)
    away(true)
    letGo()
    await until('the answer was not stored', () => failed() > 0)
    clock.advance(29_000)
    const other = process()
    const looked = other.holdNext()
    const second = other.get()
    await looked.reached
    away(false)
    looked.letGo()
    t.is((await first).accessToken, 'at-1')
    t.is((await second).accessToken, 'at-1')
    t.deepEqual(sent, ['rt-0'])
  },
)

test.serial('a process that stood still stores its answer, or uses a newer one', async (t) => {
  const { clock } = fixture
  const { sent, process, get, holdAnswer, status } = await stage('still')
  const paused = holdAnswer()
  const first = get()
  await paused.reached
  clock.advance(200_000)
  // The upstream gave the answer, so that it refuses the same refresh token now.
  const other = process()
  const refused = other.holdAnswer()
  const second = other.get()
  await refused.reached
  paused.letGo()
  t.is((await first).accessToken, 'at-1')
  refused.letGo()
  t.is((await second).accessToken, 'at-1')
  t.is(await status(), 'active')
  t.deepEqual(sent, ['rt-0', 'rt-0'])
})

test.serial('the token of a process whose clock is behind is stored', async (t) => {
  const { clock } = fixture
  const { sent, process, get, reject } = await stage('behind')
  const first = await get()
  t.false(await reject({ ...first, isFresh: false }))
  clock.set(new Date(clock.now().getTime() - 3_000))
  const other = process()
  t.is((await other.get(first)).accessToken, 'at-2')
  t.is((await other.get()).accessToken, 'at-2')
  t.is((await get()).accessToken, 'at-2')
  t.deepEqual(sent, ['rt-0', 'rt-1'])
})
