/** Finds the user for whom an identity assertion speaks, and links the first match to the subject of the issuer. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { insertTenantUser } from '../../../storage/identity/tenant-users.js'
import {
  type AddressedAccount,
  type AssertedUser,
  findAddressed,
  findLinkedUser,
  findSignedInUser,
  findUserBySub,
  insertLink,
} from '../../../storage/oauth/identity-assertions.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { domainOfEmail, type Email, parseEmail } from '../../domain/email.js'
import { catalogued } from '../../domain/events.js'
import { shownName } from '../../domain/shown-names.js'
import { inTenant } from '../../platform/in-tenant.js'
import { isReserved } from '../../platform/mail/reserved-domains.js'
import { ownershipFault } from '../../platform/oauth/audience-ownership.js'
import { personAuditRecord } from '../../platform/people/person-events.js'
import { provideAccount } from '../../platform/people/provisioning.js'
import type { Proven } from './admission.js'
import type { TrustedIssuerTools } from './needs.js'
import type { StepFailed } from './protocol.js'
import { failed, isStored } from './validation.js'

const SUBJECT_BYTES = 24

type Person = Pick<AssertedUser, 'sub'>
/** An address that leads to an account, or to a new one. */
type ByAddress = { readonly email: Email; readonly account: AddressedAccount | undefined }

/** The user, the address by which one can be linked or made, or why there is neither. Changes nothing. */
export async function findPerson(
  tools: TrustedIssuerTools,
  proven: Proven,
  context: MessageContext,
): Promise<Person | ByAddress | StepFailed> {
  const known =
    (await findLink(tools, proven, context)) ?? (await findNamed(tools, proven, context))
  if (known !== undefined) return known.active ? known : failed('target', 'the user is not active')
  return proven.issuer.subjectMapping === 'link'
    ? failed('rule', 'the subject is linked to no user')
    : byAddress(tools, proven, context)
}

const findLink = (
  { database }: TrustedIssuerTools,
  proven: Proven,
  context: MessageContext,
): Promise<AssertedUser | undefined> =>
  inTenant(database, proven.issuer.tenantId, context, (tx) =>
    findLinkedUser(tx, proven.issuer.tenantId, proven.issuer.id, subjectOf(proven)),
  )

/** The user who signed in as this subject of the issuer, or whom the issuer names by our `sub`. */
const findNamed = (
  { database }: TrustedIssuerTools,
  { issuer, jws }: Proven,
  context: MessageContext,
): Promise<AssertedUser | undefined> =>
  database.system(async (tx) => {
    const { sub, tenant, aud_sub: ours } = jws.claims
    const signedIn =
      tenant === undefined
        ? await findSignedInUser(tx, issuer.tenantId, issuer.issuer, String(sub))
        : undefined
    if (signedIn !== undefined || !issuer.trustAudSub || !isStored(ours)) return signedIn
    return findUserBySub(tx, issuer.tenantId, ours)
  }, context)

async function byAddress(
  tools: TrustedIssuerTools,
  proven: Proven,
  context: MessageContext,
): Promise<Person | ByAddress | StepFailed> {
  const { issuer, jws } = proven
  const { email: stated, email_verified: verified } = jws.claims
  const email = typeof stated === 'string' ? parseEmail(stated) : undefined
  if (email === undefined || verified !== true)
    return failed('rule', 'the subject is linked to no user, and the token has no verified email')
  const domain = domainOfEmail(email)
  if (!issuer.emailDomains.includes(domain))
    return failed('rule', `the issuer may not state addresses of ${domain}`)
  // The tenant may have lost the domain since it stated it.
  const lost = await ownershipFault(tools, `https://${domain}`, issuer.tenantId, context)
  if (lost !== undefined) return failed('rule', `${domain} is not a verified domain of the tenant`)
  const account = await tools.database.system(
    (tx) => findAddressed(tx, issuer.tenantId, email),
    context,
  )
  const fault = addressFault(account, issuer.subjectMapping === 'jit', isReserved(email))
  if (fault === undefined) return { email, account }
  // A concurrent request may have made the user and the link since.
  const linked = await findLink(tools, proven, context)
  return linked?.active === true ? linked : failed(...fault)
}

