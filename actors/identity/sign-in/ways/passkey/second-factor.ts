/** A passkey as the second factor. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { appendEvents } from '../../../../../storage/platform/outbox.js'
import {
  listPasskeys,
  type PasskeyRow,
  spendPasskeyCounter,
} from '../../../../../storage/identity/passkeys.js'
import type { BrowserSessionRow } from '../../../../../storage/identity/browser-sessions.js'
import { personEvent } from '../../../../platform/people/person-events.js'
import { amrWith, attempted, eventBase, signedIn, verified } from '../../second-factors/attempt.js'
import { flowPage, methodsOf, onward, readProgress, sessionAt } from '../../flow/progress.js'
import type { FactorShown, SignedIn } from '../../protocol.js'
import type { PasskeyHandler, PasskeyTools } from './needs.js'
import { levelOfPasskey, methodsOfPasskey } from './credential.js'
import { COPIED, prove } from './proof.js'
import { inTenant } from '../../../../platform/in-tenant.js'

const bound = ({ tenantId, id }: BrowserSessionRow, browser: string) =>
  ({ tenantId, purpose: 'second_factor', sessionId: id, browser }) as const

const isFactor = (passkey: PasskeyRow, deviceBound: boolean) =>
  passkey.userVerified && (passkey.deviceBound || !deviceBound)

export const getPasskeySecondFactorOptions: PasskeyHandler<
  'getPasskeySecondFactorOptions'
> = async (tools, message, context) => {
  const progress = await sessionAt(tools, 'mfa', message, context)
  if ('tag' in progress) return progress
  const { session } = progress
  const { deviceBound } = methodsOf(progress, true)
  const own = await tools.database.system((tx) => listPasskeys(tx, session.accountId), context)
  const allowed = own.filter((passkey) => isFactor(passkey, deviceBound))
  const options = await tools.ceremonies.request(bound(session, message.browser), allowed, context)
  return { tag: 'options', options }
}

export const givePasskeySecondFactor: PasskeyHandler<'givePasskeySecondFactor'> = async (
  tools,
  message,
  context,
) => {
  const progress = await sessionAt(tools, 'mfa', message, context)
  if ('tag' in progress) return progress
  const { session, token, flow } = progress
  const { browser, visitor, credential } = message
  const methods = methodsOf(progress, true)
  const shown: FactorShown = { ...flowPage(token, flow), methods, passkeys: true }
  const { passkey, signed } = await prove(tools, bound(session, browser), credential, context)
  const isTheirs = passkey?.accountId === session.accountId
  const isEnough = passkey !== undefined && isFactor(passkey, methods.deviceBound)
  const fits = isTheirs && isEnough && signed !== null
  const level = fits ? levelOfPasskey(passkey, signed) : 2
  const amr = fits ? amrWith(session, methodsOfPasskey(passkey, signed)) : session.amr
  let copied = false
  const reply = await attempted(
    tools,
    progress,
    visitor,
    {
      shown,
      // A passkey with user verification is a complete authentication, so `authTime` is now.
      proof: { level, amr, authTime: tools.clock.now() },
      async succeed(tx, raised, now) {
        if (!fits) return null
        copied = !(await spendPasskeyCounter(tx, passkey, signed, now))
        if (copied) return null
        const newEvents = [verified(session, { outcome: 'success', method: 'passkey' }, context)]
        if (session.pending) newEvents.push(signedIn(session, amr, level, context))
        return { newEvents, outcome: { ...raised } satisfies SignedIn }
      },
    },
    context,
  )
  if (copied) await recordClonedKey(tools, session, context)
  if (reply.tag !== 'signed_in') return reply
  // Raised, but possibly below the level the flow needs.
  const next = await readProgress(tools, token, reply.token, context)
  if (next === undefined || next.step === 'done') return reply
  return { ...reply, location: onward(next).location }
}

async function recordClonedKey(
  { database, clock, random }: PasskeyTools,
  session: BrowserSessionRow,
  context: MessageContext,
): Promise<void> {
  const { type, fields } = COPIED
  const cloned = personEvent(random, { ...eventBase(session, context), type, fields }, clock.now())
  await inTenant(database, session.tenantId, context, (tx) => appendEvents(tx, [cloned]))
}
