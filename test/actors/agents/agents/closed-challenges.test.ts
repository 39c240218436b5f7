import test from 'ava'
import { closedChallenges } from '../../../../actors/agents/agents/registration.js'
import type { PowChallengeRow } from '../../../../storage/agents/pow-challenges.js'

const row = (id: string, change: Partial<PowChallengeRow>): PowChallengeRow => ({
  id,
  tenantId: 'tenant',
  kind: 'agent',
  status: 'issued',
  challengeToken: 'token',
  difficultyBits: 1,
  minDurationSecs: 0,
  name: 'Agent',
  anchorType: 'did_key',
  did: 'did',
  keyAlgorithm: 'ed25519',
  publicKey: new Uint8Array(),
  fingerprint: 'fingerprint',
  ageMs: 0,
  outlived: false,
  ...change,
})

test('only closed challenges are cached', (t) => {
  const closed = closedChallenges()
  closed.note(row('open', {}))
  closed.note(row('consumed', { status: 'consumed' }))
  closed.note(row('expired', { status: 'expired' }))
  closed.note(row('outlived', { outlived: true }))
  t.is(closed.get('open'), undefined)
  for (const id of ['consumed', 'expired', 'outlived']) t.is(closed.get(id)?.id, id)
})

test('the cache is bounded and evicts the oldest entry', (t) => {
  const closed = closedChallenges()
  for (let count = 0; count <= 4096; count += 1) closed.note(row(`${count}`, { outlived: true }))
  t.is(closed.get('0'), undefined)
  t.not(closed.get('1'), undefined)
  t.not(closed.get('4096'), undefined)
})
