/** Makes up fixture users: ordinary people in every respect but that nobody reads their mail. */
import { type ActorRef, defineActor } from '../../runtime/kernel/actor.js'
import type { Random } from '../../runtime/kernel/random.js'
import { type PasswordsProtocol, passwords } from '../passwords/protocol.js'
import { type UsersProtocol, users } from './protocol.js'

/** 144 random bits: nobody types it, a test reads it from the answer. */
const PASSWORD_BYTES = 18
const MAILBOX_BYTES = 5

export type UsersNeeds = { passwords: ActorRef<PasswordsProtocol>; random: Random }

export const usersActor = defineActor<UsersProtocol, UsersNeeds>({
  address: users,
  asks: { passwords },
  mailbox: { capacity: 256, inflightMax: 32 },
  lane: { prepareFixture: () => undefined },
  create: ({ passwords, random }) => ({
    async prepareFixture(_message, turn) {
      const password = random.token(PASSWORD_BYTES)
      const hashed = await passwords.ask('hash', { password }, turn)
      if (hashed.tag === 'busy') return { tag: 'busy' }
      if (hashed.tag === 'unacceptable') throw new Error('a generated password was refused')
      return {
        tag: 'prepared',
        mailbox: `fixture-${Buffer.from(random.bytes(MAILBOX_BYTES)).toString('hex')}`,
        displayName: 'Fixture User',
        password,
        passwordHash: hashed.phc,
      }
    },
  }),
})
