/** Passkeys: assembles the handlers. */
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import { accountFactors } from '../../../storage/identity/passkeys.js'
import { browserSessions } from '../sessions/protocol.js'
import { adaptiveMfa } from '../adaptive-mfa/risk.js'
import { lockout } from '../sign-in/lockout.js'
import { mailQuota } from '../sign-in/mail-quota.js'
import { login } from '../sign-in/protocol.js'
import { federatedLogin } from '../federated-login/protocol.js'
import { ceremonies } from './ceremonies.js'
import type { PasskeysNeeds, PasskeyTools } from './needs.js'
import { ownPasskeys } from './own.js'
import { passkeys, type PasskeysProtocol } from './protocol.js'
import { secondFactorStep } from './second-factor.js'
import { signInStep } from './sign-in.js'
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'

export const passkeysActor = defineActor<PasskeysProtocol, PasskeysNeeds>({
  address: passkeys,
  asks: { login, browserSessions, federatedLogin },
  mailbox: { capacity: 1024, inflightMax: 128 },
  lane: { removeOwnPasskey: ({ session }) => session.accountId },
  // Failures are local to one statement or request. There is no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, coordination, settings, clock, registry } = needs
    const tools: PasskeyTools = {
      ...needs,
      lockout: lockout(coordination, settings, clock),
      adaptive: adaptiveMfa(needs, mailQuota(coordination, needs.email)),
      ceremonies: ceremonies(needs),
      async hasFactor(accountId, context) {
        const { totp, passkey } = await database.system(
          (tx) => accountFactors(tx, accountId),
          context,
        )
        return totp || passkey
      },
    }
    const first = signInStep(tools)
    const second = secondFactorStep(tools)
    const own = ownPasskeys(tools)
    const metrics = passkeyMetrics(registry)
    /** Wraps a handler and counts its outcome. */
    const counted =
      <Message, Reply extends { readonly tag: string }>(
        step: PasskeyStep,
        handle: (message: Message, context: MessageContext) => Promise<Reply>,
      ) =>
      async (message: Message, context: MessageContext): Promise<Reply> => {
        const reply = await handle(message, context)
        metrics.count(step, reply.tag)
        return reply
      }

    return {
      getPasskeySignInOptions: first.options,
      signInWithPasskey: counted('sign_in', first.signInWithPasskey),
      getPasskeySecondFactorOptions: second.options,
      givePasskeySecondFactor: counted('second_factor', second.givePasskeySecondFactor),
      getPasskeyEnrolmentOptions: second.getPasskeyEnrolmentOptions,
      enrolPasskey: counted('enrolment', second.enrolPasskey),
      showNewPasskey: own.page,
      getNewPasskeyOptions: own.options,
      addOwnPasskey: counted('account', own.addOwnPasskey),
      renameOwnPasskey: own.renameOwnPasskey,
      removeOwnPasskey: counted('removal', own.removeOwnPasskey),
    }
  },
})

type PasskeyStep = 'sign_in' | 'second_factor' | 'enrolment' | 'account' | 'removal'

interface PasskeyMetrics {
  /** `outcome` is the tag of the response: signed_in, wrong, locked, added, ... */
  count(step: PasskeyStep, outcome: string): void
}

function passkeyMetrics(registry: Registry): PasskeyMetrics {
  const ceremonies = counter(
    registry,
    'svc_passkey_ceremonies_total',
    'Authenticator responses by outcome.',
    ['step', 'outcome'],
  )
  return { count: (step, outcome) => ceremonies.inc({ step, outcome }) }
}
