/** Delegated callers, people, limits and clocks, tested on the actor. */
import test from 'ava'
import type { Principal } from '../../../../actors/domain/principal.js'
import { sshCertificatesActor } from '../../../../actors/vault/ssh-certificates/actor.js'
import { connectCalls } from '../../../../actors/vault/vault/connections/needs.js'
import { ShareCounts } from '../../../../runtime/kernel/fairness/fair-share.js'
import { vaultActor } from '../../../../actors/vault/vault/actor.js'
import type { ListCursor } from '../../../../actors/domain/paging.js'
import type { CreateCredential } from '../../../../actors/vault/vault/protocol.js'
import { inlineCompute } from '../../../../runtime/kernel/threads/pool.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import * as compute from '../../../../actors/vault/ssh-certificates/compute.js'
import { insertVaultGrant } from '../../../../storage/vault/vault-grants.js'
import {
  buildTokensFixture,
  ISSUER,
  type TokensFixture,
} from '../../oauth/tokens/tokens-fixture.js'

let fixture: TokensFixture
let signer: ReturnType<typeof spawnSigner>
let actor: ReturnType<typeof spawn>
const options = { cloneMessages: true }
const spawnSigner = () =>
  spawnInline(
    sshCertificatesActor,
    {
      ...fixture,
      compute: inlineCompute(compute),
      metrics: { signed: () => undefined },
      settings: { ssh_default_validity_secs: 300, ssh_max_validity_secs: 3_600 },
    },
    options,
  )
const spawn = (most = 0) =>
  spawnInline(
    vaultActor,
    {
      ...fixture,
      sshCertificates: signer.ref,
      changed: async () => undefined,
      fetch: () => Promise.reject(new Error('no provider')),
      calls: connectCalls(new ShareCounts()),
      groups: { of: () => [] },
      urlFaultOf: () => undefined,
      settings: { max_credentials_per_tenant: most },
    },
    options,
  )
test.before(async () => {
  fixture = await buildTokensFixture()
  signer = spawnSigner()
  actor = spawn()
})
test.after.always(async () => {
  await actor?.stop()
  await signer?.stop()
  await fixture?.close()
})

const principal = (tenantId: string, more: Partial<Principal> = {}): Principal => ({
  subject: 'owner',
  subjectType: 'agent',
  tenantId,
  organizationId: null,
  clientId: 'owner',
  scopes: ['vault:manage', 'vault:list'],
  audience: [ISSUER],
  actors: [],
  delegationId: null,
  sessionId: null,
  acr: null,
  authTimeSecs: null,
  jkt: null,
  tokenId: 'token',
  expiresAtSecs: 0,
  ...more,
})
/** An agent that acts for a human. */
const delegated = (tenantId: string, agentId: string, delegationId: string | null = null) =>
  principal(tenantId, {
    subject: 'human',
    subjectType: 'human',
    actors: [{ sub: agentId, subjectType: 'agent' }],
    delegationId,
  })

const draft = (who: Principal, more: Partial<CreateCredential> = {}): CreateCredential => ({
  caller: { principal: who, address: '192.0.2.1' },
  provider: 'openai',
  credentialType: 'api_key',
  label: 'key',
  authScheme: 'bearer',
  allowedHosts: ['api.example'],
  secret: 's3cret',
  nonExportable: false,
  metadata: {},
  tokenOf: null,
  idempotency: null,
  ...more,
})
async function create(who: Principal, more: Partial<CreateCredential> = {}): Promise<string> {
  const outcome = await actor.ref.createVaultCredential(draft(who, more))
  if (outcome.tag !== 'created') throw new Error(outcome.tag)
  return outcome.credential.id
}
/** Grants to delegations. */
const grant = (
  tenantId: string,
  credentialId: string,
  granteeType: 'agent' | 'delegation',
  granteeId: string,
  more: { capabilities?: ('list' | 'use' | 'sign')[]; expiresAt?: Date } = {},
) =>
  fixture.database.tenant(tenantId, (tx) =>
    insertVaultGrant(tx, {
      id: fixture.random.uuid(),
      tenantId,
      credentialId,
      granteeType,
      granteeId,
      capabilities: more.capabilities ?? ['list', 'use'],
      snapshot: {
        credential_type: 'api_key',
        auth_scheme: 'bearer',
        allowed_hosts: ['api.example'],
        non_exportable: false,
      },
      methods: null,
      pathPrefixes: null,
      allowRange: true,
      approval: 'none',
      maxRequests: null,
      maxBytes: null,
      budget: null,
      expiresAt: more.expiresAt ?? null,
      createdAt: fixture.clock.now(),
    }),
  )
const listed = async (who: Principal, limit = 50, after: ListCursor | null = null) => {
  const outcome = await actor.ref.listVaultCredentials({ principal: who, limit, after })
  return { ids: outcome.credentials.map(({ id }) => id), next: outcome.next, outcome }
}

