import test from 'ava'
import {
  judgeOwnership,
  judgeSignature,
} from '../../../../actors/agents/proof-of-work/signatures.js'
import {
  agentKeyFromJwk,
  createAgentKey,
  openAgentKey,
} from '../../../../runtime/clients/client/agent.js'
import { contract } from '../../../vectors/contract.js'

const target = { issuer: contract.issuer, tenantId: contract.tenant_id }

test('the published key makes the published registration', (t) => {
  const { key, ownership } = contract
  const d = Buffer.from(key.secret_hex, 'hex').toString('base64url')
  const agent = agentKeyFromJwk({ kty: 'OKP', crv: 'Ed25519', d, x: key.public_key })
  t.is(agent.fingerprint, key.fingerprint)
  t.deepEqual(agent.registration(target), {
    anchor_type: 'did_key',
    anchor_value: key.did,
    public_key: key.public_key,
    key_algorithm: 'ed25519',
    key_ownership_proof: ownership.key_ownership_proof,
  })
})

for (const algorithm of ['ed25519', 'es256'] as const) {
  test(`a fresh ${algorithm} key registers and signs challenges, also after export and import`, (t) => {
    const fresh = createAgentKey(algorithm)
    for (const agent of [fresh, openAgentKey(fresh.exportPem())]) {
      t.is(agent.did, fresh.did)
      const sent = agent.registration(target)
      const verdict = judgeOwnership({
        ...target,
        publicKey: sent.public_key,
        keyAlgorithm: sent.key_algorithm,
        proof: sent.key_ownership_proof,
        anchorType: sent.anchor_type,
        anchorValue: sent.anchor_value,
      })
      t.is(verdict.tag, 'valid')
      if (verdict.tag !== 'valid') return
      t.is(verdict.fingerprint, agent.fingerprint)
      const signature = agent.signChallenge('a payload')
      const { rawKey: publicKey } = verdict
      const claim = { publicKey, keyAlgorithm: algorithm, payload: 'a payload', signature }
      t.is(judgeSignature(claim), 'valid')
    }
  })
}

test('a key of another kind is refused', (t) => {
  const d = Buffer.alloc(32, 1).toString('base64url')
  t.throws(() => agentKeyFromJwk({ kty: 'OKP', crv: 'X25519', d, x: d }))
})
