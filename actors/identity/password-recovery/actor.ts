/** Passwords and addresses of people: the handlers, put together from their subjects. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { lockout } from '../sign-in/lockout.js'
import { mailQuota } from '../sign-in/mail-quota.js'
import { passwords } from '../passwords/protocol.js'
import { tenants } from '../tenants/protocol.js'
import { changeSteps } from './change.js'
import { invitationSteps } from './invitation.js'
import type { CredentialsNeeds } from './needs.js'
import { credentials, type CredentialsProtocol } from './protocol.js'
import { resetSteps } from './reset.js'

export const credentialsActor = defineActor<CredentialsProtocol, CredentialsNeeds>({
  address: credentials,
  asks: { passwords, tenants },
  mailbox: { capacity: 512, inflightMax: 64 },
  // In turn, so that racers for one link do not each hash a password to find it used.
  lane: {
    reset: ({ token }) => token,
    acceptInvitation: ({ token }) => token,
    change: ({ session }) => session.accountId,
    requestVerification: ({ session }) => session.accountId,
  },
  create: (needs) => {
    const { coordination, settings, clock, email } = needs
    const tools = {
      ...needs,
      lockout: lockout(coordination, settings, clock),
      quota: mailQuota(coordination, email),
    }
    return { ...resetSteps(tools), ...invitationSteps(tools), ...changeSteps(tools) }
  },
})
