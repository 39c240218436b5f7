/** Users of a tenant: invited, provisioned, and the fixture users of a sandbox. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import { passwords } from '../passwords/protocol.js'
import { fixtures } from './fixtures.js'
import {
  createTenantUser,
  listTenantUsers,
  reactivateTenantUser,
  readTenantUser,
  removeTenantUser,
  sendTenantUserInvitation,
  suspendTenantUser,
  updateTenantUser,
} from './members.js'
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
    mintFixtureUser: ({ caller }) => caller.principal.tenantId,
    rotateFixtureUserPassword: ({ caller }) => caller.principal.tenantId,
    sendTenantUserInvitation: ({ userId }) => userId,
    updateTenantUser: ({ userId }) => userId,
    suspendTenantUser: ({ userId }) => userId,
    reactivateTenantUser: ({ userId }) => userId,
    removeTenantUser: ({ userId }) => userId,
    resetTenantUserPassword: ({ userId }) => userId,
    resetTenantUserFactors: ({ userId }) => userId,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const fixtureSteps = fixtures(needs)
    return {
      listTenantUsers: (message, context) => listTenantUsers(needs, message, context),
      readTenantUser: (message, context) => readTenantUser(needs, message, context),
      createTenantUser: (message, context) => createTenantUser(needs, message, context),
      sendTenantUserInvitation: (message, context) =>
        sendTenantUserInvitation(needs, message, context),
      updateTenantUser: (message, context) => updateTenantUser(needs, message, context),
      suspendTenantUser: (message, context) => suspendTenantUser(needs, message, context),
      reactivateTenantUser: (message, context) => reactivateTenantUser(needs, message, context),
      removeTenantUser: (message, context) => removeTenantUser(needs, message, context),
      ...openSessions(needs),
      ...resets(needs),
      prepareFixture: (_message, context) => fixtureSteps.prepare(context),
      mintFixtureUser: fixtureSteps.mint,
      rotateFixtureUserPassword: fixtureSteps.rotate,
    }
  },
})
