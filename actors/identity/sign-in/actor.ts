/** Sign-in: assembles the handlers of its steps. */
import { boundHandlers, defineActor } from '../../../runtime/kernel/actor.js'
import { counted, counter } from '../../platform/metrics.js'
import { federatedLogin } from './ways/federated/protocol.js'
import { passwords } from '../passwords/protocol.js'
import { browserSessions } from './sessions/protocol.js'
import { tenants } from '../users/tenants/protocol.js'
import {
  requestSignInMail,
  showMagicLink,
  showSignInMail,
  signInWithMagicLink,
  signInWithMailCode,
} from './ways/mail.js'
import { acceptOperatorInvite } from './operators/invite.js'
import { acceptOperatorInviteLetter, readOperatorInviteLetter } from './operators/invite-letter.js'
import { limitsOf } from './limits/limits-of.js'
import type { SignInActorNeeds, SignInActorTools } from './needs.js'
import { showSignIn, signIn } from './ways/password.js'
import { login, type SignInProtocol } from './protocol.js'
import {
  enrolSecondFactor,
  giveSecondFactor,
  requestConfirmationMail,
  showEnrolment,
  showSecondFactor,
} from './second-factors/second-factor.js'
import { signOut } from './sign-out.js'

const HANDLERS = {
  showSignIn,
  signIn: counted('password', signIn),
  requestSignInMail: counted('mail', requestSignInMail),
  showSignInMail,
  signInWithMailCode: counted('mail_code', signInWithMailCode),
  showMagicLink,
  signInWithMagicLink: counted('mail_link', signInWithMagicLink),
  showSecondFactor,
  giveSecondFactor: counted('second_factor', giveSecondFactor),
  requestConfirmationMail,
  showEnrolment,
  enrolSecondFactor: counted('enrolment', enrolSecondFactor),
  acceptOperatorInvite: counted('invite', acceptOperatorInvite),
  readOperatorInviteLetter,
  acceptOperatorInviteLetter: counted('invite', acceptOperatorInviteLetter),
  signOut,
}

export const signInActor = defineActor<SignInProtocol, SignInActorNeeds>({
  address: login,
  asks: { passwords, tenants, browserSessions, federatedLogin },
  mailbox: { capacity: 1024, inflightMax: 256 },
  lane: {
    // One at a time, so that concurrent requests for one invite do not each hash a password.
    acceptOperatorInvite: ({ token }) => token,
    acceptOperatorInviteLetter: ({ token }) => token,
  },
  create(needs) {
    return boundHandlers<SignInProtocol, SignInActorTools>(HANDLERS, {
      ...needs,
      ...limitsOf(needs),
      outcomes: counter(
        needs.registry,
        'svc_sign_in_steps_total',
        'Submitted forms of the sign-in pages by outcome.',
        ['step', 'outcome'],
      ),
    })
  },
})
