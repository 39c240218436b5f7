/** Managed access tokens in orders that calls over HTTP cannot force. */
import test from 'ava'
import { createManagedTokens } from '../../../../actors/vault/vault/managed-tokens.js'
import type { TokenAnswer } from '../../../../actors/vault/vault/token-answer.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import type { Database } from '../../../../storage/platform/sql.js'
import {
  credentialSecretContext,
  insertVaultCredential,
} from '../../../../storage/vault/vault-credentials.js'
import { buildTokensFixture, type TokensFixture } from '../../oauth/tokens/tokens-fixture.js'

let fixture: TokensFixture
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
  const granted = (): TokenAnswer => {
    clock.advance(1)
    const count = sent.length
    return {
      tag: 'granted',
      accessToken: `at-${count}`,
      obtainedAt: clock.now(),
      expiresAt: new Date(clock.now().getTime() + 3_600_000),
      refreshToken: `rt-${count}`,
      scope: null,
      clientAuth: 'basic',
    }
  }
  let holding: { readonly ran: () => void; readonly go: Promise<void> } | null = null
  const held: Database = {
    ...database,
    async tenant(...transaction) {
      const here = holding
      holding = null
      const value = await database.tenant(...transaction)
      here?.ran()
      await here?.go
      return value
    },
  }
  const managed = createManagedTokens({
    database: held,
    clock,
    random,
    sealer,
    log: silentLogger,
    connectionTtlSecs: 600,
    metrics: {
      exported: () => {},
      refreshed: () => {},
      lapsed: () => {},
      rejected: () => {},
    },
    endpoint: {
      async ask({ document: asked }) {
        sent.push('refresh_token' in asked ? String(asked.refresh_token) : '')
        return granted()
      },
      close: async () => {},
    },
  })
  return {
    sent,
    managed,
    async get(rejected?: { obtainedAt: Date; isFresh: boolean }) {
      const outcome = await managed.get(tenantId, credentialId, rejected)
      if (outcome.tag !== 'token') throw new Error(outcome.tag)
      return outcome
    },
    reject: (rejected: { obtainedAt: Date; isFresh: boolean }) =>
      managed.rejected(tenantId, credentialId, rejected),
    /** The next transaction commits, and its caller goes on after `letGo`. */
    holdNext() {
      let ran = () => {}
      let letGo = () => {}
      const committed = new Promise<void>((resolve) => (ran = resolve))
      const go = new Promise<void>((resolve) => (letGo = resolve))
      holding = { ran, go }
      return { committed, letGo }
    },
  }
}

test('a call does not share an attempt that had read its token before the token was rejected', async (t) => {
  const { get, reject, sent, holdNext } = await stage('earlier')
  await get()
  const cached = { ...(await get()), isFresh: false }
  const { committed, letGo } = holdNext()
  const early = get()
  await committed
  t.false(await reject(cached))
  const late = get(cached)
  letGo()
  t.is((await early).accessToken, 'at-1')
  t.is((await late).accessToken, 'at-2')
  t.deepEqual(sent, ['rt-0', 'rt-1'])
})

test('a fresh token that was replaced does not protect its successor from rejections', async (t) => {
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
})
