/** Target 19: proofs of work through the pow actor and its pool, compared with bare hashing. */
import { createHash, randomBytes } from 'node:crypto'
import { powActor, powPool } from '../../actors/agents/proof-of-work/actor.js'
import * as computeModule from '../../actors/agents/proof-of-work/compute.js'
import { createAgentKey } from '../../runtime/clients/client/agent.js'
import { spawnInline } from '../../runtime/kernel/inline.js'
import { inlineCompute, openPool } from '../../runtime/kernel/threads/pool.js'
import { compare, publish, repeat, saturate } from '../harness.js'

const INFLIGHT = 1024
const block = randomBytes(64)
const challengeToken = randomBytes(32).toString('base64url')
let nonce = 0
const proof = () => ({ challengeToken, nonce: String(nonce++), difficultyBits: 20 })

const pool = openPool<typeof import('../../actors/agents/proof-of-work/compute.js')>(powPool(2))
const pooled = spawnInline(powActor, { compute: pool })
const inline = spawnInline(powActor, { compute: inlineCompute(computeModule) })

await publish(
  await compare({
    name: 'proof-of-work verification',
    reference: {
      name: 'createHash of 64 bytes, bare loop',
      run: (ms) => repeat(ms, () => createHash('sha256').update(block).digest()),
    },
    contenders: [
      {
        name: `pow actor, pool of one thread, ${INFLIGHT} in flight`,
        target: 0.2,
        by: 'cpu',
        run: (ms) => saturate(ms, INFLIGHT, () => pooled.ref.verify(proof())),
      },
      {
        name: 'pow actor, computed in place',
        run: (ms) => saturate(ms, 64, () => inline.ref.verify(proof())),
      },
      {
        name: 'the pure function',
        run: (ms) => repeat(ms, () => computeModule.work(proof())),
      },
    ],
  }),
)

for (const algorithm of ['ed25519', 'es256'] as const) {
  const agent = createAgentKey(algorithm)
  const target = {
    issuer: 'https://auth.example',
    tenantId: '11111111-2222-4333-8444-555555555555',
  }
  const sent = agent.registration(target)
  const claim = {
    ...target,
    publicKey: sent.public_key,
    keyAlgorithm: algorithm,
    proof: sent.key_ownership_proof,
    anchorType: sent.anchor_type,
  }
  await publish(
    await compare({
      name: `${algorithm} key-ownership proofs`,
      reference: {
        name: 'the pure function',
        run: (ms) => repeat(ms, () => computeModule.ownership(claim), 10),
      },
      contenders: [
        {
          name: 'pow actor, pool of one thread, 256 in flight',
          run: (ms) => saturate(ms, 256, () => pooled.ref.verifyOwnership(claim)),
        },
      ],
    }),
  )
}

await pooled.stop()
await inline.stop()
await pool.close()
