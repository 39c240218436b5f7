/** A guest proves an email address, and the account becomes an ordinary one. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../../../storage/identity/accounts.js'
import {
  findCodeTarget,
  insertCodeTicket,
  spendCode,
} from '../../../../../storage/identity/ways/code-tickets.js'
import { claimAddress, isAddressTaken } from '../../../../../storage/identity/ways/guests.js'
import { type Email, parseEmail } from '../../../../domain/email.js'
import { newUserCode, readUserCode, showUserCode } from '../../../../domain/user-code.js'
import { proveMailbox } from '../../../../platform/people/mailbox-proof.js'
import type { OwnAccount } from '../../account/protocol.js'
import { codeSha256, sha256 } from '../../../../domain/secret-hashes.js'
import { orBusy } from '../../limits/lockout.js'
import { tenantOfSession } from '../../account/own-account.js'
import type { GuestHandler, GuestsTools } from './needs.js'
import type { AddressShown } from './protocol.js'
import { inTenant } from '../../../../platform/in-tenant.js'

const PURPOSE = 'address_proof'
const CODE = 'svc-address-code-v1'
const NOT_GUEST = { tag: 'not_guest' } as const

/** A session of a guest has no address. */
const isGuest = ({ session }: OwnAccount) => session.email === '' && !session.confined

export const showNewEmail: GuestHandler<'showNewEmail'> = async ({ database }, own, context) => {
  if (!isGuest(own)) return NOT_GUEST
  return { tag: 'page', tenant: await tenantOfSession(database, own.session, context), email: '' }
}

export const requestEmailProof: GuestHandler<'requestEmailProof'> = async (
  tools,
  { email: typed, languages, address, ...own },
  context,
) => {
  if (!isGuest(own)) return NOT_GUEST
  const given = parseEmail(typed.trim())
  const email = given && parseEmail(given.toLowerCase())
  const tenant = await tenantOfSession(tools.database, own.session, context)
  if (email === undefined) return { tag: 'invalid_email', tenant, email: typed.trim() }
  const shown = { tenant, email }
  const name = `${own.session.tenantId}:${email}`
  const quota = await orBusy(() => tools.mailQuota.ask(name, address))
  if (quota.tag === 'busy') return quota
  if (quota.tag === 'locked') return { ...shown, ...quota }
  await sendCode(tools, own, shown, languages, context)
  return { tag: 'sent', ...shown }
}

async function sendCode(
  { database, clock, random, mail, anonymous }: GuestsTools,
  { session: { tenantId, accountId }, token }: OwnAccount,
  { tenant: { name, color, locale }, email }: AddressShown & { readonly email: Email },
  languages: string,
  context: MessageContext,
): Promise<void> {
  const now = clock.now()
  const expiresAt = new Date(now.getTime() + anonymous.code_ttl_secs * 1000)
  const code = newUserCode((count) => random.bytes(count))
  const sealed = await mail.seal({
    tenantId,
    to: email,
    known: true,
    content: { kind: 'confirmation_code', code: showUserCode(code), until: expiresAt },
    header: { tenant: name, color, locale, languages },
    expiresAt,
  })
  const ticket = {
    tenantId,
    id: random.uuid(),
    purpose: PURPOSE,
    accountId,
    target: email,
    codeSha256: codeSha256(CODE, token, code),
    placeSha256: sha256(token),
    attempts: anonymous.code_max_attempts,
    createdAt: now,
    expiresAt,
  } as const
  await inTenant(database, tenantId, context, async (tx) => {
    await insertCodeTicket(tx, ticket)
    await mail.queue(tx, sealed)
  })
}

export const proveOwnEmail: GuestHandler<'proveOwnEmail'> = async (
  tools,
  { code: typed, address, ...own },
  context,
) => {
  if (!isGuest(own)) return NOT_GUEST
  const { database, lockout } = tools
  const { session, token } = own
  const email = await database.system((tx) => findCodeTarget(tx, PURPOSE, sha256(token)), context)
  const tenant = await tenantOfSession(database, session, context)
  const shown = { tenant, email: email ?? '' }
  const attempted = { name: `address:${session.accountId}`, address, signal: context.signal }
  const judged = await orBusy(() =>
    lockout.attempt(attempted, async (attempt) => {
      const code = readUserCode(typed)
      const outcome = code === null ? 'wrong' : await taken(tools, own, code, address, context)
      await (outcome === 'wrong' ? attempt.failed() : attempt.succeeded())
      return outcome
    }),
  )
  if (judged.tag === 'busy') return judged
  if (judged.tag === 'locked') return { ...shown, ...judged }
  return judged.outcome === 'proved' ? { tag: 'proved' } : { tag: judged.outcome, ...shown }
}

type Taken = 'proved' | 'wrong' | 'taken'

/** As `take`, when another account got the address concurrently as well. */
async function taken(...order: Parameters<typeof take>): Promise<Taken> {
  try {
    return await take(...order)
  } catch (error) {
    if (isAddressTaken(error)) return 'taken'
    throw error
  }
}

/** Uses the code, gives the account its address and marks it as verified, in one transaction. */
function take(
  tools: GuestsTools,
  { session, token }: OwnAccount,
  code: string,
  address: string,
  context: MessageContext,
): Promise<Taken> {
  const now = tools.clock.now()
  const { tenantId, accountId, sub } = session
  return tools.database.system(async (tx) => {
    if (!(await lockAccountInSession(tx, session))) return 'wrong'
    const spent = await spendCode(tx, PURPOSE, sha256(token), codeSha256(CODE, token, code), now)
    if (spent === null || spent.accountId !== accountId) return 'wrong'
    const email = parseEmail(spent.target)
    if (email === undefined) return 'wrong'
    const claimed = await claimAddress(tx, accountId, email, now)
    if (claimed === 'taken') return 'taken'
    if (claimed === 'not_guest') return 'wrong'
    const proof = { accountId, how: 'verification', inOwnSession: true, tenantId, sub } as const
    await proveMailbox(tx, tools, { ...proof, address }, now, context)
    return 'proved'
  }, context)
}
