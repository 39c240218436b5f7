/** Request and response bodies of tenant users and fixture users. */
import { z } from 'zod'
import { type Email as StoredEmail, parseEmail, soughtEmail } from '../../../actors/domain/email.js'
import {
  PICTURE_LENGTH_MAX,
  type ProfileText,
  profileValue,
} from '../../../actors/domain/people/profile-claims.js'
import { ROLE, ROLES_MAX } from '../../../actors/domain/people/role-powers.js'
import type { ProfileUpdate, UserRecord } from '../../../actors/identity/users/protocol.js'
import { DisplayName } from '../../../actors/domain/entities/names.js'

/** A text claim of a profile. Values are stored in their canonical form. */
const claim = (name: ProfileText, description: string, example: string) =>
  z
    .string()
    .max(PICTURE_LENGTH_MAX)
    .transform((text, context) => {
      const value = profileValue(name, text)
      if (value === undefined) context.addIssue({ code: 'custom', message: description })
      return value ?? ''
    })
    .meta({ description, example })

const PROFILE = {
  given_name: claim('given_name', '1 to 120 characters', 'Ada'),
  family_name: claim('family_name', '1 to 120 characters', 'Lovelace'),
  picture: claim(
    'picture',
    'must be an https URL of at most 2048 characters, without user information',
    'https://images.example.com/ada.png',
  ),
  locale: claim('locale', 'must be a language tag (BCP 47)', 'de-DE'),
  zoneinfo: claim('zoneinfo', 'must be a time zone of the IANA database', 'Europe/Berlin'),
  phone_number: claim('phone_number', 'must be an E.164 number', '+493012345678'),
} as const

/** A claim to set; null uses the value of the account again. */
const set = <Shape extends z.ZodType>(shape: Shape) => shape.nullable().optional()
const ProfileSet = {
  given_name: set(PROFILE.given_name),
  family_name: set(PROFILE.family_name),
  picture: set(PROFILE.picture),
  locale: set(PROFILE.locale),
  zoneinfo: set(PROFILE.zoneinfo),
  phone_number: set(PROFILE.phone_number),
  phone_number_verified: z.boolean().optional().meta({
    description:
      'Whether the tenant has verified the number. A number that changes is unverified unless the same request says true',
  }),
}

const METADATA_BYTES_MAX = 8 * 1024

export const UserStatus = z.enum(['invited', 'pre_provisioned', 'active', 'suspended', 'removed'])
/**
 * The addresses that accounts may have: the same for the API, SCIM, sign-in and identity providers. Its value is the stored
 * form. Answers have it too.
 */
export const Email = emailShape(parseEmail)
/** To find an account: its local part may have letters outside of ASCII, as in old accounts. */
export const SoughtEmail = emailShape(soughtEmail)
/** An address as typed, which its actor reads, because it has its own answer to an invalid one. */
export const TypedEmail = z.string().trim().max(320)

function emailShape(read: (text: string) => StoredEmail | undefined) {
  return z
    .string()
    .max(254)
    .transform((text, context) => {
      const email = read(text)
      if (email !== undefined) return email
      context.addIssue({ code: 'custom', message: 'is not an email address' })
      return z.NEVER
    })
    .meta({
      format: 'email',
      description:
        'Letters in the domain become A-labels (IDNA 2008), in which it is stored, compared and returned.',
      example: 'person@example.com',
    })
}

export const TenantUser = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    sub: z.string().meta({ description: 'Pairwise: the sub of tokens for this tenant' }),
    email: z.string().meta({ description: 'The domain is in A-labels (IDNA 2008)' }),
    email_verified: z.boolean().meta({ description: 'Always false while the user is invited' }),
    display_name: z.string().meta({
      description:
        'The tenant’s own name, otherwise the name of the account; for an invited user only the tenant’s name',
    }),
    given_name: z
      .string()
      .optional()
      .meta({
        description:
          'This and the following six: the tenant’s own value, otherwise the account’s value once the user has ' +
          'signed in (OpenID Connect Core section 5.1)',
      }),
    family_name: z.string().optional(),
    picture: z.string().optional(),
    locale: z.string().optional(),
    zoneinfo: z.string().optional(),
    phone_number: z.string().optional(),
    phone_number_verified: z.boolean().optional(),
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
    ...ProfileSet,
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
      .meta({ description: 'The name in this tenant; null uses the name of the account again' }),
    ...ProfileSet,
    roles: z
      .array(z.string().regex(ROLE))
      .max(ROLES_MAX)
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

/** The profile claims of a body. */
export function profileOf(
  body: z.output<typeof ChangeTenantUser | typeof CreateTenantUser>,
): ProfileUpdate {
  const {
    given_name,
    family_name,
    picture,
    locale,
    zoneinfo,
    phone_number,
    phone_number_verified,
  } = body
  return { given_name, family_name, picture, locale, zoneinfo, phone_number, phone_number_verified }
}

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
    ...user.profile,
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
