/**
 * Connected accounts: a person approves a request on a page, signs in at the provider, and comes back with a code.
 *
 * States: pending -> active, denied or expired; active -> needs_reauthorization -> active; all of them -> revoked. Each
 * transition is one conditional statement.
 */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import { browserSessions } from '../../../identity/sign-in/sessions/protocol.js'
import { finishConnect } from './callback.js'
import {
  connectionsOfPerson,
  deleteConnection,
  disconnectOwn,
  getConnection,
  listConnections,
} from './manage.js'
import type { ConnectionsNeeds } from './needs.js'
import { approveConnect, denyConnect, showConnect } from './page.js'
import { connections, type ConnectionsProtocol } from './protocol.js'
import { requestConnection } from './request.js'

export const connectionsActor = defineActor<ConnectionsProtocol, ConnectionsNeeds>({
  address: connections,
  asks: { browserSessions },
  mailbox: { capacity: 1024, inflightMax: 128 },
  lane: { approveConnect: ({ code }) => code, denyConnect: ({ code }) => code },
  // The handlers share no state, so a restart after a failure would change nothing.
  supervision: { onFailure: 'resume' },
  handlers: {
    requestConnection,
    listConnections,
    getConnection,
    deleteConnection,
    showConnect,
    approveConnect,
    denyConnect,
    finishConnect,
    connectionsOfPerson,
    disconnectOwn,
  },
})
