/** A passkey as the second factor, and its enrolment where a second factor is required. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { listPasskeys, spendPasskeyCounter } from '../../../storage/identity/passkeys.js'
import type { BrowserSessionRow } from '../../../storage/identity/browser-sessions.js'
import { personEvent } from '../sessions/events.js'
import { amrWith, attempted, eventBase, signedIn, verified } from '../sign-in/login-attempt.js'
import {
  flowPage,
  methodsOf,
  onward,
  type Progress,
  progressIn,
  readProgress,
} from '../sign-in/flow.js'
import type { FactorShown, SignedIn } from '../sign-in/protocol.js'
import type { PasskeyTools } from './needs.js'
import { levelOfPasskey, methodsOfPasskey } from './credential.js'
import { prove } from './proof.js'
import type { Answer, Ceremony, PasskeyEnrolled, PasskeysProtocol } from './protocol.js'
import { type Created, registration, storePasskey } from './registration.js'
import { COPIED } from './sign-in.js'

export function secondFactorStep(tools: PasskeyTools) {
  const { database, clock, random, ceremonies, login } = tools
  const { create, verify } = registration(tools)

  const bound = (session: BrowserSessionRow, browser: string, purpose: 'second_factor') =>
    ({ tenantId: session.tenantId, purpose, sessionId: session.id, browser }) as const

  return {
    async options({ flow, browser, visitor }: Ceremony, context: MessageContext) {
      const progress = await progressIn(tools, flow, visitor.token, context)
      if ('tag' in progress) return progress
      const { session, step } = progress
      if (step !== 'mfa' || session === undefined) return onward(progress)
      const { deviceBound } = methodsOf(progress, true)
      const own = await database.system((tx) => listPasskeys(tx, session.accountId), context)
      const allowed = own.filter((passkey) => passkey.deviceBound || !deviceBound)
      const options = await ceremonies.request(
        bound(session, browser, 'second_factor'),
        allowed,
        context,
      )
      return { tag: 'options', options } as const
    },

    async givePasskeySecondFactor(
      message: Ceremony & Answer,
      context: MessageContext,
    ): Promise<PasskeysProtocol['givePasskeySecondFactor']['reply']> {
      const { flow: token, browser, visitor, credential } = message
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { session, step, flow } = progress
      if (step !== 'mfa' || session === undefined) return onward(progress)
      const methods = methodsOf(progress, true)
      const shown: FactorShown = { ...flowPage(token, flow), methods }
      const ours = bound(session, browser, 'second_factor')
      const { passkey, signed } = await prove(tools, ours, credential, context)
      const isTheirs = passkey?.accountId === session.accountId
      const isEnough = passkey !== undefined && (passkey.deviceBound || !methods.deviceBound)
      const fits = isTheirs && isEnough && signed !== null
      const level = fits ? levelOfPasskey(passkey) : 2
      const amr = fits ? amrWith(session, methodsOfPasskey(passkey)) : session.amr
      let copied = false
      const reply = await attempted(tools, progress, session, visitor, context, {
        shown,
        // A passkey with user verification is a complete authentication, so `authTime` is now.
        proof: { level, amr, authTime: clock.now() },
        async succeed(tx, raised, now) {
          if (!fits) return null
          copied = !(await spendPasskeyCounter(tx, passkey, signed, now))
          if (copied) return null
          const newEvents = [verified(session, context, { outcome: 'success', method: 'passkey' })]
          if (session.pending) newEvents.push(signedIn(session, context, amr, level))
          return { newEvents, outcome: { ...raised } satisfies SignedIn }
        },
      })
      if (copied) await recordClonedKey(session, context)
      // Raised, but possibly below the level the flow needs.
      return reply.tag === 'signed_in'
        ? { ...reply, ...(await next(progress, reply, context)) }
        : reply
    },

    async getPasskeyEnrolmentOptions(
      { flow, browser, visitor }: Ceremony,
      context: MessageContext,
    ) {
      const progress = await progressIn(tools, flow, visitor.token, context)
      if ('tag' in progress) return progress
      const { session, step } = progress
      if (step !== 'enroll' || session === undefined) return onward(progress)
      const name = flowPage(flow, progress.flow).tenant.name
      const wanted = { name, deviceBound: progress.flow.level === 3 }
      return { tag: 'options', options: await create(session, browser, wanted, context) } as const
    },

    async enrolPasskey(
      message: Ceremony & Answer & { name: string },
      context: MessageContext,
    ): Promise<PasskeysProtocol['enrolPasskey']['reply']> {
      const { flow: token, browser, visitor, credential, name } = message
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { session, step, flow } = progress
      if (step !== 'enroll' || session === undefined) return onward(progress)
      const created = await verify(session, browser, credential, context)
      const isCopyable = created !== null && flow.level === 3 && !created.deviceBound
      const stored = created === null || isCopyable ? null : await raise(progress, created)
      if (stored !== null && stored.tag !== 'wrong') return stored
      const page = await login.showEnrolment({ flow: token, visitor }, context)
      if (page.tag !== 'page') return page
      return { tag: 'refused', why: isCopyable ? 'copyable' : 'invalid', shown: page }

      async function raise(along: Progress, fresh: Created) {
        const level = levelOfPasskey(fresh)
        const proof = {
          level,
          amr: amrWith(session!, methodsOfPasskey(fresh)),
          authTime: clock.now(),
        }
        const reply = await attempted(tools, along, session!, visitor, context, {
          shown: {},
          proof,
          async succeed(tx, raised, now) {
            const codes = await storePasskey(tx, tools, session!, fresh, name, now)
            if (codes === null) return null
            const fields = { outcome: 'success', method: 'passkey', enrolled: true }
            const page: PasskeyEnrolled = {
              ...flowPage(token, flow),
              tag: 'enrolled',
              token: raised.token,
              recoveryCodes: codes,
              location: raised.location,
            }
            const outcome: PasskeyEnrolled | SignedIn = codes.length === 0 ? raised : page
            return { newEvents: [verified(session!, context, fields)], outcome }
          },
        })
        return reply.tag === 'locked' ? ({ tag: 'wrong' } as const) : reply
      }
    },
  }

  async function next({ token }: Progress, raised: SignedIn, context: MessageContext) {
    const progress = await readProgress(tools, token, raised.token, context)
    return progress === undefined ? {} : { location: onward(progress).location }
  }

  async function recordClonedKey(
    session: BrowserSessionRow,
    context: MessageContext,
  ): Promise<void> {
    const event = { ...eventBase(session, context), type: COPIED.type, fields: COPIED.fields }
    const cloned = personEvent(random, event, clock.now())
    await database.tenant(session.tenantId, (tx) => appendEvents(tx, [cloned]), context)
  }
}
