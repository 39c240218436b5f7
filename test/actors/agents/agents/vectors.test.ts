/** The published test vectors, verified through the actor and the database. */
import test from 'ava'
import { insertPowChallenges } from '../../../../storage/agents/pow-challenges.js'
import { identityFixture } from '../../../support/identity/identity.js'
import { sql } from '../../../support/storage/sql.js'
import { contract } from '../../../vectors/contract.js'

const resources = await identityFixture()
test.after.always(() => resources.close())
const { agents, database } = resources
const { key, ownership, work, challenge } = contract
const tenantId = contract.tenant_id

test.before(async () => {
  const organization = crypto.randomUUID()
  await sql(
    database,
    `insert into organizations values ($1, 'Vectors', 'vectors', 'active', now(), now())`,
    [organization],
  )
  await sql(
    database,
    `insert into tenants (id, organization_id, name, slug, environment, admit_agents, created_at,
       updated_at) values ($1, $2, 'Vectors', 'vectors', 'sandbox', true, now(), now())`,
    [tenantId, organization],
  )
})

test.serial('the published ownership proof starts a registration', async (t) => {
  const outcome = await agents.startAgentRegistration({
    kind: 'agent',
    registration: {
      name: 'Vector',
      anchorType: 'did_key',
      publicKey: key.public_key,
      keyAlgorithm: 'ed25519',
      keyOwnershipProof: ownership.key_ownership_proof,
    },
    tenant: { tenantId },
  })
  t.is(outcome.tag, 'started')
})

test.serial('the published proof of work of 20 bits completes it', async (t) => {
  const nonce = work.smallest.find((proof) => proof.difficulty_bits === 20)!.nonce
  await database.tenant(tenantId, (tx) =>
    insertPowChallenges(tx, [
      {
        id: challenge.challenge_id,
        tenantId,
        kind: 'agent',
        challengeToken: work.challenge_token,
        difficultyBits: 20,
        minDurationSecs: 0,
        name: 'Vector',
        anchorType: 'did_key',
        did: key.did,
        keyAlgorithm: 'ed25519',
        publicKey: new Uint8Array(Buffer.from(key.public_key, 'base64url')),
        fingerprint: key.fingerprint,
        ttlSecs: 60,
      },
    ]),
  )
  const complete = (sent: string) =>
    agents.completeAgentRegistration({ challengeId: challenge.challenge_id, nonce: sent })
  t.is((await complete('13370')).tag, 'invalid_proof')
  const outcome = await complete(nonce)
  t.like(outcome, {
    tag: 'registered',
    agent: { did: key.did, tenantId },
    key: { id: key.fingerprint, publicKey: key.public_key },
  })
})
