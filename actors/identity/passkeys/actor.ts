/** Passkeys: the handlers, put together from their steps. */
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import { accountFactors } from '../../../storage/identity/passkeys.js'
import { browserSessions } from '../sessions/protocol.js'
import { lockout } from '../sign-in/lockout.js'
import { login } from '../sign-in/protocol.js'
import { sso } from '../federated-login/protocol.js'
import { ceremonies } from './ceremonies.js'
import { type PasskeyStep, passkeyMetrics } from './metrics.js'
import type { PasskeysNeeds, PasskeyTools } from './needs.js'
import { ownPasskeys } from './own.js'
import { passkeys, type PasskeysProtocol } from './protocol.js'
import { secondFactorStep } from './second-factor.js'
import { signInStep } from './sign-in.js'

export const passkeysActor = defineActor<PasskeysProtocol, PasskeysNeeds>({
  address: passkeys,
  asks: { login, browserSessions, sso },
  mailbox: { capacity: 1024, inflightMax: 128 },
  lane: { remove: ({ session }) => session.accountId },
  // A failure is one statement's or one request's: there is no state that a restart would mend.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, coordination, settings, clock, registry } = needs
    const tools: PasskeyTools = {
      ...needs,
      lockout: lockout(coordination, settings, clock),
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
    /** The handler of an answer, counted by what comes of it. */
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
      signInOptions: first.options,
      signIn: counted('sign_in', first.signIn),
      secondFactorOptions: second.options,
      secondFactor: counted('second_factor', second.secondFactor),
      enrolmentOptions: second.enrolmentOptions,
      enrol: counted('enrolment', second.enrol),
      addPage: own.page,
      addOptions: own.options,
      add: counted('account', own.add),
      rename: own.rename,
      remove: counted('removal', own.remove),
    }
  },
})
