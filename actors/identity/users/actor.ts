/** Users of a tenant: invited, provisioned, and the fixture users of a sandbox. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { passwords } from '../passwords/protocol.js'
import { mintFixtureUser, prepareFixture, rotateFixtureUserPassword } from './fixtures.js'
import { importTenantUsers } from './imports.js'
import {
  createTenantUser,
  exportTenantUsers,
  listTenantUsers,
  reactivateTenantUser,
  readTenantUser,
  removeTenantUser,
  sendTenantUserInvitation,
  suspendTenantUser,
  updateTenantUser,
} from './members.js'
import type { UsersNeeds } from './needs.js'
import { listTenantUserSessions, revokeTenantUserSession } from './open-sessions.js'
import { type UsersProtocol, users } from './protocol.js'
import { resetTenantUserFactors, resetTenantUserPassword } from './resets.js'

export const usersActor = defineActor<UsersProtocol, UsersNeeds>({
  address: users,
  asks: { passwords },
  mailbox: { capacity: 1024, inflightMax: 64 },
  // One mint per tenant at a time, so that concurrent requests do not hash passwords for one free place.
  lane: {
    mintFixtureUser: ({ caller }) => caller.principal.tenantId,
    rotateFixtureUserPassword: ({ caller }) => caller.principal.tenantId,
    importTenantUsers: ({ caller }) => caller.principal.tenantId,
    sendTenantUserInvitation: ({ userId }) => userId,
    updateTenantUser: ({ userId }) => userId,
    suspendTenantUser: ({ userId }) => userId,
    reactivateTenantUser: ({ userId }) => userId,
    removeTenantUser: ({ userId }) => userId,
    resetTenantUserPassword: ({ userId }) => userId,
    resetTenantUserFactors: ({ userId }) => userId,
  },
  supervision: { onFailure: 'resume' },
  handlers: {
    listTenantUsers,
    exportTenantUsers,
    importTenantUsers,
    readTenantUser,
    createTenantUser,
    sendTenantUserInvitation,
    updateTenantUser,
    suspendTenantUser,
    reactivateTenantUser,
    removeTenantUser,
    listTenantUserSessions,
    revokeTenantUserSession,
    resetTenantUserPassword,
    resetTenantUserFactors,
    prepareFixture,
    mintFixtureUser,
    rotateFixtureUserPassword,
  },
})
