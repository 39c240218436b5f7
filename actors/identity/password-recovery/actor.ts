/** Sign-up, password reset, password change, invitations and email verification: assembles the handlers. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { lockout } from '../sign-in/lockout.js'
import { mailQuota } from '../sign-in/mail-quota.js'
import { passwords } from '../passwords/protocol.js'
import { browserSessions } from '../sessions/protocol.js'
import { tenants } from '../tenants/protocol.js'
import { changeSteps } from './change.js'
import { invitationSteps } from './invitation.js'
import type { PasswordRecoveryNeeds } from './needs.js'
import { passwordRecovery, type PasswordRecoveryProtocol } from './protocol.js'
import { resetSteps } from './reset.js'
import { signUpSteps } from './sign-up.js'

export const passwordRecoveryActor = defineActor<PasswordRecoveryProtocol, PasswordRecoveryNeeds>({
  address: passwordRecovery,
  asks: { browserSessions, passwords, tenants },
  mailbox: { capacity: 512, inflightMax: 64 },
  // One at a time, so that concurrent requests for one link do not each hash a password.
  lane: {
    resetPassword: ({ token }) => token,
    acceptInvitation: ({ token }) => token,
    finishSignUp: ({ token }) => token,
    changePassword: ({ session }) => session.accountId,
    requestEmailVerification: ({ session }) => session.accountId,
  },
  create: (needs) => {
    const { coordination, settings, clock, email } = needs
    const tools = {
      ...needs,
      lockout: lockout(coordination, settings, clock),
      quota: mailQuota(coordination, email),
    }
    return {
      ...signUpSteps(tools),
      ...resetSteps(tools),
      ...invitationSteps(tools),
      ...changeSteps(tools),
    }
  },
})
