/** A passkey as the first factor. The credential identifies the account. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { type PasskeyRow, spendPasskeyCounter } from '../../../storage/identity/passkeys.js'
import { joinByInvitation } from '../organizations/join-by-invitation.js'
import { findAccountSignIn, recordSignIn } from '../../../storage/identity/sign-ins.js'
import { type PersonEvent, personEvent, recordSignInFailure } from '../sessions/events.js'
import { pathOf } from '../sessions/flows.js'
import { acrOf } from '../../domain/assurance.js'
import { quotaAddress } from '../../domain/quota-address.js'
import {
  flowPage,
  offersIn,
  type Progress,
  progressIn,
  readProgress,
  upstreamsOf,
} from '../sign-in/flow.js'
import type { LoginShown } from '../sign-in/protocol.js'
import { openSession } from '../sign-in/session.js'
import type { PasskeyTools } from './needs.js'
import { levelOfPasskey, methodsOfPasskey } from './credential.js'
import { prove } from './proof.js'
import type { Answer, Ceremony, PasskeysProtocol } from './protocol.js'

type Outcome = PasskeysProtocol['signInWithPasskey']['reply']

export function signInStep(tools: PasskeyTools) {
  const { database, clock, random, lockout, ceremonies } = tools

  const bound = ({ flow }: Progress, browser: string) =>
    ({ tenantId: flow.tenantId, purpose: 'sign_in', sessionId: null, browser }) as const

  return {
    async options({ flow, browser, visitor }: Ceremony, context: MessageContext) {
      const progress = await progressIn(tools, flow, visitor.token, context)
      if ('tag' in progress) return progress
      const options = await ceremonies.request(bound(progress, browser), [], context)
      return { tag: 'options', options } as const
    },

    async signInWithPasskey(message: Ceremony & Answer, context: MessageContext): Promise<Outcome> {
      const { flow: token, browser, visitor, credential } = message
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const email = progress.flow.loginHint ?? ''
      const page = flowPage(token, progress.flow)
      const shown: LoginShown = {
        ...page,
        email,
        again: false,
        offers: offersIn(tools.offers, progress.flow),
        upstreams: await upstreamsOf(tools, progress.flow, context),
        captcha: null,
      }
      try {
        const { passkey, signed } = await prove(
          tools,
          bound(progress, browser),
          credential,
          context,
        )
        const name =
          passkey === undefined
            ? `passkey:${quotaAddress(visitor.address)}`
            : `mfa:${passkey.accountId}`
        const attempted = { name, address: visitor.address, signal: context.signal }
        const judged = await lockout.attempt(attempted, async (attempt) => {
          if (passkey !== undefined && signed !== null) {
            const signedIn = await open(progress, passkey, signed, visitor, context)
            if (signedIn !== null) {
              await attempt.succeeded()
              return signedIn
            }
          }
          const locked = await attempt.failed()
          const known = passkey && (await memberOf(progress, passkey, context))
          const { tenantId } = progress.flow
          const { address } = visitor
          await recordSignInFailure(
            tools,
            { tenantId, factor: 'passkey', sub: known?.sub ?? null, locked, address },
            context,
          )
          return null
        })
        if (judged.tag === 'locked') return { ...shown, ...judged }
        return judged.outcome ?? { tag: 'wrong', ...shown }
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return { tag: 'busy' }
        throw error
      }
    },
  }

  function memberOf({ flow }: Progress, { accountId }: PasskeyRow, context: MessageContext) {
    return database.system((tx) => findAccountSignIn(tx, flow.tenantId, accountId), context)
  }

  /**
   * Opens a session in place of the browser's old one. Null: the key is a copy, or the account is not a user of the
   * tenant.
   */
  async function open(
    { flow, token: flowToken }: Progress,
    passkey: PasskeyRow,
    signed: { readonly counter: number; readonly backedUp: boolean },
    visitor: Ceremony['visitor'],
    context: MessageContext,
  ): Promise<Outcome | null> {
    const now = clock.now()
    const { tenantId, tenantSettings } = flow
    const { accountId } = passkey
    const level = levelOfPasskey(passkey)
    const amr = methodsOfPasskey(passkey)
    // Accounts are global, and the session that ends may belong to another tenant.
    const token = await database.system(async (tx) => {
      const person = await findAccountSignIn(tx, tenantId, accountId)
      if (person === undefined) return null
      const { sub, tenantUserId } = person
      const base = { tenantId, sub, requestId: context.requestId }
      if (!(await spendPasskeyCounter(tx, passkey, signed, now))) {
        appendEvents(tx, [personEvent(random, { ...base, ...COPIED }, now)])
        return null
      }
      const newSession = { tenantId, tenantSettings, accountId, pending: false, level, amr }
      const session = await openSession(tx, tools, newSession, visitor, now)
      const inSession = { ...base, sessionId: session.id }
      const { activated } = await recordSignIn(tx, tenantId, tenantUserId, now)
      const newEvents: PersonEvent[] = [
        ...(activated ? [{ ...inSession, type: 'tenant_user.activated' } as const] : []),
        { ...inSession, type: 'auth.login.success', fields: { amr, acr: acrOf(level) } },
      ]
      const joining = { tenantId, accountId, sub, requestId: context.requestId }
      appendEvents(
        tx,
        newEvents.map((event) => personEvent(random, event, now)),
      )
      await joinByInvitation(tx, random, joining, now)
      return session.token
    }, context)
    if (token === null) return null
    const progress = await readProgress(tools, flowToken, token, context)
    const location = pathOf(progress?.step ?? 'login', flowToken, flow.returnTo)
    return { tag: 'signed_in', token, location }
  }
}

/** Two devices use one key, so one of them is a clone (WebAuthn section 6.1.1). */
export const COPIED = {
  type: 'security.suspicious_activity',
  sessionId: null,
  fields: { reason: 'passkey_counter' },
} as const
