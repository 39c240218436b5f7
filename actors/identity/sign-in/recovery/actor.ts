/** Sign-up, password reset, password change, invitations and email verification: assembles the handlers. */
import { boundHandlers, defineActor } from '../../../../runtime/kernel/actor.js'
import { passwords } from '../../passwords/protocol.js'
import { browserSessions } from '../sessions/protocol.js'
import { lockout } from '../limits/lockout.js'
import { mailQuota } from '../limits/mail-quota.js'
import { tenants } from '../../users/tenants/protocol.js'
import { changePassword, showPasswordChange } from './change.js'
import { acceptInvitation, showInvitation } from './invitation.js'
import type { PasswordRecoveryNeeds, PasswordRecoveryTools } from './needs.js'
import { passwordRecovery, type PasswordRecoveryProtocol } from './protocol.js'
import {
  requestPasswordReset,
  resetPassword,
  showForgottenPassword,
  showPasswordReset,
} from './reset.js'
import { requestSignUp, showSignUp } from './sign-up.js'
import { finishSignUp, showSignUpLink } from './sign-up-link.js'
import { requestEmailVerification, showEmailVerification, verifyEmail } from './verification.js'

const HANDLERS = {
  showSignUp,
  requestSignUp,
  showSignUpLink,
  finishSignUp,
  showForgottenPassword,
  requestPasswordReset,
  showPasswordReset,
  resetPassword,
  showInvitation,
  acceptInvitation,
  showPasswordChange,
  changePassword,
  requestEmailVerification,
  showEmailVerification,
  verifyEmail,
}

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
  create: (needs) =>
    boundHandlers<PasswordRecoveryProtocol, PasswordRecoveryTools>(HANDLERS, {
      ...needs,
      lockout: lockout(needs.coordination, needs.settings, needs.clock),
      quota: mailQuota(needs.coordination, needs.email),
    }),
})
