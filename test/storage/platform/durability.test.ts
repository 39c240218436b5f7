import test from 'ava'
import {
  insertAgentChallenges,
  spendAgentChallenges,
} from '../../../storage/agents/agent-challenges.js'
import { touchAgents } from '../../../storage/agents/agents.js'
import type { Database, Statement, Transaction } from '../../../storage/platform/sql.js'
import { identityFixture, registered } from '../../support/identity/identity.js'

const resources = await identityFixture()
test.after.always(() => resources.close())
const { controlPlane, database } = resources

async function waitsForDisk(work: (tx: Transaction) => Promise<unknown>): Promise<boolean> {
  return database.system(async (tx) => {
    await tx.query({ name: 'test.hurry', text: 'set local synchronous_commit = on' })
    await work(tx)
    const { rows } = await tx.query<{ synchronous_commit: string }>({
      name: 'test.hurry_shown',
      text: 'show synchronous_commit',
    })
    return rows[0]?.synchronous_commit === 'on'
  })
}

/** A database whose transactions of one round trip are part of this one. */
function within(tx: Transaction): Database {
  const together = async (_: unknown, [only]: readonly Statement[]) => [await tx.query(only!)]
  return { together } as unknown as Database
}

test('a challenge and a stamp do not wait for the disk, spending a challenge does', async (t) => {
  const { key, agent } = await registered(resources)
  const id = crypto.randomUUID()
  const challenge = {
    id,
    tenantId: controlPlane.id,
    agentId: agent.id,
    fingerprint: key.fingerprint,
    nonce: 'nonce',
    ttlSecs: 60,
  }
  t.false(await waitsForDisk((tx) => insertAgentChallenges(within(tx), [challenge])))
  t.false(
    await waitsForDisk((tx) => touchAgents(within(tx), [{ agentId: agent.id, now: new Date() }])),
  )
  t.true(await waitsForDisk((tx) => spendAgentChallenges(tx, controlPlane.id, [id])))
})
