/** Organizations and their members. They span tenants: write them where tenants may be crossed. */
import type { Transaction } from './sql.js'

export type OrganizationRow = {
  id: string
  name: string
  slug: string
  status: 'active' | 'suspended'
  createdAt: Date
  updatedAt: Date
}

/** Inserts an organization; undefined when the slug is taken, with nothing written. */
export async function insertOrganization(
  tx: Transaction,
  organization: Pick<OrganizationRow, 'id' | 'name' | 'slug' | 'createdAt'>,
): Promise<OrganizationRow | undefined> {
  const { rows } = await tx.query<OrganizationRow>({
    name: 'organization.insert',
    text: `insert into organizations (id, name, slug, created_at, updated_at)
           values ($1, $2, $3, $4, $4)
           on conflict (slug) do nothing
           returning id, name, slug, status, created_at as "createdAt", updated_at as "updatedAt"`,
    values: [organization.id, organization.name, organization.slug, organization.createdAt],
  })
  return rows[0]
}

export type OrganizationMemberRow = {
  organizationId: string
  memberType: 'agent' | 'account'
  memberId: string
  role: 'owner' | 'admin' | 'member'
  createdAt: Date
}

export async function insertOrganizationMember(
  tx: Transaction,
  member: OrganizationMemberRow,
): Promise<void> {
  await tx.query({
    name: 'organization_member.insert',
    text: `insert into organization_members (organization_id, member_type, member_id, role, created_at)
           values ($1, $2, $3, $4, $5)`,
    values: [
      member.organizationId,
      member.memberType,
      member.memberId,
      member.role,
      member.createdAt,
    ],
  })
}
