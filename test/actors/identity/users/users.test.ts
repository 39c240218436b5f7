import { NO_LETTERS } from '../../../support/operations/mail.js'
import type { TokensProtocol } from '../../../../actors/oauth/tokens/protocol.js'
import test from 'ava'
import type {
  HashOutcome,
  PasswordsProtocol,
} from '../../../../actors/identity/passwords/protocol.js'
import { usersActor } from '../../../../actors/identity/users/actor.js'
import { fixtureEmail } from '../../../../actors/identity/users/protocol.js'
import type { ActorRef } from '../../../../runtime/kernel/actor.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import type { Database } from '../../../../storage/platform/sql.js'

function spawn(outcome: HashOutcome) {
  const seen: string[] = []
  const passwords = {
    hash: async ({ password }: { password: string }) => {
      seen.push(password)
      return outcome
    },
  } as unknown as ActorRef<PasswordsProtocol>
  const clock = systemClock
  const random = systemRandom(clock)
  // Preparing a fixture user does not use the database.
  const database = {} as Database
  // Preparing one ends no tokens.
  const tokens = {} as ActorRef<TokensProtocol>
  const needs = { database, clock, random, passwords, tokens, ...NO_LETTERS }
  return { ref: spawnInline(usersActor, needs).ref, seen }
}

test('a fixture user gets its own mailbox and password, with the matching hash', async (t) => {
  const { ref, seen } = spawn({ tag: 'hashed', phc: '$argon2id$' })
  const first = await ref.prepareFixture({})
  const second = await ref.prepareFixture({})
  if (first.tag !== 'prepared' || second.tag !== 'prepared') return t.fail()
  t.deepEqual(seen, [first.password, second.password])
  t.not(first.password, second.password)
  t.not(first.mailbox, second.mailbox)
  t.is(Buffer.from(first.password, 'base64url').length, 18)
  t.is(first.passwordHash, '$argon2id$')
})

test('busy password workers are reported as busy', async (t) => {
  const { ref } = spawn({ tag: 'busy' })
  t.deepEqual(await ref.prepareFixture({}), { tag: 'busy' })
})

test('the address of a fixture user is under a domain without mail delivery', (t) => {
  t.is<string, string>(fixtureEmail('fixture-1', 'acme-sandbox'), 'fixture-1@acme-sandbox.test')
})
