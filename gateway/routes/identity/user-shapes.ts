/** Request and response bodies of tenant users and fixture users. */
import { z } from 'zod'
import type { UserRecord } from '../../../actors/identity/users/protocol.js'
import { DisplayName } from '../agents/agent-shapes.js'

const METADATA_BYTES_MAX = 8 * 1024

export const UserStatus = z.enum(['invited', 'pre_provisioned', 'active', 'suspended', 'removed'])
export const Email = z.email().max(254)

export const TenantUser = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    sub: z.string().meta({ description: 'Pairwise: the sub of tokens for this tenant' }),
    email: z.string(),
    email_verified: z.boolean().meta({ description: 'Always false while the user is invited' }),
    display_name: z.string().meta({
      description:
        'The tenant’s own name, otherwise that of the account; for an invited user only the former',
    }),
    status: UserStatus,
    roles: z.array(z.string()),
    organization_ids: z.array(z.uuid()),
    fixture: z.boolean(),
    metadata: z.record(z.string(), z.unknown()),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    last_login_at: z.iso.datetime().optional(),
  })
  .meta({ id: 'TenantUser' })

export const FixtureUser = z
  .object({
    id: z.uuid(),
    email: z.string().meta({ description: 'Under a .test domain: mail to it is not delivered' }),
    password: z.string().optional().meta({ description: 'Shown once; absent in a replay' }),
    status: z.literal('active'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'FixtureUser' })

export const RotatedPassword = z
  .object({
    id: z.uuid(),
    email: z.string(),
    password: z.string().meta({ description: 'Shown once' }),
    rotated_at: z.iso.datetime(),
  })
  .meta({ id: 'RotatedFixturePassword' })

export const CreateTenantUser = z
  .object({
    email: Email,
    display_name: DisplayName.optional(),
    password: z
      .string()
      .min(12)
      .max(1024)
      .optional()
      .meta({ description: '12 to 256 characters, not among the most common passwords' }),
  })
  .meta({ id: 'CreateTenantUser' })

export const ChangeTenantUser = z
  .object({
    display_name: DisplayName.nullable()
      .optional()
      .meta({ description: 'The name in this tenant; null uses that of the account again' }),
    roles: z
      .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/))
      .max(32)
      .optional()
      .meta({
        description:
          'owner, admin and member limit the scopes of the user here; others are of the ' +
          "tenant's own making",
      }),
    metadata: z
      .record(z.string(), z.unknown())
      .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= METADATA_BYTES_MAX, {
        message: 'must be at most 8 KiB of JSON',
      })
      .optional(),
  })
  .meta({ id: 'ChangeTenantUser' })

/** Absent optional members are omitted. */
export function userJson(user: UserRecord): z.input<typeof TenantUser> {
  const { lastLoginAt } = user
  return {
    id: user.id,
    tenant_id: user.tenantId,
    sub: user.sub,
    email: user.email,
    email_verified: user.emailVerified,
    display_name: user.displayName,
    status: user.status,
    roles: [...user.roles],
    organization_ids: [...user.organizationIds],
    fixture: user.fixture,
    metadata: { ...user.metadata },
    created_at: user.createdAt.toISOString(),
    updated_at: user.updatedAt.toISOString(),
    ...(lastLoginAt === null ? {} : { last_login_at: lastLoginAt.toISOString() }),
  }
}
