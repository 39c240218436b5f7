/** Users of a tenant: invited, provisioned, and the fixture users of a sandbox. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import { passwords } from '../passwords/protocol.js'
import { fixtures } from './fixtures.js'
import { create, invite, list, reactivate, read, remove, suspend, update } from './members.js'
import { openSessions } from './open-sessions.js'
import { type UsersProtocol, users } from './protocol.js'
import { resets } from './resets.js'
import type { UsersNeeds } from './needs.js'

export const usersActor = defineActor<UsersProtocol, UsersNeeds>({
  address: users,
  asks: { passwords, tokens },
  mailbox: { capacity: 1024, inflightMax: 64 },
  // One mint per tenant at a time, so that concurrent requests do not hash passwords for one free place.
  lane: {
    mintFixture: ({ caller }) => caller.principal.tenantId,
    rotateFixture: ({ caller }) => caller.principal.tenantId,
    invite: ({ userId }) => userId,
    update: ({ userId }) => userId,
    suspend: ({ userId }) => userId,
    reactivate: ({ userId }) => userId,
    remove: ({ userId }) => userId,
    resetPassword: ({ userId }) => userId,
    resetFactors: ({ userId }) => userId,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const fixtureSteps = fixtures(needs)
    return {
      list: (message, context) => list(needs, message, context),
      read: (message, context) => read(needs, message, context),
      create: (message, context) => create(needs, message, context),
      invite: (message, context) => invite(needs, message, context),
      update: (message, context) => update(needs, message, context),
      suspend: (message, context) => suspend(needs, message, context),
      reactivate: (message, context) => reactivate(needs, message, context),
      remove: (message, context) => remove(needs, message, context),
      ...openSessions(needs),
      ...resets(needs),
      prepareFixture: (_message, context) => fixtureSteps.prepare(context),
      mintFixture: fixtureSteps.mint,
      rotateFixture: fixtureSteps.rotate,
    }
  },
})
