/** A passkey as the first factor. The credential identifies the account. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { appendEvents } from '../../../../../storage/platform/outbox.js'
import { type PasskeyRow, spendPasskeyCounter } from '../../../../../storage/identity/passkeys.js'
import { findAccountSignIn } from '../../../../../storage/identity/sign-ins.js'
import { type PersonEvent, personEvent } from '../../../../platform/people/person-events.js'
import { acrOf } from '../../../../domain/assurance.js'
import { quotaAddress } from '../../../../domain/quota-address.js'
import { flowPage, type Progress, progressIn, readProgress } from '../../flow/progress.js'
import {
  attemptFirstFactor,
  challengeMethods,
  recordFirstFactor,
  signedInAt,
} from '../../first-factor.js'
import type { SignedIn } from '../../protocol.js'
import { openSession } from '../../sessions/open-session.js'
import { loginShown } from '../ways-in.js'
import type { PasskeyHandler, PasskeyTools } from './needs.js'
import { levelOfPasskey, methodsOfPasskey, type Signed } from './credential.js'
import { COPIED, prove } from './proof.js'
import type { Ceremony, PasskeyEnrolled } from './protocol.js'
import { codesFor } from './registration.js'

const bound = ({ flow }: Progress, browser: string) =>
  ({ tenantId: flow.tenantId, purpose: 'sign_in', sessionId: null, browser }) as const

export const getPasskeySignInOptions: PasskeyHandler<'getPasskeySignInOptions'> = async (
  tools,
  { flow, browser, visitor },
  context,
) => {
  const progress = await progressIn(tools, flow, visitor.token, context)
  if ('tag' in progress) return progress
  const options = await tools.ceremonies.request(bound(progress, browser), [], context)
  return { tag: 'options', options }
}

export const signInWithPasskey: PasskeyHandler<'signInWithPasskey'> = async (
  tools,
  { flow, browser, visitor, credential },
  context,
) => {
  const progress = await progressIn(tools, flow, visitor.token, context)
  if ('tag' in progress) return progress
  const { tenantId, loginHint } = progress.flow
  const shown = await loginShown(tools, progress, loginHint ?? '', context)
  const proof = await prove(tools, bound(progress, browser), credential, context)
  const { passkey, signed, unknownId } = proof
  const { address } = visitor
  const name =
    passkey === undefined ? `passkey:${quotaAddress(address)}` : `mfa:${passkey.accountId}`
  const judged = await attemptFirstFactor(
    tools,
    { tenantId, factor: 'passkey', name, address },
    async () => {
      if (passkey === undefined) return { tag: 'wrong' }
      const found = signed && (await open(tools, progress, { passkey, signed }, visitor, context))
      if (found !== null) return { tag: 'found', found }
      const { accountId } = passkey
      const known = await tools.database.system(
        (tx) => findAccountSignIn(tx, tenantId, accountId),
        context,
      )
      return { tag: 'wrong', sub: known?.sub }
    },
    context,
  )
  if (judged.tag === 'found') return judged.found
  if (judged.tag === 'busy') return judged
  if (unknownId === undefined) return { ...shown, ...judged }
  const unknown = { rpId: tools.relyingParty.id, credentialId: unknownId }
  return { ...shown, ...judged, signals: { signalUnknownCredential: unknown } }
}

/**
 * Opens a session in place of the browser's old one. A passkey that becomes the first factor of the account with this
 * response comes with recovery codes. Null: the key is a copy, or the account is not a user of the tenant.
 */
async function open(
  tools: PasskeyTools,
  { flow, token: flowToken }: Progress,
  { passkey, signed }: { readonly passkey: PasskeyRow; readonly signed: Signed },
  visitor: Ceremony['visitor'],
  context: MessageContext,
): Promise<SignedIn | PasskeyEnrolled | null> {
  const { database, clock, random } = tools
  const now = clock.now()
  const { tenantId, tenantSettings } = flow
  const { accountId } = passkey
  const level = levelOfPasskey(passkey, signed)
  const amr = methodsOfPasskey(passkey, signed)
  // Accounts are global, and the session that ends may belong to another tenant.
  const opened = await database.system(async (tx) => {
    const person = await findAccountSignIn(tx, tenantId, accountId)
    if (person === undefined) return null
    const { sub, tenantUserId, hasFactor } = person
    const pending = !signed.userVerified && hasFactor
    const base = { tenantId, sub, requestId: context.requestId }
    if (!(await spendPasskeyCounter(tx, passkey, signed, now))) {
      appendEvents(tx, [personEvent(random, { ...base, ...COPIED }, now)])
      return null
    }
    const newSession = { tenantId, tenantSettings, accountId, pending, level, amr }
    const session = await openSession(tx, tools, newSession, visitor, now)
    const inSession = { ...base, sessionId: session.id }
    const event: PersonEvent = pending
      ? {
          ...inSession,
          type: 'auth.mfa.challenge',
          fields: { methods: await challengeMethods(tx, accountId) },
        }
      : { ...inSession, type: 'auth.login.success', fields: { amr, acr: acrOf(level) } }
    await recordFirstFactor(tx, random, { ...inSession, accountId, tenantUserId }, [event], now)
    const isFirst = signed.userVerified && !passkey.userVerified
    const recoveryCodes = isFirst ? await codesFor(tx, random, accountId, now) : []
    return { token: session.token, recoveryCodes }
  }, context)
  if (opened === null) return null
  const { token, recoveryCodes } = opened
  const progress = await readProgress(tools, flowToken, token, context)
  const signedIn = signedInAt(progress, flow, flowToken, token, visitor)
  if (recoveryCodes.length === 0) return signedIn
  return { ...flowPage(flowToken, flow), ...signedIn, tag: 'enrolled', recoveryCodes }
}