/** Why an account, or an address without one, leads to no user. */
function addressFault(
  account: AddressedAccount | undefined,
  mayCreate: boolean,
  isOfNoMailbox: boolean,
): readonly ['rule' | 'target', string] | undefined {
  if (account === undefined || account.status === null) {
    if (!mayCreate) return ['rule', 'no user has this address']
    if (account === undefined || isOfNoMailbox) return undefined
  } else if (account.status !== 'active') return ['target', 'the user is not active']
  if (!account.accountActive) return ['target', 'the user is not active']
  return account.proved ? undefined : ['rule', 'the address of the user is not verified here']
}

/** Links the subject, and makes a missing user. Null if a concurrent request was first: then it finds the link. */
export function linkPerson(
  tools: TrustedIssuerTools,
  proven: Proven,
  found: ByAddress,
  address: string,
  context: MessageContext,
): Promise<Person | null> {
  const { issuer } = proven
  const { tenantId } = issuer
  const now = tools.clock.now()
  return tools.database
    .system(async (tx) => {
      const { account } = found
      const isUser = account !== undefined && account.id !== null && account.sub !== null
      const user = isUser
        ? { id: account.id!, sub: account.sub! }
        : await provision(tx, tools, { ...proven, ...found, address }, context)
      if (user === null) return null
      const link = {
        tenantId,
        issuerId: issuer.id,
        subject: subjectOf(proven),
        userId: user.id,
        now,
      }
      if (!(await insertLink(tx, link))) throw new LinkedMeanwhile()
      const data = { provider: issuer.id, issuer: issuer.issuer, by: 'address' }
      const done = { tenantId, sub: user.sub, address, requestId: context.requestId, data }
      const type = 'account.identity.linked'
      appendAudit(tx, [personAuditRecord(tools.random, { ...done, type }, now)])
      return user
    }, context)
    .catch(orFirst)
}

/** Rolls back what a request did that was not the first. */
class LinkedMeanwhile extends Error {}

function orFirst(error: unknown): null {
  if (error instanceof LinkedMeanwhile) return null
  throw error
}

/** A new user for the address. Null if a concurrent request was first. */
async function provision(
  tx: Transaction,
  tools: TrustedIssuerTools,
  { issuer, jws, email, account, address }: Proven & ByAddress & { readonly address: string },
  context: MessageContext,
): Promise<{ readonly id: string; readonly sub: string } | null> {
  const { tenantId } = issuer
  const { random } = tools
  const now = tools.clock.now()
  let accountId = account?.accountId
  if (accountId === undefined || isReserved(email)) {
    const name = jws.claims['name']
    const displayName = typeof name === 'string' ? shownName(name) : ''
    const added = {
      tenantId,
      email,
      displayName,
      passwordHash: null,
      withoutPassword: true,
      address,
    }
    const provided = await provideAccount(tx, tools, added, now, context)
    if (provided.status !== 'pre_provisioned' || provided.known !== undefined) return null
    accountId = provided.accountId
  }
  const user = { id: random.uuid(), sub: random.token(SUBJECT_BYTES) }
  const kind = { status: 'active', roles: [], fixture: false, createdAt: now } as const
  await insertTenantUser(tx, { ...user, ...kind, tenantId, accountId })
  const about = {
    actor: { type: 'human', id: user.sub },
    resource: { type: 'tenant_user', id: user.id },
    requestId: context.requestId,
  }
  const event = catalogued('sso.user.provisioned', about, { provider: issuer.id, email })
  appendEvents(tx, [{ id: random.uuid(), tenantId, occurredAt: now, ...event }])
  return user
}

/** Subjects are unique in the tenant of the issuer (ID-JAG, `tenant`). */
const subjectOf = ({ jws }: Proven) =>
  JSON.stringify([jws.claims['tenant'] ?? null, jws.claims['sub']])