test.serial('the list contains active grants to the agent and its delegation', async (t) => {
  const tenantId = await fixture.tenant('listed')
  const owner = principal(tenantId)
  const names = ['agent', 'delegation', 'expired', 'use only', 'other', 'leased', 'revoked']
  const ids: Record<string, string> = {}
  for (const name of names) ids[name] = await create(owner, { label: name })
  const soon = new Date(fixture.clock.now().getTime() + 60_000)
  await grant(tenantId, ids['agent']!, 'agent', 'helper')
  await grant(tenantId, ids['delegation']!, 'delegation', 'deleg')
  await grant(tenantId, ids['expired']!, 'agent', 'helper', { expiresAt: soon })
  await grant(tenantId, ids['use only']!, 'agent', 'helper', { capabilities: ['use'] })
  await grant(tenantId, ids['other']!, 'agent', 'other-agent')
  await grant(tenantId, ids['revoked']!, 'agent', 'helper')
  const helper = delegated(tenantId, 'helper', 'deleg')
  const set = (...labels: string[]) => labels.map((label) => ids[label]).toSorted()
  const seen = async (who: Principal) => (await listed(who)).ids.toSorted()
  t.deepEqual(await seen(helper), set('agent', 'delegation', 'expired', 'revoked'))
  t.deepEqual(await seen(delegated(tenantId, 'helper')), set('agent', 'expired', 'revoked'))
  t.deepEqual(await seen(delegated(tenantId, 'unknown-agent', 'deleg')), set('delegation'))
  t.deepEqual(await seen(delegated(tenantId, 'unknown-agent')), [])
  // The person of the delegation has no grant.
  const human = { subject: 'human', subjectType: 'human', scopes: ['vault:list'] } as const
  t.deepEqual(await seen(principal(tenantId, human)), [])

  const caller = { principal: owner, address: '192.0.2.1' }
  await actor.ref.revokeVaultCredential({ caller, credentialId: ids['revoked']! })
  fixture.clock.advance(60_000)
  t.deepEqual(await seen(helper), set('agent', 'delegation'))

  const elsewhere = await fixture.tenant('elsewhere')
  t.deepEqual(await seen(delegated(elsewhere, 'helper', 'deleg')), [])
})

test.serial('the recipient of a lease sees the credential', async (t) => {
  const tenantId = await fixture.tenant('leased')
  const owner = principal(tenantId)
  const { id: agentId } = await fixture.agent(tenantId)
  const credentialId = await create(owner)
  const caller = { principal: owner, address: '192.0.2.1' }
  const lease = await actor.ref.createVaultLease({
    caller,
    credentialId,
    recipientId: agentId,
    byteBudget: 10,
    expiresAt: null,
    idempotency: null,
  })
  if (lease.tag !== 'created') return t.fail(lease.tag)
  t.deepEqual((await listed(delegated(tenantId, agentId))).ids, [credentialId])
  await actor.ref.revokeVaultLease({ caller, leaseId: lease.lease.id })
  t.deepEqual((await listed(delegated(tenantId, agentId))).ids, [])
})

test.serial('pages come newest first and without gaps', async (t) => {
  const tenantId = await fixture.tenant('paged')
  const owner = principal(tenantId)
  const all: string[] = []
  for (let index = 0; index < 5; index += 1) {
    const id = await create(owner)
    await grant(tenantId, id, 'agent', 'helper')
    all.push(id)
    if (index % 2 === 0) fixture.clock.advance(1_000)
  }
  const helper = delegated(tenantId, 'helper')
  const got: string[] = []
  let after: ListCursor | null = null
  do {
    const page: Awaited<ReturnType<typeof listed>> = await listed(helper, 2, after)
    got.push(...page.ids)
    after = page.next
  } while (after !== null)
  // At the same time, the greater id comes first; ids start with their time.
  t.deepEqual(got, all.toSorted().toReversed())
})

test.serial('the limit of active credentials holds under concurrency', async (t) => {
  const tenantId = await fixture.tenant('full')
  const owner = principal(tenantId)
  const small = spawn(2)
  t.teardown(() => small.stop())
  const outcomes = await Promise.all(
    Array.from({ length: 6 }, () => small.ref.createVaultCredential(draft(owner))),
  )
  const made = outcomes.flatMap((outcome) => (outcome.tag === 'created' ? [outcome] : []))
  t.is(made.length, 2)
  t.is(outcomes.filter(({ tag }) => tag === 'full').length, 4)
  const caller = { principal: owner, address: '192.0.2.1' }
  await small.ref.revokeVaultCredential({ caller, credentialId: made[0]!.credential.id })
  t.is((await small.ref.createVaultCredential(draft(owner))).tag, 'created')
})

test.serial('a human reads a secret only after a fresh sign-in with two factors', async (t) => {
  const tenantId = await fixture.tenant('fresh')
  const human = (acr: string | null, ageSecs: number) =>
    principal(tenantId, {
      subject: 'human',
      subjectType: 'human',
      acr,
      authTimeSecs: fixture.clock.nowSecs() - ageSecs,
    })
  const credentialId = await create(human('aal2', 0))
  const read = async (who: Principal) =>
    (
      await actor.ref.readVaultCredentialSecret({
        caller: { principal: who, address: '' },
        credentialId,
      })
    ).tag
  t.is(await read(human('aal2', 299)), 'secret')
  t.is(await read(human('aal3', 0)), 'secret')
  t.is(await read(human('aal2', 301)), 'step_up')
  t.is(await read(human('aal1', 0)), 'step_up')
  t.is(await read(human(null, 0)), 'step_up')
  // An agent with the same id is not the owner.
  t.is(await read(principal(tenantId, { subject: 'human' })), 'denied')
})

test.serial('rotating the data key of the tenant leaves every secret readable', async (t) => {
  const tenantId = await fixture.tenant('rotated')
  const owner = principal(tenantId)
  const before = await create(owner)
  await fixture.sealer.rotate(tenantId)
  const after = await create(owner, { secret: 'newer' })
  const read = (credentialId: string) =>
    actor.ref.readVaultCredentialSecret({ caller: { principal: owner, address: '' }, credentialId })
  t.like(await read(before), { tag: 'secret', secret: 's3cret' })
  t.like(await read(after), { tag: 'secret', secret: 'newer' })
})
