/** Manages the applications (OAuth clients) of a tenant. */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import { tenants } from '../../../identity/users/tenants/protocol.js'
import { deleteApplication, rotateApplicationSecret } from './change.js'
import { applications, type ApplicationsProtocol } from './protocol.js'
import { type ApplicationsNeeds, getApplication, listApplications } from './read.js'
import { createApplication, replaceApplication } from './write.js'

export const applicationsActor = defineActor<ApplicationsProtocol, ApplicationsNeeds>({
  address: applications,
  asks: { tenants },
  mailbox: { capacity: 1024, inflightMax: 128 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  handlers: {
    listApplications,
    getApplication,
    createApplication,
    replaceApplication,
    deleteApplication,
    rotateApplicationSecret,
  },
})
