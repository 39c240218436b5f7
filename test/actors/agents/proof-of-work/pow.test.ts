import test from 'ava'
import { powActor, powPool } from '../../../../actors/agents/proof-of-work/actor.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { openPool } from '../../../../runtime/kernel/threads/pool.js'
import { createAgentKey } from '../../../../runtime/clients/client/agent.js'
import { contract } from '../../../vectors/contract.js'

const compute = openPool<typeof import('../../../../actors/agents/proof-of-work/compute.js')>(
  powPool(2),
)
const actor = spawnInline(powActor, { compute }, { clock: systemClock, cloneMessages: true })
test.after.always(async () => {
  await actor.stop()
  await compute.close()
})
const { ref } = actor
const { challenge_token: challengeToken } = contract.work

test('each proof of a burst gets its own verdict', async (t) => {
  const asks = Array.from({ length: 1000 }, (_, at) => {
    const nonce = at % 4 === 0 ? '13370' : at % 4 === 1 ? '269' : at % 4 === 2 ? '007' : '12'
    return ref.verify({ challengeToken, nonce, difficultyBits: 16 })
  })
  const tags = (await Promise.all(asks)).map(({ tag }) => tag)
  const expected = ['valid', 'invalid', 'malformed', 'invalid'] as const
  t.true(tags.every((tag, at) => tag === expected[at % 4]))
  t.is(compute.stats().failed, 0)
})

for (const algorithm of ['ed25519', 'es256'] as const) {
  test(`an ${algorithm} key registers and logs in through the pool`, async (t) => {
    const agent = createAgentKey(algorithm)
    const target = { issuer: contract.issuer, tenantId: contract.tenant_id }
    const sent = agent.registration(target)
    const verdict = await ref.verifyOwnership({
      ...target,
      publicKey: sent.public_key,
      keyAlgorithm: algorithm,
      proof: sent.key_ownership_proof,
      anchorType: sent.anchor_type,
      anchorValue: sent.anchor_value,
    })
    t.is(verdict.tag, 'valid')
    if (verdict.tag !== 'valid') return
    t.is(verdict.did, agent.did)
    t.deepEqual(verdict.jwk, agent.publicJwk)

    const payload = 'svc-agent-challenge-v1\nfields'
    const claim = {
      publicKey: verdict.rawKey,
      keyAlgorithm: algorithm,
      payload,
      signature: agent.signChallenge(payload),
    }
    t.deepEqual(await ref.verifySignature(claim), { tag: 'valid' })
    const forged = { ...claim, payload: `${payload}!` }
    t.deepEqual(await ref.verifySignature(forged), { tag: 'invalid' })
  })
}

test('a proof for another tenant reports the failed check', async (t) => {
  const agent = createAgentKey()
  const sent = agent.registration({ issuer: contract.issuer, tenantId: contract.tenant_id })
  const verdict = await ref.verifyOwnership({
    issuer: contract.issuer,
    tenantId: '00000000-0000-4000-8000-000000000000',
    publicKey: sent.public_key,
    keyAlgorithm: 'ed25519',
    proof: sent.key_ownership_proof,
    anchorType: 'did_key',
  })
  t.deepEqual(verdict, { tag: 'invalid', reason: 'wrong_signature' })
})
