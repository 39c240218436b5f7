/** Enrolment of a passkey where a second factor is required. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { amrWith, attempted, verified } from '../../second-factors/attempt.js'
import { flowPage, type SessionProgress, sessionAt } from '../../flow/progress.js'
import type { SignedIn } from '../../protocol.js'
import { levelOfPasskey, methodsOfPasskey, type NewCredential } from './credential.js'
import type { PasskeyHandler, PasskeyTools } from './needs.js'
import type { PasskeyEnrolled, PasskeysProtocol } from './protocol.js'
import { createdPasskey, creationOptions, storePasskey } from './registration.js'

export const getPasskeyEnrolmentOptions: PasskeyHandler<'getPasskeyEnrolmentOptions'> = async (
  tools,
  message,
  context,
) => {
  const progress = await sessionAt(tools, 'enroll', message, context)
  if ('tag' in progress) return progress
  const { session, token, flow } = progress
  const wanted = { name: flowPage(token, flow).tenant.name, deviceBound: flow.level === 3 }
  return {
    tag: 'options',
    options: await creationOptions(tools, session, message.browser, wanted, context),
  }
}

export const enrolPasskey: PasskeyHandler<'enrolPasskey'> = async (tools, message, context) => {
  const { browser, visitor, credential } = message
  const progress = await sessionAt(tools, 'enroll', message, context)
  if ('tag' in progress) return progress
  const { session, token, flow } = progress
  const created = await createdPasskey(tools, session, browser, credential, context)
  const isCopyable = created !== null && flow.level === 3 && !created.deviceBound
  if (created !== null && !isCopyable) {
    const stored = await raise(tools, progress, created, message, context)
    if (stored.tag !== 'wrong' && stored.tag !== 'locked') return stored
  }
  const page = await tools.login.showEnrolment({ flow: token, visitor }, context)
  if (page.tag !== 'page') return page
  return { tag: 'refused', why: isCopyable ? 'copyable' : 'invalid', shown: page }
}

/** Stores the passkey and raises the session with it. */
function raise(
  tools: PasskeyTools,
  progress: SessionProgress,
  created: NewCredential,
  { name, visitor }: PasskeysProtocol['enrolPasskey']['message'],
  context: MessageContext,
) {
  const { session } = progress
  const level = levelOfPasskey(created, created)
  const amr = amrWith(session, methodsOfPasskey(created, created))
  return attempted(
    tools,
    progress,
    visitor,
    {
      shown: {},
      proof: { level, amr, authTime: tools.clock.now() },
      async succeed(tx, raised) {
        const recoveryCodes = await storePasskey(tx, tools, session, created, name)
        if (recoveryCodes === null) return null
        const fields = { outcome: 'success', method: 'passkey', enrolled: true }
        const { token, location } = raised
        const page = { ...flowPage(progress.token, progress.flow), token, recoveryCodes, location }
        const outcome: PasskeyEnrolled | SignedIn =
          recoveryCodes.length === 0 ? raised : { ...page, tag: 'enrolled' }
        return { newEvents: [verified(session, fields, context)], outcome }
      },
    },
    context,
  )
}
