/** Passkeys: assembles the handlers. */
import { boundHandlers, defineActor } from '../../../../../runtime/kernel/actor.js'
import { counted } from '../../../../platform/metrics.js'
import { federatedLogin } from '../federated/protocol.js'
import { browserSessions } from '../../sessions/protocol.js'
import { limitsOf } from '../../limits/limits-of.js'
import { login } from '../../protocol.js'
import { ceremonies, ceremonyOutcomes } from './ceremonies.js'
import { enrolPasskey, getPasskeyEnrolmentOptions } from './enrolment.js'
import type { PasskeysNeeds, PasskeyTools } from './needs.js'
import {
  addOwnPasskey,
  getNewPasskeyOptions,
  getPasskeyEndpoints,
  getRelatedOrigins,
  removeOwnPasskey,
  renameOwnPasskey,
  showNewPasskey,
} from './own.js'
import { passkeys, type PasskeysProtocol } from './protocol.js'
import { getPasskeySecondFactorOptions, givePasskeySecondFactor } from './second-factor.js'
import { getPasskeySignInOptions, signInWithPasskey } from './sign-in.js'
import { createConditionalPasskey, syncPasskeys } from './sync.js'

const HANDLERS = {
  getPasskeyEndpoints,
  getRelatedOrigins,
  getPasskeySignInOptions,
  signInWithPasskey: counted('sign_in', signInWithPasskey),
  getPasskeySecondFactorOptions,
  givePasskeySecondFactor: counted('second_factor', givePasskeySecondFactor),
  getPasskeyEnrolmentOptions,
  enrolPasskey: counted('enrolment', enrolPasskey),
  showNewPasskey,
  getNewPasskeyOptions,
  addOwnPasskey: counted('account', addOwnPasskey),
  renameOwnPasskey,
  removeOwnPasskey: counted('removal', removeOwnPasskey),
  syncPasskeys,
  createConditionalPasskey: counted('conditional', createConditionalPasskey),
}

export const passkeysActor = defineActor<PasskeysProtocol, PasskeysNeeds>({
  address: passkeys,
  asks: { login, browserSessions, federatedLogin },
  mailbox: { capacity: 1024, inflightMax: 128 },
  lane: { removeOwnPasskey: ({ session }) => session.accountId },
  // Failures are local to one statement or request. There is no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create(needs) {
    return boundHandlers<PasskeysProtocol, PasskeyTools>(HANDLERS, {
      ...needs,
      ...limitsOf(needs),
      ceremonies: ceremonies(needs),
      outcomes: ceremonyOutcomes(needs.registry),
    })
  },
})
