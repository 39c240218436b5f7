/** Passkeys on the account page: add, rename, remove. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../../../storage/identity/accounts.js'
import { appendEvents } from '../../../../../storage/platform/outbox.js'
import { removePasskey, renamePasskey } from '../../../../../storage/identity/passkeys.js'
import { personEvent } from '../../../../platform/people/person-events.js'
import type { BrowserSession } from '../../sessions/protocol.js'
import { isUuid } from '../../../../domain/ids.js'
import { leaveConfined, signInFirst, tenantOfSession } from '../../account/own-account.js'
import type { PasskeyHandler } from './needs.js'
import { creationOptions, createdPasskey, passkeyName, storePasskey } from './registration.js'

const ADD_PATH = '/auth/account/passkeys/new'

const PASSKEYS_PART = '/auth/account#passkeys'

export const getPasskeyEndpoints: PasskeyHandler<'getPasskeyEndpoints'> = async () => ({
  tag: 'endpoints',
  enroll: PASSKEYS_PART,
  manage: PASSKEYS_PART,
})

export const getRelatedOrigins: PasskeyHandler<'getRelatedOrigins'> = async ({
  relyingParty: { origins },
}) => ({ tag: 'origins', origins })

export const showNewPasskey: PasskeyHandler<'showNewPasskey'> = async (tools, own, context) => {
  const first = await signInFirst(tools, own, ADD_PATH, context)
  if (first !== null) return first
  return { tag: 'page', tenant: await tenantOfSession(tools.database, own.session, context) }
}

export const getNewPasskeyOptions: PasskeyHandler<'getNewPasskeyOptions'> = async (
  tools,
  own,
  context,
) => {
  const first = await signInFirst(tools, own, ADD_PATH, context)
  if (first !== null) return first
  const { name } = await tenantOfSession(tools.database, own.session, context)
  const wanted = { name, deviceBound: false }
  const options = await creationOptions(tools, own.session, own.browser, wanted, context)
  return { tag: 'options', options }
}

export const addOwnPasskey: PasskeyHandler<'addOwnPasskey'> = async (
  tools,
  { credential, name, browser, ...own },
  context,
) => {
  const first = await signInFirst(tools, own, ADD_PATH, context)
  if (first !== null) return first
  const { database, clock } = tools
  const { session } = own
  const tenant = await tenantOfSession(database, session, context)
  const created = await createdPasskey(tools, session, browser, credential, context)
  if (created === null) return { tag: 'wrong', tenant }
  const now = clock.now()
  const codes = await database.system(async (tx) => {
    if (!(await lockAccountInSession(tx, session))) return null
    const stored = await storePasskey(tx, tools, session, created, name)
    if (stored === null) return null
    const fields = { outcome: 'success', method: 'passkey', enrolled: true }
    const event = { ...eventIn(session, context), type: 'auth.mfa.verify', fields } as const
    appendEvents(tx, [personEvent(tools.random, event, now)])
    return stored
  }, context)
  return codes === null ? { tag: 'wrong', tenant } : { tag: 'added', recoveryCodes: codes, tenant }
}

export const renameOwnPasskey: PasskeyHandler<'renameOwnPasskey'> = async (
  tools,
  { passkeyId, name, ...own },
  context,
) => {
  const first = await leaveConfined(tools, own, '/auth/account', context)
  if (first !== null) return first
  if (!isUuid(passkeyId)) return { tag: 'unknown_passkey' }
  const { accountId } = own.session
  const shown = passkeyName(name)
  const renamed = await tools.database.system(
    (tx) => renamePasskey(tx, accountId, passkeyId, shown),
    context,
  )
  return { tag: renamed ? 'renamed' : 'unknown_passkey' }
}

export const removeOwnPasskey: PasskeyHandler<'removeOwnPasskey'> = async (
  tools,
  { passkeyId, ...own },
  context,
) => {
  // Not the highest level: a user who lost a key must be able to remove it.
  const first = await signInFirst(tools, own, '/auth/account', context, 2)
  if (first !== null) return first
  const { session } = own
  if (!isUuid(passkeyId)) return { tag: 'unknown_passkey' }
  const now = tools.clock.now()
  return tools.database.system(async (tx) => {
    const removed = await removePasskey(tx, session.accountId, passkeyId)
    if (removed === 'unknown') return { tag: 'unknown_passkey' }
    if (removed === 'last') return { tag: 'last_way_in' }
    const fields = { reason: 'passkey_removed' }
    const type = 'security.suspicious_activity'
    const event = { ...eventIn(session, context), type, fields } as const
    appendEvents(tx, [personEvent(tools.random, event, now)])
    return { tag: 'removed' }
  }, context)
}

const eventIn = (
  { tenantId, sub, id: sessionId }: BrowserSession,
  { requestId }: MessageContext,
) => ({ tenantId, sub, sessionId, requestId })
