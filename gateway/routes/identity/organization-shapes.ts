/** Request and response bodies shared by the routes of organizations, tenants, members and accounts. */
import { z } from 'zod'
import type {
  AccountRecord,
  FoundOrganization,
} from '../../../actors/identity/users/organizations/protocol.js'
import { callerOf } from '../../request/caller.js'
import { presenter } from '../../response/presenter.js'
import { problem, reply } from '../../route.js'
import { ChangedName } from '../../../actors/domain/entities/names.js'

export const Role = z.enum(['owner', 'admin', 'member'])
const Status = z.enum(['active', 'suspended'])
const Id = z.string().max(64)

export const OrganizationId = z.object({ organization_id: Id })
export const TenantId = z.object({ tenant_id: Id })
export const AccountId = z.object({ account_id: Id })

export const ofOrganization = (
  request: Parameters<typeof callerOf>[0] & {
    readonly params: { readonly organization_id: string }
  },
) => ({ caller: callerOf(request), organizationId: request.params.organization_id })

export const SupportContact = z
  .string()
  .regex(/^[^\p{Cc}\p{Cs}]{1,320}$/u)
  .meta({ description: 'Email address or page for help, shown on hosted pages' })

export const RecordChange = z
  .object({
    name: ChangedName.optional(),
    support_contact: SupportContact.nullable().optional().meta({ description: 'null removes it' }),
  })
  .meta({ id: 'OrganizationChange' })

export const OrganizationRecord = z
  .object({
    id: z.uuid(),
    name: z.string(),
    slug: z.string(),
    status: Status,
    role: Role.optional().meta({
      description:
        "The caller's role; absent for an operator of the deployment who is not a member",
    }),
    support_contact: z.string().optional(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'OrganizationRecord' })
export const organizationRecordJson = presenter(OrganizationRecord)

export const Account = z
  .object({
    id: z.uuid(),
    email: z.string(),
    email_verified: z.boolean(),
    status: Status,
    tenants: z.array(
      z.object({
        tenant_id: z.uuid(),
        tenant_slug: z.string(),
        tenant_user_id: z.uuid(),
        sub: z.string(),
        status: z.string().meta({ description: 'Status of the user in the tenant' }),
      }),
    ),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Account' })

export const Member = z
  .object({
    id: z.uuid(),
    organization_id: z.uuid(),
    kind: z.enum(['user', 'agent']),
    user_id: z
      .uuid()
      .optional()
      .meta({
        description:
          'The tenant user of this person in the organization’s oldest environment; absent ' +
          'if the person is no user there',
      }),
    agent_id: z.uuid().optional(),
    email: z.string().optional(),
    display_name: z.string(),
    role: Role,
    status: z.enum(['active', 'invited']),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().optional().meta({ description: 'When an invitation ends' }),
  })
  .meta({ id: 'OrganizationMember' })
export const memberJson = presenter(Member)

export const organizationFound = reply(
  200,
  OrganizationRecord,
  ({ organization }: { readonly organization: FoundOrganization }) =>
    organizationRecordJson(organization),
)
export const accountFound = reply(
  200,
  Account,
  ({ account }: { readonly account: AccountRecord }) => accountJson(account),
)

export const notOperator = problem<{ detail: string }, 'forbidden'>(
  403,
  'forbidden',
  ({ detail }) => ({ detail }),
)
export const unknownOrganization = problem(404, 'not-found', {
  detail: 'The organization does not exist.',
})
export const unknownTenant = problem(404, 'not-found', { detail: 'The tenant does not exist.' })
export const unknownAccount = problem(404, 'not-found', { detail: 'The account does not exist.' })
export const limitReached = problem<{ what: string; most: number }, 'policy-denied'>(
  403,
  'policy-denied',
  ({ what, most }) => ({
    detail: `The organization has reached its limit of ${most} ${what}.`,
  }),
)
export const organizationsOff = problem(403, 'policy-denied', {
  detail: 'Organizations are managed by the operators of this deployment.',
})
export const suspended = problem<{ what: string }, 'policy-denied'>(
  403,
  'policy-denied',
  ({ what }) => ({ detail: `The ${what} is suspended.` }),
)
export const roleTooLow = (who: string) =>
  problem<{ role: string }, 'forbidden'>(403, 'forbidden', ({ role }) => ({
    detail: `This operation is for ${who} of the organization; the caller's role is ${role}.`,
  }))

export function accountJson(account: AccountRecord): z.input<typeof Account> {
  return {
    id: account.id,
    email: account.email,
    email_verified: account.emailVerified,
    status: account.status,
    tenants: account.tenants.map((tenant) => ({
      tenant_id: tenant.tenantId,
      tenant_slug: tenant.tenantSlug,
      tenant_user_id: tenant.tenantUserId,
      sub: tenant.sub,
      status: tenant.status,
    })),
    created_at: account.createdAt.toISOString(),
  }
}
