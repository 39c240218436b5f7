/** The account for a new user of a tenant: a fresh one, or the existing one with the rights of its owner kept. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Email } from '../../domain/email.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  findAccountByEmail,
  insertAccount,
  insertAccountWithoutMailbox,
  setAccountPassword,
} from '../../../storage/identity/accounts.js'
import {
  findTenantUserOfAccount,
  type TenantUserStatus,
} from '../../../storage/identity/tenant-users.js'
import { findTenant } from '../../../storage/identity/tenants.js'
import { hasVerifiedDomain } from '../../../storage/identity/verified-domains.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { isReserved } from '../mail/reserved-domains.js'
import { reclaimUnproved } from './mailbox-proof.js'
import { domainOf } from '../mail/public-domains.js'

/** The unique constraint in 0003_identity.sql: an account is one user of a tenant. */
export const MEMBER_CONSTRAINT = 'tenant_users_tenant_id_account_id_key'

/** Whether the limit of fixture users in 0003_identity.sql refused one. */
export function isFixtureLimit(error: unknown): boolean {
  return (error as { constraint?: unknown }).constraint === 'fixture_user_limit'
}

type Added = {
  readonly tenantId: string
  readonly email: Email
  readonly displayName: string
  /** PHC string. It is discarded unless the tenant may set the password. */
  readonly passwordHash: string | null
  /** True: the user may be pre-provisioned without a password, for other ways to sign in. */
  readonly withoutPassword: boolean
  /** Network address of the caller. */
  readonly address: string
}

type ProvidedAccount = {
  readonly accountId: string
  /**
   * `pre_provisioned` if the tenant may vouch for the address, whether or not the address had an account: the tenant must
   * not learn that. Otherwise the owner of the mailbox must accept.
   */
  readonly status: 'invited' | 'pre_provisioned'
  /** The user that the account is in the tenant already. */
  readonly known: { readonly id: string; readonly status: TenantUserStatus } | undefined
}

/** Inserts or finds the account of an address. The transaction crosses tenants. */
export async function provideAccount(
  tx: Transaction,
  tools: { readonly random: Random },
  { tenantId, email, displayName, passwordHash: chosenHash, withoutPassword, address }: Added,
  now: Date,
  context: MessageContext,
): Promise<ProvidedAccount> {
  const asks = chosenHash !== null || withoutPassword
  const right = asks ? await rightToProvision(tx, tenantId, email) : ('none' as const)
  const passwordHash = right === 'none' ? null : chosenHash
  let accountId: string | undefined = tools.random.uuid()
  const account = { id: accountId, email, displayName, passwordHash, createdAt: now }
  const fresh = await (right === 'sandbox'
    ? insertAccountWithoutMailbox(tx, { ...account, tenantId })
    : insertAccount(tx, { ...account, emailVerified: false }))
  if (!fresh) accountId = await findAccountByEmail(tx, tenantId, email)
  if (accountId === undefined) throw new Error('the conflicting account is missing')
  const known = fresh ? undefined : await findTenantUserOfAccount(tx, tenantId, accountId)
  if (known !== undefined && known.status !== 'removed')
    return { accountId, status: 'invited', known }
  // An account with an unverified address does not lock out the owner of the domain.
  // Others may know the password of an account of a removed user of a sandbox.
  let mayProvision = right === 'owner' || (right === 'sandbox' && known === undefined)
  if (!fresh && right === 'owner') {
    const taken = { accountId, domain: domainOf(email)!, address }
    const had = await reclaimUnproved(tx, tools, taken, now, context)
    // A person with a verified address keeps the password. Another owner of the domain keeps the account.
    mayProvision = had !== 'owned'
    if (had === 'reclaimed' && passwordHash !== null)
      await setAccountPassword(tx, accountId, passwordHash, now)
  }
  return { accountId, status: mayProvision ? 'pre_provisioned' : 'invited', known }
}

/**
 * Why a tenant may vouch for the address of a new account. `owner`: the address is in a domain it verified. `sandbox`:
 * it is a sandbox and the domain is reserved, so no mailbox exists.
 */
async function rightToProvision(
  tx: Transaction,
  tenantId: string,
  email: Email,
): Promise<'owner' | 'sandbox' | 'none'> {
  const domain = domainOf(email)
  const [isOwner, tenant] = await Promise.all([
    domain === undefined ? false : hasVerifiedDomain(tx, tenantId, domain),
    isReserved(email) ? findTenant(tx, tenantId) : undefined,
  ])
  if (isOwner) return 'owner'
  return tenant?.environment === 'sandbox' ? 'sandbox' : 'none'
}
