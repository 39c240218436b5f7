/** Creates a guest and opens its session. */
import { insertAccount } from '../../../../../storage/identity/accounts.js'
import { markGuest } from '../../../../../storage/identity/ways/guests.js'
import { appendEvents } from '../../../../../storage/platform/outbox.js'
import { guestAddress } from '../../../../domain/email.js'
import { quotaAddress } from '../../../../domain/quota-address.js'
import { personEvent } from '../../../../platform/people/person-events.js'
import { signedInAt } from '../../first-factor.js'
import { insertActiveUser } from '../../joining.js'
import { progressIn, readProgress } from '../../flow/progress.js'
import { admitsGuest } from '../ways-in.js'
import { orBusy } from '../../limits/lockout.js'
import { openSession } from '../../sessions/open-session.js'
import type { GuestHandler, GuestsTools } from './needs.js'

const HOUR_SECS = 3_600
const DAY_SECS = 86_400
const DISPLAY_NAME = 'Guest'

/** New guests of the network address and of the tenant. @throws CoordinationUnavailable */
async function quotaOf(
  { coordination, anonymous }: GuestsTools,
  address: string,
  tenantId: string,
) {
  const ofAddress = { limit: anonymous.requests_per_address_max, windowSecs: HOUR_SECS }
  const ofTenant = { limit: anonymous.per_tenant_per_day_max, windowSecs: DAY_SECS }
  const here = await coordination.take(`guests:address:${quotaAddress(address)}`, ofAddress)
  if (!here.allowed) return { tag: 'throttled', retryAfterSecs: here.resetSecs } as const
  const day = await coordination.take(`guests:tenant:${tenantId}`, ofTenant)
  if (!day.allowed) return { tag: 'throttled', retryAfterSecs: day.resetSecs } as const
  return { tag: 'open' } as const
}

export const continueAsGuest: GuestHandler<'continueAsGuest'> = async (
  tools,
  { flow: flowToken, visitor },
  context,
) => {
  const { database, clock, random } = tools
  const progress = await progressIn(tools, flowToken, visitor.token, context)
  if ('tag' in progress) return progress
  const { flow, session: present } = progress
  if (!admitsGuest(flow)) return { tag: 'absent' }
  const { tenantId, tenantSettings } = flow
  // A user who is signed in is not turned into a guest.
  if (progress.step === 'done' && visitor.token !== null && present !== undefined)
    return { tag: 'signed_in', token: visitor.token, location: flow.returnTo }
  const quota = await orBusy(() => quotaOf(tools, visitor.address, tenantId))
  if (quota.tag !== 'open') return quota
  const now = clock.now()
  const accountId = random.uuid()
  // The session that is replaced may belong to another tenant.
  const token = await database.system(async (tx) => {
    const isNew = await insertAccount(tx, {
      id: accountId,
      email: guestAddress(accountId),
      emailVerified: false,
      displayName: DISPLAY_NAME,
      passwordHash: null,
      createdAt: now,
    })
    if (!isNew) throw new Error('the address of a new guest exists')
    await markGuest(tx, accountId, now)
    const { sub } = await insertActiveUser(tx, random, { tenantId, accountId, roles: [] }, now)
    const newSession = { tenantId, tenantSettings, accountId, pending: false, amr: [] }
    const session = await openSession(tx, tools, newSession, visitor, now)
    const base = { tenantId, sub, sessionId: session.id, requestId: context.requestId }
    const fields = { amr: [], acr: 'aal1' }
    appendEvents(tx, [
      personEvent(random, { ...base, type: 'tenant_user.activated' }, now),
      personEvent(random, { ...base, type: 'auth.login.success', fields }, now),
    ])
    return session.token
  }, context)
  const after = await readProgress(tools, flowToken, token, context)
  return signedInAt(after, flow, flowToken, token, visitor)
}
